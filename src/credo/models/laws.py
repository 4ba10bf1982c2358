"""Models of targets of one kind: a network, its prior, and the law of y around what the network says.

    theta ~ p(theta),    y ~ law(f_theta(x), sigma),    sigma ~ p(sigma)

A `Law` is what tells counts from shares: which values y may have, in which unit the network sees them, and their
distribution. Each has a file of its own: `counts`, `positive`, `shares`, `ordinal`.
"""

from typing import Any, ClassVar, Protocol

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo.data import Data, as_numbers, require_uncensored
from credo.models import priors
from credo.models.imposed import imposed_by
from credo.models.network import check_symmetries, drawn_outputs, initial_weights, num_outputs
from credo.models.program import Model
from credo.models.recipe import Recipe
from credo.models.rows import ModelConfig
from credo.networks import network_config
from credo.typing import Array, Batch


class Law(Protocol):
    """The distribution of targets of one kind; hashable, since models are."""

    name: ClassVar[str]

    @property
    def outputs(self) -> dict[int, str]:
        """How many outputs the network may have, and what they are."""

    def suited(self, data: Data) -> Data:
        """Data as the law takes them; refuses values that it has no density for."""

    def draw(self, num_outputs: int) -> Any:
        """The latents of the law, outside the plate `data`."""

    def around(self, outputs: Array, drawn: Any) -> dist.Distribution:
        """p(y | outputs), for outputs of shape (rows, num_outputs)."""

    def answer(self, outputs: Array) -> Array:
        """What conditions of the prior are about, (rows, …)."""

    def to_config(self) -> dict[str, Any]:
        """The arguments of its function in `credo.models` besides the network and the prior, JSON-able."""


def model_of(law: Law, net: Any, prior: Any) -> Model:
    """The model of a network whose outputs set the law of y."""
    chosen_prior = priors.as_prior(prior)
    terms = priors.terms_of(chosen_prior)

    def program(x: Array, y: Array | None = None, **inputs: Array) -> None:
        outputs = drawn_outputs(net, chosen_prior, law.answer, x, inputs)
        drawn = law.draw(outputs.shape[-1])
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", law.around(outputs, drawn), obs=y)

    def check(batch: Batch) -> None:
        _check_outputs(law, num_outputs(net, batch.x))
        check_symmetries(net, chosen_prior, batch.x)

    return Model(
        program,
        inputs=imposed_by(terms, chosen_prior),
        config=ModelConfig(
            model=law.name, network=network_config(net), prior=chosen_prior.to_config(), **law.to_config()
        ),
        initial=initial_weights(net),
        check=check,
        suits=law.suited,
        recipe=Recipe(lambda net, prior: model_of(law, net, prior), net, chosen_prior),
    )


def dispersion(num_outputs: int) -> Array | None:
    """How far y scatters, one number for all rows with the prior HalfNormal(1); none where the network says it.

    On the scale of a relative standard deviation its prior pulls to none at all, and allows as much as the mean:
    Simpson et al., "Penalising model component complexity" (2017).
    """
    return numpyro.sample("dispersion", dist.HalfNormal(1.0)) if num_outputs == 1 else None


def dispersed(outputs: Array, drawn: Array | None) -> tuple[Array, Array]:
    """The first output, and the dispersion: what was drawn, or the exponential of the second; (rows,) each."""
    return outputs[..., 0], jnp.exp(outputs[..., 1]) if drawn is None else jnp.broadcast_to(drawn, outputs.shape[:-1])


def numbers_of(data: Data, name: str, *, censored: bool = False) -> np.ndarray:
    """The one target of each row as a float; NaN where it is missing.

    Arguments:
        censored: whether it may be a lower bound.
    """
    if not censored:
        require_uncensored(data, f"credo.models.{name}")
    if data.y.ndim != 1:
        raise ValueError(
            f"y has shape {data.y.shape}, and credo.models.{name} is for one target; fit one model for each"
        )
    return as_numbers(data.y)


def refuse(y: np.ndarray, wrong: np.ndarray, name: str, fits: str) -> None:
    """Refuse targets that a law has no density for: the first of them, and what would fit."""
    rows = np.flatnonzero(wrong)
    if len(rows):
        raise ValueError(
            f"y holds {y[rows[0]]:g} in row {rows[0]} ({len(rows):,} of {len(y):,} rows do not fit), and "
            f"credo.models.{name} takes {fits}"
        )


def _check_outputs(law: Law, outputs: int) -> None:
    if outputs not in law.outputs:
        expected = ", or ".join(f"{num} ({what})" for num, what in law.outputs.items())
        raise ValueError(f"the network gives {outputs} outputs per row, and credo.models.{law.name} needs {expected}")
