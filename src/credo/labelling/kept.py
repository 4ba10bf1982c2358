"""The labels as a table: what the log comes to, written anew from it whenever it is asked for."""

import threading
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from credo.labelling.answers import Answer
from credo.labelling.session import Labelling
from credo.tables.predictions import write

LOG_SUFFIX = ".log.jsonl"
# A table of many labels takes a while to write, and nobody looks at it each second.
SECONDS_BETWEEN = 2.0
# Beside the columns of the pool and the label.
BESIDE = ("item", "answer", "labellers", "disagreement")


@dataclass(frozen=True)
class Verdict:
    """What the answers about one item come to.

    Arguments:
        kind: "label", "none" or "flag", as of an `Answer`: a flag by anyone, else what most people say.
        label: what most people say.
        labellers: who said anything, but for those who skipped it.
        disagreement: the share of labels that differ from it.
    """

    kind: str
    label: str | None
    labellers: tuple[str, ...]
    disagreement: float

    @classmethod
    def of(cls, answers: Iterable[Answer]) -> "Verdict | None":
        """The majority, and of equals what was said first; None where everybody skipped the item.

        >>> said = {"ana": "cat", "bo": "dog"}
        >>> Verdict.of([Answer("7", "label", label, who, who, 0.0, "") for who, label in said.items()])
        Verdict(kind='label', label='cat', labellers=('ana', 'bo'), disagreement=0.5)
        """
        said = sorted((answer for answer in answers if answer.kind != "skip"), key=lambda answer: answer.time)
        if not said:
            return None
        labellers = tuple(sorted({answer.labeller for answer in said} - {""}))
        if any(answer.kind == "flag" for answer in said):
            return cls("flag", None, labellers, 0.0)
        # Counters keep the order in which things came, also among equals.
        ((label, most),) = Counter(answer.label for answer in said).most_common(1)
        return cls("none" if label is None else "label", label, labellers, 1 - most / len(said))


def log_of(out: Path) -> Path:
    """The log beside a table of labels."""
    return out.with_name(out.name + LOG_SUFFIX)


def require_own(out: Path) -> None:
    """Refuse to replace a file that no labelling has written."""
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"out is {str(out)!r}; name a file that ends in .csv or .parquet, such as labels.csv")
    if out.exists() and not log_of(out).exists():
        raise ValueError(f"out is {str(out)!r}, which is there already, and no labelling wrote it; choose another name")


def labels_table(labelling: Labelling, *, target: str = "label") -> pl.DataFrame:
    """One row for each item that something was said of, in their order: its columns, its label, and who said so.

    Arguments:
        target: the name of the column of labels.
    """
    verdicts = {item: Verdict.of(answers) for item, answers in labelling.said().items()}
    found = [(item, verdict) for item, verdict in verdicts.items() if verdict is not None]
    fields = [dict(labelling.pool.fields(item)) for item, _ in found]
    columns = [column for column in labelling.pool.columns if column not in (*BESIDE, target)]
    item, answer, labellers, disagreement = BESIDE
    return pl.DataFrame(
        {item: [item for item, _ in found]}
        | {column: [row[column] for row in fields] for column in columns}
        | {
            target: [verdict.label for _, verdict in found],
            answer: [verdict.kind for _, verdict in found],
            labellers: ["; ".join(verdict.labellers) for _, verdict in found],
            disagreement: [round(verdict.disagreement, 4) for _, verdict in found],
        },
        schema_overrides={target: pl.String},
    )


def write_labels(labelling: Labelling, out: Path, *, target: str = "label") -> None:
    """Write the labels as a table, whole or not at all."""
    write([labels_table(labelling, target=target)], out)


class Keeper:
    """Writes the table anew some time after each answer, in a thread of its own: the answers themselves are kept."""

    def __init__(self, labelling: Labelling, out: Path, target: str) -> None:
        self._labelling, self._out, self._target = labelling, out, target
        self._news, self._is_stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
        self.write()
        labelling.subscribe(self._news.set)
        self._thread.start()

    def write(self) -> None:
        """Write it now."""
        write_labels(self._labelling, self._out, target=self._target)

    def _run(self) -> None:
        while self._news.wait() and not self._is_stopped.wait(SECONDS_BETWEEN):
            self._news.clear()
            try:
                self.write()
            except OSError as error:
                warnings.warn(f"{error}; the answers are in {log_of(self._out)}", stacklevel=2)

    def close(self) -> None:
        """Write it a last time."""
        self._is_stopped.set()
        self._news.set()
        self._thread.join()
        self.write()
