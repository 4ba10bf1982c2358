"""What rows are to each other: which belong together, which came first, and how often each was seen."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from credo.data.missing import is_nothing


def as_groups(groups: Any, num_rows: int) -> np.ndarray | None:
    """A text for each row, equal where rows belong together.

    >>> as_groups([7, 8, 7], 3).tolist()
    ['7', '8', '7']
    """
    return None if groups is None else _per_row("groups", groups, num_rows).astype(str)


def as_times(times: Any, num_rows: int) -> np.ndarray | None:
    """A number for each row that grows with time, of numbers or dates."""
    if times is None:
        return None
    values = _per_row("times", times, num_rows)
    if values.dtype == object:
        values = np.asarray(values.tolist())
    if values.dtype.kind == "U":
        raise ValueError(f"times holds text, such as {str(values[0])!r}; pass numbers or dates")
    if values.dtype.kind == "O":
        values = values.astype("datetime64[us]")
    return values.astype("datetime64[us]").astype(np.float64) if values.dtype.kind == "M" else values.astype(np.float64)


def as_counts(counts: Any, num_rows: int) -> np.ndarray | None:
    """How often each row was seen, (rows,): finite, and not below zero.

    >>> as_counts([2, 0.5], 2).tolist()
    [2.0, 0.5]
    """
    if counts is None:
        return None
    found = weights_of("counts", counts, num_rows, lambda values: values >= 0, "how often it was seen, zero or more")
    if not found.any():
        raise ValueError("counts is zero in every row, so there is nothing to learn from; one must be above zero")
    return found


def weights_of(
    argument: str, values: Any, num_rows: int, allowed: Callable[[np.ndarray], np.ndarray], what: str
) -> np.ndarray:
    """A finite number for each row, (rows,), of those that are allowed; else an error that names the row."""
    given = np.asarray(values)
    if given.shape != (num_rows,):
        raise ValueError(f"{argument} has shape {given.shape}, and there are {num_rows} rows; pass one for each")
    if given.dtype.kind not in "biuf":  # each cell as it was, not as text like its neighbours
        given = np.asarray(values, object)
    found = np.array([value if isinstance(value, Real) else np.nan for value in given.tolist()], np.float64)
    bad = np.flatnonzero(~(np.isfinite(found) & allowed(found)))
    if len(bad):
        held = given.tolist()[bad[0]]
        said = f"{held:g}" if isinstance(held, Real) else repr(held)
        raise ValueError(f"{argument} is {said} in row {bad[0]}; pass {what}")
    return found


def one_each(name: str, parts: Sequence[Any]) -> dict[str, np.ndarray]:
    """A number for each row of several sets, one where a set does not tell; nothing if none does."""
    told = [getattr(one, name) for one in parts]
    if all(one is None for one in told):
        return {}
    return {
        name: np.concatenate(
            [np.ones(part.size) if own is None else own for part, own in zip(parts, told, strict=True)]
        )
    }


def share_of(rows: np.ndarray, fraction: float, labels: np.ndarray | None = None) -> np.ndarray:
    """A fraction of some rows, at least one of two; with labels, the same fraction of each of these.

    >>> share_of(np.arange(4), 0.5, np.array([1, 0, 1, 0])).tolist()
    [3, 2]
    """
    num = min(max(round(fraction * len(rows)), 1), max(len(rows) - 1, 0))
    if labels is None:
        return rows[:num]
    # Equally spaced rows of a list sorted by label visit every label in proportion.
    rows = rows[np.argsort(labels[rows], kind="stable")]
    return rows[((np.arange(num) + 0.5) * len(rows) / num).astype(int)]


def held_out(
    groups: np.ndarray | None,
    times: np.ndarray | None,
    labelled: np.ndarray,
    fraction: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Which rows a split holds out, (rows,): whole groups, at random or the latest ones, or all rows from a time on.

    The nearest that they can come to the fraction; never all rows with a target, and never none.

    >>> held_out(np.array([0, 0, 1, 2]), np.array([1.0, 5.0, 2.0, 3.0]), np.full(4, True), 0.5, None).tolist()
    [True, True, False, False]
    """
    units, places = np.unique(groups if groups is not None else times, return_inverse=True)  # type: ignore[call-overload]
    sizes = np.bincount(places, labelled)
    if times is None:
        order = rng.permutation(len(units))
    else:
        last = np.full(len(units), -np.inf)
        np.maximum.at(last, places, times)
        order = np.argsort(-last, kind="stable")
    order = order[sizes[order] > 0]
    if len(order) < 2:
        what = "times holds one time" if groups is None else "groups holds one group"
        raise ValueError(f"{what} with a target, and a split needs two; leave it out, or split the rows yourself")
    held = np.cumsum(sizes[order])[:-1]
    taken = int(np.argmin(np.abs(held - fraction * labelled.sum()))) + 1
    return np.isin(places, order[:taken])


def _per_row(argument: str, values: Any, num_rows: int) -> np.ndarray:
    found = np.asarray(values)
    if found.shape != (num_rows,):
        raise ValueError(f"{argument} has shape {found.shape}, and there are {num_rows} rows; pass one for each")
    gaps = np.isnat(found) if found.dtype.kind == "M" else np.array([is_nothing(value) for value in found.tolist()])
    if gaps.any():
        raise ValueError(f"{argument} is missing in row {int(np.argmax(gaps))}; fill it in, or leave the row out")
    return found
