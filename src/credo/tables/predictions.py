"""Predictions as tables, and their files, batch by batch."""

import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from credo._files import LoadError, put
from credo.predictive import ClassPredictive, Predictive
from credo.tables.target import Target

# Widths of the training range that a row may be beyond it untold: new rows of the same kind often are, a little.
FAR = 0.1
WRITABLE_SUFFIXES = (".csv", ".parquet", ".npz")
# A spreadsheet takes a cell that begins so for a formula, and runs it: OWASP, "CSV Injection". The last are wide forms.
FORMULA = "^[=+\\-@\t\r\n＝＋－＠]"


def prediction_frame(prediction: Predictive, target: Target, *, level: float = 0.95) -> pl.DataFrame:
    """A prediction as a table, one row per row.

    Regression: mean, sd, epistemic_sd and aleatoric_sd (sd² is the sum of their squares), and lower and
    upper, between which the target lies with probability `level`; of several targets, with their names before each
    (price_mean, price_sd, …). Classes: the probability of each, the most probable
    label, entropy and mutual information in nats.
    """
    if not isinstance(prediction, ClassPredictive):
        answers = {
            "mean": prediction.mean,
            "sd": prediction.std,
            "epistemic_sd": np.sqrt(prediction.epistemic) + 0.0,  # never −0
            "aleatoric_sd": np.sqrt(prediction.aleatoric),
        }
        lower, upper = prediction.interval(level)
        return pl.DataFrame(named(answers | {"lower": lower, "upper": upper}, target))
    probs = prediction.probs
    if probs.shape[1] != len(target.labels):
        raise LoadError(f"the columns name {len(target.labels)} classes of {target.name!r}, the model {probs.shape[1]}")
    return pl.DataFrame(
        {f"p_{label}": probs[:, place] for place, label in enumerate(target.labels)}
        | {
            "label": [target.labels[place] for place in prediction.label],
            "entropy": prediction.entropy,
            "mutual_information": prediction.mutual_information,
        }
    )


def named(answers: Mapping[str, np.ndarray], target: Target) -> dict[str, np.ndarray]:
    """Answers as columns of a table; those about several targets, (rows, targets), with their names before each."""
    if not target.also:
        return dict(answers)
    return {
        f"{name}_{answer}": values[:, place]
        for place, name in enumerate(target.columns)
        for answer, values in answers.items()
    }


@dataclass
class FarRows:
    """Counts rows outside the training rows, batch by batch, to tell of them once.

    Arguments:
        names: of the inputs.
    """

    names: tuple[str, ...]
    num_rows: int = 0
    num_far: int = 0
    furthest: tuple[float, str, int] = (0.0, "", 0)

    def see(self, distance: np.ndarray, place: np.ndarray) -> np.ndarray:
        """A batch of rows: how far each is outside, and by which input; returns the distances."""
        row = int(np.argmax(distance))
        if distance[row] > self.furthest[0]:
            self.furthest = (float(distance[row]), self.names[place[row]], self.num_rows + row + 1)
        self.num_rows += len(distance)
        self.num_far += int(np.sum(distance > FAR))
        return distance

    def warn(self) -> None:
        """Say how many there were, if any."""
        if self.num_far:
            distance, name, row = self.furthest
            warnings.warn(
                f"outside the training range: {self.num_far:,} of {self.num_rows:,} rows (column outside above {FAR}); "
                f"the furthest is row {row:,}, {distance:.3g} times the range of {name} beyond it. Nobody has seen "
                "what happens there, so do not trust their intervals",
                stacklevel=3,
            )


def regrouped(
    batches: Iterable[tuple[pl.DataFrame, np.ndarray]], size: int
) -> Iterator[tuple[pl.DataFrame, np.ndarray]]:
    """The same rows in batches of one size, except the last: one size is compiled only once."""
    frames: list[pl.DataFrame] = []
    arrays: list[np.ndarray] = []
    for frame, x in batches:
        frames, arrays = [*frames, frame], [*arrays, x]
        if sum(map(len, arrays)) >= size:
            whole, values = pl.concat(frames), np.concatenate(arrays)
            num_whole = len(values) // size * size
            for first in range(0, num_whole, size):
                yield whole[first : first + size], values[first : first + size]
            frames, arrays = [whole[num_whole:]], [values[num_whole:]]
    if sum(map(len, arrays)):
        yield pl.concat(frames), np.concatenate(arrays)


def write(frames: Iterable[pl.DataFrame], path: str | Path) -> int:
    """Write frames one below the other into a .csv, .parquet or .npz file, which appears only when complete.

    Returns the number of rows. A CSV is written as the rows come; the other formats need all of them at once.
    """
    target = Path(path)
    if target.suffix.lower() not in WRITABLE_SUFFIXES:
        raise ValueError(f"{target} has an unknown suffix; name a file that ends in {', '.join(WRITABLE_SUFFIXES)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    num_rows = 0

    def fill(fresh: Path) -> None:
        nonlocal num_rows
        with fresh.open("wb") as file:
            is_csv = target.suffix.lower() == ".csv"
            num_rows = write_csv(frames, file) if is_csv else _write_whole(frames, file, target)

    put(target, fill)
    return num_rows


def write_csv(frames: Iterable[pl.DataFrame], file: IO[bytes]) -> int:
    """Write frames one below the other as CSV; returns the number of rows.

    A text, or a column's name, that a spreadsheet would take for a formula begins with an apostrophe, which it does not
    show: '=1+1 for =1+1. Numbers stay as they are, also where they are text.
    """
    num_rows = 0
    for frame in frames:
        harmless(frame).write_csv(file, include_header=num_rows == 0)
        num_rows += len(frame)
    return num_rows


def harmless(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame without cells and names that a spreadsheet would run.

    >>> harmless(pl.DataFrame({"=n": ["-1.5", "-a", "b"]})).rows(named=True)
    [{"'=n": '-1.5'}, {"'=n": "'-a"}, {"'=n": 'b'}]
    """
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise ValueError(f"the column {name!r} holds {dtype}, which CSV cannot; write .parquet, or do not keep it")
    texts = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    is_formula = texts.str.contains(FORMULA) & texts.cast(pl.Float64, strict=False).is_null()
    guarded = frame.with_columns(pl.when(is_formula).then("'" + texts).otherwise(texts).name.keep())
    return guarded.rename(lambda name: f"'{name}" if re.match(FORMULA, name) else name)


def _write_whole(frames: Iterable[pl.DataFrame], file: IO[bytes], target: Path) -> int:
    whole = pl.concat(list(frames))
    if target.suffix.lower() == ".parquet":
        whole.write_parquet(file)
    else:
        # As np.savez writes it, but that cannot store an array named `file`.
        with zipfile.ZipFile(file, "w") as archive:
            for name in whole.columns:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, _plain(whole[name]), allow_pickle=False)
    return len(whole)


def _plain(column: pl.Series) -> np.ndarray:
    """An array that NPZ stores without pickle: text of a fixed width."""
    values = column.to_numpy()
    return values if values.dtype.kind != "O" else np.asarray(["" if value is None else str(value) for value in values])
