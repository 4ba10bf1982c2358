"""What makes the prediction of a single row uncertain: its uncertainty, divided among its columns."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from credo.explaining.columns import Columns
from credo.predictive import Predictive


@dataclass(frozen=True)
class UnsureRow:
    """A row whose prediction is uncertain, and why.

    With V the epistemic or the aleatoric part of the uncertainty, a typical row z of the table becomes the row x, one
    column after another in a random order π. Column j gets what V changes by when it is its turn,

        φⱼ = mean over z, π of [V(x on j and those before it, else z) − V(x on those before j, else z)],
        V(x) = mean of V(z) + Σⱼ φⱼ

    the Shapley values of V with the rows of the table behind it (Štrumbelj and Kononenko, 2014). The sum is exact,
    however few z and π there are.

    Arguments:
        index: of the row in the data, from 0; words count from 1.
        epistemic, aleatoric: of the row; for numbers variances (of several targets, the mean of their shares of the
            variance of each), for classes nats.
        typical: both parts, of the rows z.
        because: for each column both parts of φⱼ, the greatest sum first.
        values: what the row has in each column, in words.
    """

    index: int
    epistemic: float
    aleatoric: float
    typical: tuple[float, float]
    because: dict[str, tuple[float, float]]
    values: dict[str, str]

    @property
    def total(self) -> float:
        """epistemic + aleatoric."""
        return self.epistemic + self.aleatoric

    def __str__(self) -> str:
        shares = {name: sum(parts) / self.total for name, parts in self.because.items()}
        said = [f"{name} = {self.values[name]} {share:+.0%}" for name, share in shares.items() if abs(share) >= 0.05]
        reasons = ", ".join(said[:4]) or "no column alone"
        return (
            f"row {self.index + 1}: {self.epistemic / self.total:.0%} of its uncertainty is epistemic; "
            f"a typical row has {sum(self.typical) / self.total:.0%} as much, the rest comes from {reasons}"
        )


Parts = Callable[[np.ndarray], np.ndarray]


def unsure_row(
    parts_at: Parts, columns: Columns, x: np.ndarray, own: np.ndarray, known: np.ndarray, *, index: int, num_walks: int
) -> UnsureRow:
    """Why a row is uncertain, by `num_walks` walks to it from typical rows, each taken in an order and its reverse.

    Arguments:
        parts_at: epistemic and aleatoric uncertainty of rows, (rows, 2).
        x: the row, (numbers,).
        own: its uncertainty, (2,).
        known: that of the rows of `columns`, (rows, 2).
        index: of the row in the data.
    """
    names, rng = columns.varying, np.random.default_rng(index)
    num_pairs = (num_walks + 1) // 2
    # Rows of every uncertainty, so that few of them are like all.
    ranked = np.argsort(known.sum(axis=1), kind="stable")
    starts = np.repeat(ranked[((np.arange(num_pairs) + 0.5) * len(known) / num_pairs).astype(int)], 2)[:num_walks]
    orders = [order[::step] for order in (rng.permutation(len(names)) for _ in range(num_pairs)) for step in (1, -1)]
    between = np.stack([_steps(columns, columns.x[z], x, order) for z, order in zip(starts, orders, strict=False)])
    found = parts_at(between.reshape(-1, len(x))) if len(names) > 1 else np.empty((0, 2))
    ends = np.broadcast_to(own, (num_walks, 1, 2))
    walks = np.concatenate([known[starts, None], found.reshape(num_walks, -1, 2), ends], axis=1)
    turns = np.stack([np.argsort(order) for order in orders[:num_walks]])
    shares = np.take_along_axis(np.diff(walks, axis=1), turns[..., None], axis=1).mean(axis=0)
    order = np.argsort(-shares.sum(axis=1), kind="stable")
    return UnsureRow(
        index=index,
        epistemic=float(own[0]),
        aleatoric=float(own[1]),
        typical=(float(known[starts, 0].mean()), float(known[starts, 1].mean())),
        because={names[place]: (float(shares[place, 0]), float(shares[place, 1])) for place in order},
        values={name: columns.in_words(name, x[columns.places[name]]) for name in names},
    )


def _steps(columns: Columns, start: np.ndarray, end: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The rows between two, as one column after another changes, (columns − 1, numbers)."""
    rows = np.repeat(start[None], max(len(order) - 1, 0), axis=0)
    for step, number in enumerate(order[:-1]):
        place = columns.places[columns.varying[number]]
        rows[step:, place] = end[place]
    return rows


def parts_of(prediction: Predictive, scale: np.ndarray) -> np.ndarray:
    """Epistemic and aleatoric uncertainty of each row, (rows, 2); several outputs count in shares of `scale`."""
    both = (np.asarray(part, np.float64) for part in (prediction.epistemic, prediction.aleatoric))
    return np.stack([part if part.ndim == 1 else (part / scale).mean(axis=1) for part in both], axis=1)
