"""Students: one network whose outputs are a whole p(y | x, D). Paper, "Bayesian teachers".

A teacher with draws thetaᵢ says of each row how its functions lie, and how noisy y is around them. A student has one
network, whose outputs set a joint law q(function value, y | x), and learns it from the teacher's answers alone,

    ω̂ = argmin_ω −1/|Θ| Σᵢ E_{p(y | x, thetaᵢ)} log q_ω(f_thetaᵢ(x), y | x)

Each q has few sufficient statistics, which are the *targets* of the student: averages over the draws, so that a row of
statistics stands for all of them, and the objective is a log-likelihood like any other.

Korattikara, Rathod, Murphy and Welling, "Bayesian dark knowledge" (2015).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import xlogy

from credo._checks import require_one_of
from credo._schema import checked
from credo.models import priors
from credo.models.network import drawn_outputs, initial_weights, num_outputs
from credo.models.program import Model
from credo.models.rows import ModelConfig
from credo.networks import network_config
from credo.predictive.conditional import Conditional, mean_of
from credo.typing import Array, Batch

# Of standardised targets: a spread below a thousandth of theirs changes no answer.
LEAST_SCALE = 1e-3
# Nats: below, the two parts of an entropy are rounding errors of single precision.
LEAST_ENTROPY = 1e-6


class Head(Protocol):
    """What the outputs of a student mean: the law q(function value, y | x), row by row."""

    name: ClassVar[str]
    needs: ClassVar[str]

    @property
    def num_outputs(self) -> int:
        """How many outputs per row the network must have."""

    def statistics(self, mean: Array, epistemic: Array, aleatoric: Array) -> Array:
        """What a teacher's answers tell the student, (rows, statistics)."""

    def of_draw(self, conditional: Conditional, outputs: Array) -> Array:
        """The statistics of a single draw of theta, from its p(y | x, theta), beside outputs of the student."""

    def own(self, outputs: Array) -> Array:
        """The statistics of q itself."""

    def expected_log(self, outputs: Array, statistics: Array) -> Array:
        """The average of log q over draws with these statistics, (rows,)."""

    def law(self, outputs: Array) -> Conditional:
        """q(y | x), the function value integrated out."""


@dataclass(frozen=True)
class NormalHead:
    """q(f, y | x) = N(f; m, s²) N(y; f, n²) of each target: o = (m, s, n), the last two through a softplus.

    The optimum has the teacher's mean, epistemic and aleatoric variance, each of them exactly, and where the student
    misses the mean its error counts as epistemic. Its marginal N(y; m, s² + n²) is that of Korattikara et al.

    Arguments:
        num_targets: T; the network has 3T outputs.
        scalar: whether y has the shape (rows,).
    """

    name: ClassVar[str] = "normal"
    needs: ClassVar[str] = "a mean, an epistemic and an aleatoric scale for each target"
    num_targets: int
    scalar: bool

    @property
    def num_outputs(self) -> int:
        return 3 * self.num_targets

    def statistics(self, mean: Array, epistemic: Array, aleatoric: Array) -> Array:
        parts = [part.reshape(part.shape[0], self.num_targets) for part in (mean, epistemic, aleatoric)]
        return jnp.concatenate(parts, axis=-1)

    def of_draw(self, conditional: Conditional, outputs: Array) -> Array:
        return self.statistics(conditional.mean, jnp.zeros_like(conditional.mean), conditional.variance)

    def own(self, outputs: Array) -> Array:
        mean, raw = jnp.split(outputs, [self.num_targets], axis=-1)
        return jnp.concatenate([mean, (LEAST_SCALE + jax.nn.softplus(raw)) ** 2], axis=-1)

    def expected_log(self, outputs: Array, statistics: Array) -> Array:
        mean, spread, noise = jnp.split(statistics, 3, axis=-1)
        own_mean, own_spread, own_noise = jnp.split(self.own(outputs), 3, axis=-1)
        of_function = jnp.log(own_spread) + (spread + (mean - own_mean) ** 2) / own_spread
        of_noise = jnp.log(own_noise) + noise / own_noise
        return -0.5 * jnp.sum(of_function + of_noise, axis=-1)

    def law(self, outputs: Array) -> Conditional:
        mean, spread, noise = jnp.split(self.own(outputs), 3, axis=-1)
        scale = jnp.sqrt(spread + noise)
        return dist.Normal(mean[:, 0], scale[:, 0]) if self.scalar else dist.Normal(mean, scale).to_event(1)


