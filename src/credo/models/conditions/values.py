"""Conditions on the prediction itself: bounded, sparse, sure, in a subspace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.models.conditions.condition import PREFERRED, Function, Ready
from credo.models.conditions.outputs import logits
from credo.typing import Array

Bound = float | tuple[float, ...] | None


@dataclass(frozen=True)
class Bounded(Ready):
    """Σₖ relu(low − fₖ)² + relu(fₖ − high)². See `bounded`.

    >>> from credo import conditions
    >>> conditions.bounded(0.0, 1.0)
    Bounded(low=0.0, high=1.0)
    """

    name = "bounded"
    low: Bound = None
    high: Bound = None

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        predicted = function(rows)
        for name, bound in (("low", self.low), ("high", self.high)):
            if isinstance(bound, tuple) and len(bound) != predicted.shape[-1]:
                raise ValueError(f"bounded: {name} has {len(bound)} numbers for {predicted.shape[-1]} output(s)")
        below = 0.0 if self.low is None else jax.nn.relu(jnp.asarray(self.low) - predicted) ** 2
        above = 0.0 if self.high is None else jax.nn.relu(predicted - jnp.asarray(self.high)) ** 2
        return jnp.sum(below + above, axis=-1)


@dataclass(frozen=True)
class Sparse(Ready):
    """Σₖ |fₖ|. See `sparse`.

    >>> from credo import conditions
    >>> conditions.sparse()
    Sparse()
    """

    name = "sparse"
    strength = PREFERRED

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        return jnp.sum(jnp.abs(function(rows)), axis=-1)


@dataclass(frozen=True)
class LowDensity(Ready):
    """−Σₖ pₖ log pₖ. See `low_density`.

    >>> from credo import conditions
    >>> conditions.low_density()
    LowDensity()
    """

    name = "low_density"
    strength = PREFERRED
    assumes = "classes meet where there are few inputs"

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        # From logits: a probability that is rounded to zero would have no logarithm.
        log_p = jax.nn.log_softmax(logits(self.name, function, rows))
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)


@dataclass(frozen=True)
class Subspace(Ready):
    """‖f − S Sᵀ f‖². See `subspace`.

    >>> from credo import conditions
    >>> conditions.subspace([[1.0], [1.0]]).name
    'subspace'
    """

    name = "subspace"
    basis: tuple[tuple[float, ...], ...]

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        points, constants = super().prepare(x)
        root = np.linalg.qr(np.array(self.basis))[0]
        return points, {**constants, "root": root.astype(points.dtype)}

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        predicted, root = function(rows), constants["root"]
        if predicted.shape[-1] != root.shape[0]:
            raise ValueError(
                f"subspace: the basis has {root.shape[0]} rows, but the model has {predicted.shape[-1]} output(s); "
                "basis is (outputs, k)"
            )
        return jnp.sum((predicted - predicted @ root @ root.T) ** 2, axis=-1)


def bounded(low: float | Sequence[float] | None = None, high: float | Sequence[float] | None = None) -> Bounded:
    """The prediction stays between bounds, in the user's units.

        C(theta, x) = Σₖ relu(lowₖ − fₖ(x))² + relu(fₖ(x) − highₖ)²

    Arguments:
        low, high: one number, or one per output; None for no bound on that side.

    >>> from credo.models.conditions import Plain
    >>> bounded(0.0, 1.0)(Plain(lambda x: x), jnp.array([[-2.0], [0.5], [1.5]])).tolist()
    [4.0, 0.0, 0.25]
    """
    if low is None and high is None:
        raise ValueError("bounded: pass low, high or both")
    least, most = _as_bound("low", low), _as_bound("high", high)
    sizes = {len(bound) for bound in (least, most) if isinstance(bound, tuple)}
    if len(sizes) > 1:
        raise ValueError(f"bounded: low and high are for different numbers of outputs, got {low!r} and {high!r}")
    if least is not None and most is not None and not np.all(np.array(least) < np.array(most)):
        raise ValueError(f"bounded: low must be below high, got {low!r} and {high!r}: no function is between them")
    return Bounded(least, most)


def sparse() -> Sparse:
    """Most outputs are near zero: the ℓ1 norm of the prediction, in the user's units.

        C(theta, x) = Σₖ |fₖ(x)|

    Probabilities always add up to one; for classes, `low_density` is the condition that keeps most of them near zero.

    >>> from credo.models.conditions import Plain
    >>> sparse()(Plain(lambda x: x), jnp.array([[-2.0, 0.5]])).tolist()
    [2.5]
    """
    return Sparse()


def low_density() -> LowDensity:
    """Classes are told apart where there are no points: the entropy at (unlabelled) inputs, in nats.

        C(theta, x) = −Σₖ pₖ(x) log pₖ(x)

    Decision boundaries, where the entropy is high, move to regions of low density. Paper, "Degree of supervision",
    semi-supervised learning: p(theta | U) with U the unlabelled examples.

    >>> from credo.models.conditions import Plain
    >>> undecided = low_density()(Plain(lambda x: x), jnp.array([[0.0, 0.0]]))
    >>> round(float(undecided[0]), 4)
    0.6931

    Reference: Grandvalet, Bengio, 2004, Semi-supervised learning by entropy minimization.
    """
    return LowDensity()


def subspace(basis: Any) -> Subspace:
    """The prediction lies near a known linear subspace of the outputs, in the user's units.

        C(theta, x) = ‖f(x) − S Sᵀ f(x)‖²,    S an orthonormal basis of the columns of `basis`

    Arguments:
        basis: (outputs, k), columns that span the subspace; they need not be orthonormal.

    >>> from credo.models.conditions import Plain
    >>> rows, constants = subspace([[1.0], [1.0]]).prepare(np.array([[3.0, 1.0]]))
    >>> subspace([[1.0], [1.0]])(Plain(lambda x: x), rows, **constants).round(4).tolist()
    [2.0]

    Reference: the sparse measure of the paper's supplement.
    """
    matrix = np.asarray(basis, np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise ValueError(f"subspace: basis must be a finite matrix, (outputs, k), got shape {matrix.shape}")
    num_outputs, k = matrix.shape
    if not 0 < k < num_outputs:
        raise ValueError(
            f"subspace: {k} columns of {num_outputs} numbers span no proper subspace; basis is (outputs, k)"
        )
    if np.linalg.matrix_rank(matrix) < k:
        raise ValueError(f"subspace: the {k} columns of basis depend on each other; leave some of them out")
    return Subspace(tuple(map(tuple, matrix.tolist())))


def _as_bound(name: str, bound: Any) -> Bound:
    if bound is None:
        return None
    value = np.asarray(bound)
    if value.dtype.kind not in "iuf" or value.ndim > 1 or not value.size or not np.isfinite(value).all():
        raise ValueError(f"bounded: {name} must be a finite number, or one per output, got {bound!r}")
    return tuple(map(float, value)) if value.ndim else float(value)
