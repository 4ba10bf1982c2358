"""From what a person types to a labelling: the pool, its classes, the log, and who learns meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from credo._stopping import STOP
from credo.labelling.answers import Answers
from credo.labelling.kept import Keeper, log_of, require_own
from credo.labelling.pool import Pool
from credo.labelling.pools import read_pool
from credo.labelling.session import Labelling, Learner, checked_classes
from credo.tables.source import Source


@contextmanager
def opened(
    path: str | Path | Source,
    out: str | Path = "labels.csv",
    *,
    target: str | None = None,
    classes: Sequence[str] | None = None,
    learner: Learner | None = None,
    per_item: int = 1,
    seed: int = 0,
) -> Iterator[Labelling]:
    """Label a pool: whatever is answered meanwhile is in the log at once, and in the table of labels at the end.

    Arguments:
        path: of the pool, as for `read_pool`.
        out: the table of labels, .csv or .parquet; its log stands beside it, and is gone on with.
        target: the column that is asked for.
        classes: names of the classes; by default those that the target has already.
        learner: learns in the background.
        per_item: how many people are asked about each item.
        seed: of all that is left to chance.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import credo
    >>> with TemporaryDirectory() as folder:
    ...     pool, labels = Path(folder) / "reviews.txt", Path(folder) / "labels.csv"
    ...     _ = pool.write_text("a fine film\\ntoo long\\n")
    ...     with credo.labelling.opened(pool, labels, classes=["good", "bad"]) as labelling:
    ...         len(labelling.pool), labelling.classes
    (2, ('good', 'bad'))
    """
    table = Path(out)
    require_own(table)
    pool = read_pool(path, target=target)
    names = checked_classes(_classes(pool, target) if classes is None else classes)
    with (
        Answers(log_of(table)) as answers,
        Labelling(pool, names, answers, learner, per_item, seed=seed) as labelling,
    ):
        keeper = Keeper(labelling, table, target or "label")
        # A stop that is asked for waits until the table is written.
        with STOP.heard():
            try:
                yield labelling
            finally:
                keeper.close()


def _classes(pool: Pool, target: str | None) -> list[str]:
    found = sorted(set(pool.given.values()))
    if len(found) < 2:
        what = f"the column {target!r} has {len(found)} different values" if target else "no classes are named"
        raise ValueError(f"{pool.path}: {what}; name at least two classes, classes=['cat', 'dog']")
    return found