@dataclass(frozen=True)
class DirichletHead:
    """q(p, y | x) = Dirichlet(p; α₀ π) Cat(y; p): o = (logits of π, logit of 1 − r), r the epistemic share of H[y].

    π learns from soft labels: its optimum is the teacher's marginal. With I = I[y; theta] and A = E_theta(H[y | theta])
    of the teacher, r maximises

        I log r + A log(1 − r),    whose optimum is r = I/(I + A)

    and α₀ is the precision at which a Dirichlet of mean π has that share. (The likelihood of a Dirichlet would hang on
    E[log p(y = k | x, theta)] instead, which the most certain of the draws rules.)

    Arguments:
        num_classes: K; the network has K + 1 outputs.
    """

    name: ClassVar[str] = "dirichlet"
    needs: ClassVar[str] = "a logit for each class, and one for how much of the uncertainty is epistemic"
    num_classes: int

    @property
    def num_outputs(self) -> int:
        return self.num_classes + 1

    def statistics(self, mean: Array, epistemic: Array, aleatoric: Array) -> Array:
        # As shares, so that rows count alike, however certain they are.
        whole = jnp.maximum(epistemic + aleatoric, LEAST_ENTROPY)
        return jnp.concatenate([mean, (epistemic / whole)[:, None], (aleatoric / whole)[:, None]], axis=-1)

    def of_draw(self, conditional: Conditional, outputs: Array) -> Array:
        # The average of KL(p ‖ π) over draws is the mutual information, if π is their average.
        probs, own = mean_of(conditional), jax.nn.log_softmax(outputs[..., :-1])
        entropy = -jnp.sum(xlogy(probs, probs), axis=-1)
        parts = -jnp.sum(probs * own, axis=-1) - entropy, entropy
        return jnp.concatenate([probs, *(part[:, None] for part in parts)], axis=-1)

    def own(self, outputs: Array) -> Array:
        share = jax.nn.sigmoid(-outputs[..., -1:])
        return jnp.concatenate([jax.nn.softmax(outputs[..., :-1]), share, 1 - share], axis=-1)

    def expected_log(self, outputs: Array, statistics: Array) -> Array:
        probs, epistemic, aleatoric = statistics[..., :-2], statistics[..., -2], statistics[..., -1]
        logits, certainty = outputs[..., :-1], outputs[..., -1]
        of_label = jnp.sum(probs * jax.nn.log_softmax(logits), axis=-1)
        return of_label + epistemic * jax.nn.log_sigmoid(-certainty) + aleatoric * jax.nn.log_sigmoid(certainty)

    def law(self, outputs: Array) -> Conditional:
        return dist.Categorical(logits=outputs[..., :-1])


HEADS: dict[str, type[Any]] = {"normal": NormalHead, "dirichlet": DirichletHead}


class Lesson(dist.Distribution):
    """The law of a teacher's statistics under a student: its `log_prob` is the average of log q over the draws."""

    support = dist.constraints.real_vector
    pytree_data_fields = ("outputs",)
    pytree_aux_fields = ("head",)

    def __init__(self, head: Head, outputs: Array) -> None:
        self.head, self.outputs = head, outputs
        super().__init__(outputs.shape[:-1], jax.eval_shape(head.own, outputs).shape[-1:])

    def log_prob(self, value: Array, intermediates: Any = None) -> Array:
        return self.head.expected_log(self.outputs, value)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """What the student would teach itself: averages over draws have no noise."""
        return jnp.broadcast_to(self.head.own(self.outputs), sample_shape + self.shape())


def student(net: Any, head: Head) -> Model:
    """A network that learns the statistics of a teacher's answers. See `credo.distill`, which has them made.

    Arguments:
        net: any network that `credo.networks.functional` takes, with as many outputs as the head needs.
        head: what they mean, `NormalHead` or `DirichletHead`.

    >>> from credo.networks import MLP
    >>> student(MLP([50], out=11), DirichletHead(10)).config["head"]
    {'name': 'dirichlet', 'num_classes': 10}
    """
    prior = priors.as_prior(None)

    def program(x: Array, y: Array | None = None) -> None:
        outputs = drawn_outputs(net, prior, head.own, x, {})
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", Lesson(head, outputs), obs=y)

    def check(batch: Batch) -> None:
        require_outputs(num_outputs(net, batch.x), head)

    config = ModelConfig(model="student", network=network_config(net), head={"name": head.name, **vars(head)})
    is_classes = isinstance(head, DirichletHead)
    return Model(program, config=config, initial=initial_weights(net), check=check, labels=is_classes)


def student_from_config(config: Mapping[str, Any], net: Any) -> Model:
    """The student that `config` describes."""
    return student(net, head_from_config(config["head"]))


def head_from_config(config: Mapping[str, Any]) -> Head:
    """The head that `config` describes.

    >>> head_from_config({"name": "normal", "num_targets": 2, "scalar": False}).num_outputs
    6
    """
    settings = {name: value for name, value in config.items() if name != "name"}
    require_one_of(HEADS, head=config["name"])
    return checked("the head of a student", settings, HEADS[config["name"]])


def require_outputs(found: int, head: Head) -> None:
    """Refuse a network without the outputs that a head needs."""
    if found != head.num_outputs:
        raise ValueError(
            f"the student gives {found} output(s) per row, but needs {head.num_outputs}: {head.needs}; set its output "
            f"size to {head.num_outputs}, or pass text such as 'mlp:100,100', for which that is done"
        )
