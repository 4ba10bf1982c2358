"""Consistency conditions in a model: knowledge about the function becomes a part of the prior.

Paper, "Prior with a consistency condition". For inputs x₁ … x_M that the model holds (`models.inputs`),

    p(theta | D_x) ∝ p(theta) exp(−strength · 1/M Σ C(theta, xᵢ))      strength in all: as the paper writes it
    p(theta | D_x) ∝ p(theta) exp(−strength · Σ C(theta, xᵢ))          strength per point: as its supplement does

The first says the same however many inputs there are; the second says more with each of them, like data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._precision import working_precision
from credo.data import Data, Scaling, as_inputs
from credo.models import conditions
from credo.models.conditions import Condition, Labelled, check_penalty
from credo.models.inputs import Input, Inputs
from credo.networks.masks import unmasked
from credo.typing import Array

Per = Literal["all", "point"]
# A network sees at most this many rows at once: activations stay in the cache, and the way back needs little memory.
ROWS_PER_BLOCK = 4096


@dataclass(frozen=True)
class Term:
    """One condition of a prior.

    Arguments:
        name: of its site, and of its inputs.
        strength: of the condition, in all or per point.
        points: in the user's units; None for the training inputs.
        is_given: whether the points were passed; they are not part of a configuration.
    """

    name: str
    condition: Condition
    strength: float
    per: Per
    is_given: bool = False
    points: np.ndarray | None = field(default=None, compare=False, repr=False)

    def bound(self, data: Data) -> dict[str, Input]:
        """Its inputs for a model of these data: what is summed over, the weight of a summand, and constants."""
        if self.is_given and self.points is None:
            raise ValueError(
                f"the condition {self.name!r} was imposed at points that are not part of a saved model; pass them: "
                "credo.priors.consistent(base, condition, inputs=points)"
            )
        by_reference = not self.is_given
        condition = self.condition if data.names is None else self.condition.resolved(data.names)
        if isinstance(condition, Labelled) and not self.is_given:
            rows, constants = condition.prepare_data(data)
        else:
            rows, constants = condition.prepare(self._inputs(data))
        weight = self.strength / (len(rows) if self.per == "all" else 1)
        arrays = {"inputs": rows, **constants}
        found = {
            f"{self.name}.{key}": Input.of(_plain(value), by_reference=by_reference) for key, value in arrays.items()
        }
        return found | {f"{self.name}.weight": Input.of(_plain(weight))}

    def _inputs(self, data: Data) -> np.ndarray:
        if self.points is None:
            return data.x
        try:
            return as_inputs(self.points, data.x.shape[1:], data.names)
        except ValueError as error:
            raise ValueError(f"inputs of the condition {self.name!r}: {error}") from error

    def impose(self, function: "Predicted", inputs: Mapping[str, Array]) -> None:
        """−weight · C(theta, xᵢ) of each input, as a factor."""
        own = {
            key.removeprefix(f"{self.name}."): value for key, value in inputs.items() if key.startswith(f"{self.name}.")
        }
        rows, weight = own.pop("inputs"), own.pop("weight")
        penalties = self.condition(function, rows, **own)
        if not isinstance(penalties, jax.core.Tracer):
            check_penalty(self.condition, penalties)
        with numpyro.plate(f"{self.name}.inputs", rows.shape[0]):
            factor = dist.distribution.Unit(-weight * penalties)
            numpyro.sample(self.name, factor, obs=factor.sample(None), infer={"words": self.says})

    def to_config(self) -> dict[str, Any]:
        """As JSON, without the points."""
        own = {key: getattr(self, key) for key in ("name", "strength", "per", "is_given")}
        return {**own, "condition": self.condition.to_config()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Term":
        """The inverse of `to_config`."""
        return cls(**{**config, "condition": conditions.from_config(config["condition"])})

    @property
    def says(self) -> str:
        """Its part of the prior, in words."""
        how = "a mean" if self.per == "all" else "a sum"
        assumed = getattr(self.condition, "assumes", "")
        says = f"exp(−{self.strength:g} · C), C {how} over its inputs of {self.condition}"
        return f"{says}: {assumed}" if assumed else says


@dataclass(frozen=True, eq=False)
class Imposed:
    """The conditions of a prior, and the arrays that it is made of, as inputs that its model declares."""

    terms: tuple[Term, ...]
    prior: Any = None

    def bound(self, data: Data) -> Inputs:
        found = {name: Input.of(array) for name, array in self._arrays().items()}
        if not self.terms:
            return Inputs.of(found)
        found |= {name: one for term in self.terms for name, one in term.bound(data).items()}
        units = {f"scaling.{name}": Input.of(_plain(value)) for name, value in data.scaling.to_dict().items()}
        return Inputs.of(found | units)

    def _arrays(self) -> dict[str, np.ndarray]:
        return self.prior.inputs() if hasattr(self.prior, "inputs") else {}


def imposed_by(terms: tuple[Term, ...], prior: Any = None) -> Imposed | None:
    """What a model asks for: for the conditions of its prior, and for a prior that is made of arrays."""
    return Imposed(terms, prior) if terms or hasattr(prior, "inputs") else None


def impose(
    terms: Sequence[Term],
    outputs: Callable[[Array], Array],
    answer: Callable[[Array], Array],
    inputs: Mapping[str, Array],
) -> None:
    """Add the conditions of a prior to a program.

    Arguments:
        outputs: the network at theta, from inputs in the model's units to (rows, outputs).
        answer: what is predicted, from these outputs: the mean of y, or the probabilities of the classes.
        inputs: of the model's own.
    """
    if terms:
        units = {name: inputs[f"scaling.{name}"] for name in Scaling().to_dict()}
        function = Predicted(outputs, answer, units)
        for term in terms:
            term.impose(function, inputs)


@dataclass(frozen=True, eq=False)
class Predicted:
    """A network at one theta as conditions see it: inputs and predictions are in the user's units.

    Dropout masks do not reach it: the weights that a condition judges are those that the prior does.
    """

    outputs: Callable[[Array], Array]
    answer: Callable[[Array], Array]
    units: Mapping[str, Array]

    def __call__(self, x: Array) -> Array:
        """What is predicted: the mean of y, or the probabilities of the classes, (rows, outputs)."""

        def predicted(rows: Array) -> Array:
            return self.units["y_mean"] + self.units["y_scale"] * self.answer(self._raw(rows))

        return _in_blocks(predicted, x)

    def raw(self, x: Array) -> Array:
        """The network's own outputs in the model's units, (rows, outputs)."""
        return _in_blocks(self._raw, x)

    def _raw(self, x: Array) -> Array:
        with unmasked():
            return self.outputs((x - self.units["x_mean"]) / self.units["x_scale"])


def _in_blocks(function: Callable[[Array], Array], x: Array) -> Array:
    """function(x), block of rows by block of rows; what is needed for the way back is computed again there."""
    num_blocks, left = divmod(x.shape[0], ROWS_PER_BLOCK)
    if num_blocks == 0 or (num_blocks == 1 and left == 0):
        return function(x)
    blocks = x[: num_blocks * ROWS_PER_BLOCK].reshape(num_blocks, ROWS_PER_BLOCK, *x.shape[1:])
    found = jax.lax.map(jax.checkpoint(function), blocks)
    whole = found.reshape(-1, *found.shape[2:])
    return whole if left == 0 else jnp.concatenate([whole, function(x[-left:])])


def _plain(values: Any) -> np.ndarray:
    """Whole numbers as int32, others in the working precision."""
    array = np.asarray(values)
    return array.astype(np.int32 if array.dtype.kind in "iub" else working_precision())
