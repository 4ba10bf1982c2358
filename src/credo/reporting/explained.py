"""The part of a report that says what the posterior goes by."""

from typing import Any

from credo import plot
from credo.data import Data
from credo.explaining import explain
from credo.explaining.explain import Explanation
from credo.plot import style
from credo.posterior import Student
from credo.reporting.page import Section

# A table of more columns is an embedding: no single one of them says anything.
MAX_COLUMNS = 100


def explained(posterior: Any, test: Data) -> Section | None:
    """Importance, partial dependence and the most uncertain rows; None of what has no columns to speak of."""
    own = getattr(posterior, "posterior", posterior)
    columns = len(set(test.columns or range(test.x.shape[-1])))
    varies = test.y[test.labelled].std(axis=0).all() if test.num_labelled > 1 else False
    if isinstance(own, Student) or test.x.ndim != 2 or not 1 < columns <= MAX_COLUMNS or not varies:
        return None
    return _section(explain(posterior, test))


def _section(found: Explanation) -> Section:
    section = Section("What it goes by")
    section.text(
        f"How much R² falls when a column is shuffled, on {found.num_rows:,} test rows, for each draw of the "
        "posterior; the error is that of the draws and of the rows. It is about the model, and no proof of causes."
    )
    section.table(("column", "fall of R²", "standard error", "in plain words"), found.table(), numbers=(1, 2))
    for row in found.rows:
        section.text(f"{str(row)[0].upper()}{str(row)[1:]}.")
    section.figure(style.svg(plot.importance(found)), "The fall of R² when each column is shuffled")
    for name in found.dependence:
        caption = f"The prediction over {name}, averaged over the other columns, with 95% of the draws"
        section.figure(style.svg(plot.dependence(found, name)), caption)
    if found.rows:
        caption = f"Where the uncertainty of row {found.rows[0].index + 1} comes from, the greatest of all"
        section.figure(style.svg(plot.unsure(found.rows[0])), caption)
    return section
