"""Self-supervised learning: a trunk that a pretext task and the target share. Paper, figure "Self-supervised learning".

theta = (trunk, head, pretext) ~ p(theta)
p(theta | D, U) ∝ p(theta) Π_U p(pretext label | u, trunk, pretext) Π_D p(y | x, trunk, head)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import handlers

from credo._checks import require_at_least, require_one_of
from credo._precision import working_precision
from credo.data import Data, as_inputs
from credo.models import likelihoods, priors
from credo.models.classification import check_labels, class_distribution
from credo.models.imposed import imposed_by
from credo.models.inputs import TRAINING, Declared, Input, Inputs
from credo.models.likelihoods import Noise
from credo.models.network import draw_weights
from credo.models.pretexts import Masked, Pretext
from credo.models.pretexts import from_config as pretext_from_config
from credo.models.program import Model
from credo.models.regression import check_outputs
from credo.models.rows import ModelConfig
from credo.networks import functional, network_config
from credo.networks.functional import Network
from credo.typing import Array, Batch, Theta

Task = Literal["joint", "pretext", "target"]
# The plate of the pretext's rows, its site, and its head.
PLATE, SITE, HEAD = "pretext.rows", "pretext_labels", "pretext"


def self_supervised(
    trunk: Any,
    pretext: Pretext,
    *,
    out: int,
    task: Task = "joint",
    unlabelled: Any = TRAINING,
    prior: Any = None,
    noise: Any = None,
) -> Model:
    """A network in two parts: a trunk, whose outputs are features, and linear heads for the pretext and the target.

        task="joint"      p(theta) Π_U p(pretext label | u, theta) Π_D p(y | x, theta)    both at once
        task="pretext"    p(theta) Π_U p(pretext label | u, theta)                        the first of two steps
        task="target"     p(theta) Π_D p(y | x, theta)                                    the second of them

    Paper, "Self-supervised learning". The labels of the pretext come from inputs alone, labelled or not; what is
    learned from them is a part of the prior of the target, and minibatches see some of their rows at a time (N/n is
    taken care of): one for sixteen of `batch_size`, which may be larger than the number of labels. In two steps the
    trunk has the same names, so that what the first fit has found can be the prior of the second.

    Arguments:
        trunk: any network that `credo.networks.functional` takes; its outputs are the features. Its parameters are
            `trunk.…`, those of the heads `head.kernel`, `head.bias`, `pretext.kernel` and `pretext.bias`.
        pretext: of `credo.models.pretexts`: `rotations()`, `masked()` or `contrast(transform)`. For task="pretext" the
            model is fitted to `pretext.data(inputs)`.
        out: outputs of the target's head: one per class (one for two classes), or what the noise of numbers takes.
        unlabelled: the inputs of the pretext for task="joint": "training", all inputs of the data, with or without a
            target; or an array (rows, …) in the user's units.
        prior: of all weights, as of `classification`; N(0, 1) by default.
        noise: None for classes; for numbers what `regression` takes, such as "learned".

    >>> from credo import models, networks
    >>> trunk = networks.MLP([20], out=10)
    >>> model = self_supervised(trunk, models.pretexts.masked(0.3), out=3)
    >>> sorted(model.bind((np.zeros((6, 4)), np.arange(6) % 3)).template)[:2]
    ['head.bias', 'head.kernel']

    Reference: Gidaris et al., 2019, Boosting few-shot visual learning with self-supervision.
    """
    if not isinstance(pretext, Pretext):
        raise ValueError(f"pretext: {pretext!r} is none; take one of credo.models.pretexts, such as rotations()")
    require_one_of(get_args(Task), task=task)
    require_at_least(1, out=out)
    if isinstance(unlabelled, str):
        require_one_of((TRAINING,), unlabelled=unlabelled)
    chosen_prior = priors.as_prior(prior)
    if priors.terms_of(chosen_prior):
        raise ValueError("prior: consistency conditions cannot be joined with a pretext task; leave one of them out")
    handed_over = imposed_by((), chosen_prior)
    made = _Tasks(trunk, pretext, int(out), None if noise is None else likelihoods.as_noise(noise))

    def program(x: Array, y: Array | None = None, **inputs: Array) -> None:
        network = made.network(x, task)
        theta = draw_weights(network, chosen_prior, inputs)
        if task == "joint":
            made.observe_pretext(partial(network.apply, theta), inputs[PLATE], x.shape[1:])
        made.observe(partial(network.apply, theta), x, y, task)

    return Model(
        program,
        inputs=_Made(pretext, unlabelled, handed_over) if task == "joint" else handed_over,
        config=ModelConfig(
            model="self_supervised",
            network=network_config(trunk),
            prior=chosen_prior.to_config(),
            pretext=pretext.to_config(),
            out=int(out),
            task=task,
            noise=None if made.noise is None else made.noise.to_config(),
        ),
        initial=lambda x: made.network(x, task).params,
        check=partial(made.check, task=task),
        labels=(not isinstance(pretext, Masked)) if task == "pretext" else made.noise is None,
    )


def self_supervised_from_config(config: Mapping[str, Any], trunk: Any) -> Model:
    """The model that its `config` describes; which inputs the pretext had is known from what was saved with it."""
    return self_supervised(
        trunk,
        pretext_from_config(config["pretext"]),
        out=config["out"],
        task=config["task"],
        prior=priors.from_config(config["prior"]),
        noise=None if config["noise"] is None else likelihoods.from_config(config["noise"]),
    )


@dataclass(frozen=True, eq=False)
class _Tasks:
    """The trunk, its heads, and what is observed through each of them."""

    trunk: Any
    pretext: Pretext
    out: int
    noise: Noise | None

    def network(self, x: Any, task: Task) -> Network:
        """`apply(theta, x, head)`; the parameters of the trunk, and of the heads that the task has."""
        row = x.shape[1:]
        # The rows of a pretext of its own may hold several inputs.
        if task == "pretext":
            row = row[len(self.pretext.inputs_of(())) :]
        example = jax.ShapeDtypeStruct((2, *row), working_precision())
        inner = functional(self.trunk, example)
        shape = jax.eval_shape(inner.apply, inner.params, example).shape
        if len(shape) != 2:
            raise ValueError(f"trunk maps inputs of shape {(2, *row)} to {shape}; expected (2, number of features)")
        sizes = {"head": self.out, HEAD: self.pretext.num_outputs(row)}
        heads = [name for name in sizes if task == "joint" or (name == HEAD) == (task == "pretext")]
        params = {f"trunk.{path}": value for path, value in inner.params.items()}
        fan_in = {f"trunk.{path}": value for path, value in inner.fan_in.items()}
        for name in heads:
            params |= _linear(name, shape[1], sizes[name])
            fan_in |= {f"{name}.kernel": shape[1], f"{name}.bias": shape[1]}

        def apply(theta: Theta, x: Array, head: str) -> Array:
            own = {path: theta[f"trunk.{path}"] for path in inner.params}
            return inner.apply(own, x) @ theta[f"{head}.kernel"] + theta[f"{head}.bias"]

        return Network(apply, params, fan_in)  # type: ignore[arg-type]

    def observe(self, apply: Any, x: Array, y: Array | None, task: Task) -> None:
        """The site y of the target, or of a pretext by itself."""
        if task == "pretext":
            law = self.pretext.law(lambda rows: apply(rows, HEAD), x)
        else:
            outputs = apply(x, "head")
            law = class_distribution(outputs) if self.noise is None else _around(self.noise, outputs)
        is_class = law.support.is_discrete
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", law, obs=y if y is None or is_class else y.astype(working_precision()))

    def observe_pretext(self, apply: Any, packed: Array, row: tuple[int, ...]) -> None:
        """The labels of the pretext, outside the plate of the data: a part of the prior of the target."""
        shape = self.pretext.inputs_of(row)
        x, labels = jnp.split(packed, [math.prod(shape)], axis=1)
        law = self.pretext.law(lambda rows: apply(rows, HEAD), x.reshape(-1, *shape))
        if law.support.is_discrete:
            observed: Array = labels[:, 0].astype(jnp.int32)
        else:  # what was not hidden is missing
            seen = ~jnp.isnan(labels)
            law, observed = law.base_dist.mask(seen).to_event(1), jnp.where(seen, labels, 0.0)
        words = {"words": f"likelihood of {self.pretext.name}, {self.pretext.strength:g} times"}
        with numpyro.plate(PLATE, packed.shape[0]), handlers.scale(scale=self.pretext.strength):
            numpyro.sample(SITE, law, obs=observed, infer=words)

    def check(self, batch: Batch, task: Task) -> None:
        """Refuse data that the task is not about."""
        if task == "pretext":
            self._check_pretext(batch)
        elif self.noise is None:
            check_labels(batch, self.out)
        else:
            check_outputs(batch, self.out, self.noise)

    def _check_pretext(self, batch: Batch) -> None:
        num = batch.y.shape[1] if batch.y.ndim == 2 else None
        if isinstance(self.pretext, Masked) != (num is not None):
            raise ValueError(
                f"y has shape {batch.y.shape}, which is not of the labels of {self.pretext.name!r}; fit this model to "
                "pretext.data(inputs)"
            )


def _around(noise: Noise, outputs: Array) -> Any:
    """The law of y around the network's outputs; draws what the noise has to learn."""
    return noise.around(outputs, noise.draw(likelihoods.num_targets(noise, outputs.shape[-1])))


