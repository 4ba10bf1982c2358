"""Close points have close predictions: conditions on the edges of a sparse graph, most often of nearest neighbours.

Rows are the numbers of edges, so that edges are subsampled; points, edges and what is known of each edge stay whole.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least, require_positive
from credo.models.conditions.columns import in_sds
from credo.models.conditions.condition import PREFERRED, Function, Ready, checked_points
from credo.models.conditions.edges import at_ends, nearest_edges, random_edges
from credo.models.conditions.outputs import means
from credo.typing import Array

# Added to F, so that log F has a gradient of at most 1/√this where two predictions are equal. F is a ratio of squared
# slopes with its mode near one: this moves it by a millionth.
LEAST_RATIO = 1e-6


@dataclass(frozen=True)
class Neighbours(Ready):
    """w_ij ‖f(x_i) − f(x_j)‖². See `neighbours`.

    >>> from credo import conditions
    >>> conditions.neighbours(k=3)
    Neighbours(k=3, length=None)
    """

    name = "neighbours"
    strength = PREFERRED
    assumes = "the function changes little between near inputs"
    k: int = 5
    length: float | None = None

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        points = checked_points(self.name, x)
        edges, squared = nearest_edges(self.name, in_sds(points), self.k)
        weights = np.ones(len(edges)) if self.length is None else np.exp(-squared / (2 * self.length**2))
        return np.arange(len(edges), dtype=np.int32), {
            "points": points,
            "edges": edges,
            "weights": weights.astype(points.dtype),
        }

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        points, edges, weights = (jnp.asarray(constants[name]) for name in ("points", "edges", "weights"))
        first, second = at_ends(lambda x: means(function, x), points, edges[rows])
        return weights[rows] * jnp.sum((first - second) ** 2, axis=-1)


@dataclass(frozen=True)
class FisherSnedecor(Ready):
    """(n+m)/2·log(1+F) − (n/2−1)·log F, above its minimum. See `fisher_snedecor`.

    >>> from credo import conditions
    >>> conditions.fisher_snedecor(k=3)
    FisherSnedecor(k=3, scale=1.0, dims=None)
    """

    name = "fisher_snedecor"
    strength = PREFERRED
    k: int | None = 5
    scale: float = 1.0
    dims: tuple[int, int] | None = None

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        points = checked_points(self.name, x)
        pairs = random_edges(self.name, points) if self.k is None else nearest_edges(self.name, points, self.k)
        edges, squared = pairs
        # Between two equal points there is no slope.
        apart = squared > 0
        if not apart.any():
            raise ValueError("fisher_snedecor: both inputs of every pair are equal, so there are no slopes")
        edges, squared = edges[apart], squared[apart]
        return np.arange(len(edges), dtype=np.int32), {
            "points": points,
            "edges": edges,
            "squared": squared.astype(points.dtype),
        }

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        points, edges, squared = (jnp.asarray(constants[name]) for name in ("points", "edges", "squared"))
        first, second = at_ends(function, points, edges[rows])
        ratio = self.scale * jnp.sum((first - second) ** 2, axis=-1) / squared[rows]
        # F of one output has the mode zero with infinite density; with n = 2 the density is finite there.
        n, m = self.dims or (max(first.shape[-1], 2), int(np.prod(points.shape[1:])))
        return f_penalty(ratio, n, m)


def neighbours(k: int = 5, *, length: float | None = None) -> Neighbours:
    """Predictions change little between near points: smoothness over a sparse graph of all inputs.

        C(theta, (i, j)) = w_ij ‖f(x_i) − f(x_j)‖²,    Σ over edges = tr(fᵀ L f) with L the Laplacian of the graph

    The edges join each point to its k nearest, in units of the columns' standard deviations; f are the network's own
    outputs. Paper, "Degree of supervision": points that are close to each other should lead to the same prediction.

    Arguments:
        k: neighbours of each point.
        length: w_ij = exp(−‖x_i − x_j‖²/(2·length²)), in standard deviations; None for equal weights, 1.

    >>> from credo.models.conditions import Plain
    >>> rows, constants = neighbours(k=1).prepare(np.array([[0.0], [1.0], [5.0], [6.0]]))
    >>> constants["edges"].tolist(), neighbours(k=1)(Plain(lambda x: 3 * x), rows, **constants).tolist()
    ([[0, 1], [2, 3]], [9.0, 9.0])

    Reference: Belkin, Niyogi, Sindhwani, 2006, Manifold regularization.
    """
    require_at_least(1, k=k)
    if length is not None:
        require_positive(length=length)
    return Neighbours(int(k), None if length is None else float(length))


def fisher_snedecor(k: int | None = 5, *, scale: float = 1.0, dims: tuple[int, int] | None = None) -> FisherSnedecor:
    """Slopes between points follow a Fisher–Snedecor law: most are alike, and a few may be steep.

        C(theta, (i, j)) = (n + m)/2 · log(1 + F) − (n/2 − 1) · log F − its minimum,
        F = scale · ‖f(x_i) − f(x_j)‖² / ‖x_i − x_j‖²

    in the user's units: minus the log density of F·m/n ~ F(n, m), as if the differences of outputs and of inputs were
    normal in n and m dimensions. Its tail is heavy: a jump costs the logarithm of its size. (The paper's supplement
    prints (n + m)/2 − 1 for the first factor, which is not the law's.)

    Arguments:
        k: neighbours of each point; the pairs are these. None pairs each point with one other, near or far, at random.
        scale: λ, the squared ratio of a unit of x to one of y; at n = m = 9 the mode is at F = 0.64.
        dims: (n, m), n at least 2, since below that there is no minimum; None for the numbers of outputs (2 if there is
            one) and of inputs. (n, m − 2) is the form as it is printed.

    >>> from credo.models.conditions import Plain
    >>> rows, constants = fisher_snedecor(k=1, dims=(4, 2)).prepare(np.array([[0.0], [2.0]]))
    >>> fisher_snedecor(k=1, dims=(4, 2))(Plain(lambda x: x / jnp.sqrt(2.0)), rows, **constants).round(4).tolist()
    [0.0]

    Reference: the sparse measure of the paper's supplement.
    """
    if k is not None:
        require_at_least(1, k=k)
    require_positive(scale=scale)
    if dims is None:
        return FisherSnedecor(k, float(scale))
    if isinstance(dims, str) or np.shape(dims) != (2,):
        raise ValueError(f"dims must be two numbers, (of outputs, of inputs), got {dims!r}")
    n, m = dims
    require_at_least(2, n=n)
    require_at_least(1, m=m)
    return FisherSnedecor(k, float(scale), (int(n), int(m)))


def f_penalty(ratio: Array, n: int, m: int) -> Array:
    """(n+m)/2·log(1+F) − (n/2−1)·log F, less its minimum at F = (n/2 − 1)/(m/2 + 1)."""
    a, b = (n + m) / 2, n / 2 - 1
    mode = b / (m / 2 + 1)
    least = a * np.log1p(mode) - (b * np.log(mode) if b else 0.0)
    ratio = ratio + LEAST_RATIO
    return jnp.maximum(a * jnp.log1p(ratio) - b * jnp.log(ratio) - least, 0.0)
