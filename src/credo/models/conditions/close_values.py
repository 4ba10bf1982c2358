"""Near inputs have targets that are close: a random field of numbers along the edges of a graph."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least, require_positive
from credo.data import Data
from credo.models.conditions.columns import in_sds
from credo.models.conditions.condition import PREFERRED, Function, Labelled, checked_points
from credo.models.conditions.edges import at_ends, nearest_edges
from credo.models.conditions.outputs import means
from credo.typing import Array

# Of the median length of an edge: between equal inputs, too, a target may differ.
LEAST_LENGTH = 0.1


@dataclass(frozen=True)
class CloseValues(Labelled):
    """w ‖f(x_i) − f(x_j)‖²/2v_ij. See `close_values`.

    >>> from credo import conditions
    >>> conditions.close_values(k=5)
    CloseValues(k=5, slope=1.0)
    """

    name = "close_values"
    strength = PREFERRED
    assumes = "targets of near inputs, known or not, differ the more the farther they are"
    k: int = 10
    slope: float = 1.0

    def prepare_data(self, data: Data) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        points = checked_points(self.name, data.x)
        edges, squared = nearest_edges(self.name, in_sds(points), self.k)
        least = LEAST_LENGTH**2 * np.median(squared)
        if least == 0:
            raise ValueError(f"{self.name}: most inputs are equal to their neighbours, so there are no distances")
        known = np.where(data.observed, data.scaling.targets(data.y), np.nan)
        spread = self.slope * np.nanstd(known, axis=0).reshape(-1)
        if not np.all(spread > 0):
            raise ValueError(f"{self.name}: the known targets are all equal, so nothing tells how far others may be")
        # A row counts once in all its edges.
        precision = data.size / len(edges) / (spread**2 * np.maximum(squared, least)[:, None])
        return np.arange(len(edges), dtype=np.int32), {
            "points": points,
            "edges": edges,
            "precision": precision.astype(points.dtype),
        }

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        points, edges, precision = (jnp.asarray(constants[name]) for name in ("points", "edges", "precision"))
        first, second = at_ends(lambda x: means(function, x), points, edges[rows])
        return 0.5 * jnp.sum(precision[rows] * (first - second) ** 2, axis=-1)


def close_values(k: int = 10, *, slope: float = 1.0) -> CloseValues:
    """Near inputs have targets that are close, known or not: differences are normal, and wider with the distance.

        f(x_i) − f(x_j) ~ N(0, v_ij),  √v_ij = slope · s_y · d_ij,     C(theta, (i, j)) = w ‖f(x_i) − f(x_j)‖²/2v_ij

    along the edges of a graph that joins each training row to its k nearest; d in units of the columns' standard
    deviations, s_y the standard deviation of the known targets. Noise is not part of the targets meant here. Edges
    count as if independent, which they are not, so w is such that a row counts once in all its edges. Impose it with
    strength=1, per="point", as `credo.models.semi_supervised` does.

    Arguments:
        k: neighbours of each row.
        slope: how fast the targets change: standard deviations of y per standard deviation of x.

    >>> from credo.models.conditions import Plain
    >>> rows, constants = close_values(k=1).prepare_data(Data([[-1.0], [1.0]], [2.0, 4.0]))
    >>> close_values(k=1)(Plain(lambda x: 2 * x), rows, **constants).tolist()
    [4.0]

    Reference: Rue, Held, 2005, Gaussian Markov random fields.
    """
    require_at_least(1, k=k)
    require_positive(slope=slope)
    return CloseValues(int(k), float(slope))