def _linear(name: str, num_in: int, num_out: int) -> Theta:
    """A linear layer that starts from LeCun's normal distribution of variance 1/fan-in, as those of the zoo do."""
    kernel = np.random.default_rng(num_out).standard_normal((num_in, num_out)) / math.sqrt(num_in)
    return {
        f"{name}.kernel": kernel.astype(working_precision()),
        f"{name}.bias": np.zeros(num_out, working_precision()),
    }


@dataclass(frozen=True, eq=False)
class _Made:
    """The data set of a pretext task as an input that its model declares: rows and their labels, side by side."""

    pretext: Pretext
    unlabelled: Any = field(repr=False)
    of_prior: Declared | None = None

    def bound(self, data: Data) -> Inputs:
        whole = data
        if not isinstance(self.unlabelled, str):
            try:
                x = as_inputs(self.unlabelled, data.x.shape[1:], data.names)
            except ValueError as error:
                raise ValueError(f"unlabelled: {error}") from error
            whole = Data(x, np.zeros(len(x))).with_scaling(data.scaling)
        made = self.pretext.data(whole)
        rows = made.scaling.inputs(made.x).reshape(made.size, -1)
        labels = made.scaling.targets(made.y).reshape(made.size, -1).astype(working_precision())
        own = {PLATE: Input.of(np.concatenate([rows, labels], axis=1), by_reference=True)}
        return Inputs.of(own if self.of_prior is None else own | dict(self.of_prior.bound(data).items))
