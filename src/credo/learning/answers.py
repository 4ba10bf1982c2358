"""What was asked of an oracle, and what it answered: in memory, and on disk before the next question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from credo._files import LoadError, read_json, require_unaltered, write_json
from credo.data.missing import MISSING_LABEL, filled, is_observed

FORMAT = "credo-active-learning"
FILE = "answers.json"


@dataclass
class Answers:
    """The rows that were asked about, batch by batch, and the answers in the same order; None for "cannot tell".

    Arguments:
        num_rows: of the pool.
        identity: which run this is, as JSON.
        folder: where it is written down, if anywhere.
    """

    num_rows: int
    identity: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    batches: list[list[int]] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    @property
    def rows(self) -> list[int]:
        """All rows that were asked about, in order."""
        return [row for batch in self.batches for row in batch]

    @property
    def open(self) -> list[int]:
        """Rows that were asked about and have no answer yet."""
        return self.rows[len(self.values) :]

    def ask(self, rows: Sequence[int]) -> None:
        """A new batch of questions."""
        self.batches.append([int(row) for row in rows])
        self._write()

    def answer(self, values: Iterator[Any]) -> None:
        """Answers to what is open, each of which is kept before the next one is asked for."""
        for _, value in zip(self.open, values, strict=False):
            self.values.append(_plain(value))
            self._write()

    def targets(self, known: np.ndarray | None) -> np.ndarray:
        """All that is known of y, (rows, …), with missing values: the answers, and what was known before."""
        rows = [row for row, value in zip(self.rows, self.values, strict=False) if value is not None]
        told = np.asarray(filled([value for value in self.values if value is not None]))
        like = told if len(told) or known is None else known
        whole = like.dtype.kind != "f" and (known is None or known.dtype.kind != "f")
        y = np.full((self.num_rows, *like.shape[1:]), MISSING_LABEL if whole else np.nan)
        y = y.astype(np.int64) if whole else y
        if known is not None:
            y[...] = np.where(is_observed(known), known, y)
        y[rows] = np.where(is_observed(told), told, y[rows])
        return y

    def _write(self) -> None:
        if self.folder is not None:
            content = {"format": FORMAT, "run": self.identity, "batches": self.batches, "answers": self.values}
            write_json(self.folder / FILE, content)

    def restore(self, *, resume: bool) -> None:
        """What the folder holds of this run; a ValueError if it is another's, or not to be gone on with."""
        if self.folder is None or not (self.folder / FILE).exists():
            return
        path = self.folder / FILE
        held = require_unaltered(path, read_json(path))
        if held.get("format") != FORMAT:
            raise LoadError(f"{path} was not written by credo.active")
        if not resume:
            raise ValueError(f"{self.folder} holds answers; pass resume=True to go on with them, or another folder")
        different = sorted(name for name in self.identity if held["run"].get(name) != self.identity[name])
        if different:
            raise ValueError(
                f"{self.folder} holds another run: its {', '.join(different)} differ; pass what it was begun with, or "
                "choose another folder"
            )
        self.batches, self.values = held["batches"], held["answers"]


def _plain(value: Any) -> Any:
    """An answer as JSON has it; None where nothing is known."""
    found = np.asarray(value)
    if value is None or found.dtype == object or not np.any(_is_known(found)):
        return None
    if found.dtype.kind not in "biuf" or found.ndim > 1:
        raise ValueError(
            f"the oracle answered {value!r}; expected a number, a class label 0, 1, …, a row of numbers, or None"
        )
    if found.ndim == 1 and found.size > 1:
        return [None if not known else one for one, known in zip(found.tolist(), _is_known(found), strict=True)]
    return found.reshape(()).astype(int).item() if found.dtype.kind == "b" else found.reshape(()).item()


def _is_known(values: np.ndarray) -> np.ndarray:
    return is_observed(values) if values.dtype.kind in "iuf" else np.full(values.shape, True)
