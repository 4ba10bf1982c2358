"""What the file of results of `python -m benchmarks tables` holds, as a page, so that nobody types a figure.

    python -m benchmarks.table_page [RESULTS.jsonl] > docs/tables_measured.md

The last fit of each kind counts, whatever the version of credo's code that made it.
"""

import io
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks import table_figures
from benchmarks.resumable import Fit, Results
from benchmarks.tables import GAPS, LABELS, LARGE, RESULTS, SPLITS, Task, settings_of

HEAD = """# Tables, measured

Written by `python -m benchmarks.table_page > docs/tables_measured.md` from `benchmarks/results/tables.jsonl`, which
`python -m benchmarks tables` goes on with; [quality.md](quality.md#tables-everything-at-its-default) says how to read
it. A figure without an error is of one split. Other work ran beside these fits: seconds on the clock say little, those
of the processors more.
"""
SECTIONS = (("Splits", SPLITS), ("Where nobody has been", GAPS), ("Larger tables", LARGE), ("Classes", LABELS))


def main(arguments: Sequence[str] = ()) -> None:
    """Print the page."""
    print(page(Results(Path(arguments[0]) if arguments else RESULTS)), end="")


def page(results: Results) -> str:
    """All that has been fitted, as Markdown."""
    written = io.StringIO()
    with redirect_stdout(written):
        print(HEAD)
        for title, task in SECTIONS:
            if found := found_in(results, task):
                print(f"\n## {title}\n")
                table_figures.SHOW[task.name](found, list(dict.fromkeys(fit.name for fit in found)), True)
                if task is SPLITS and (own := _of_credo(found)):
                    print("\n## Verdicts\n")
                    table_figures.show_verdicts(own, markdown=True)
    lines = "\n".join(line.rstrip() for line in written.getvalue().splitlines())
    return re.sub(r"\n{3,}", "\n\n", lines) + "\n"


def found_in(results: Results, task: Task) -> dict[Fit, dict[str, Any]]:
    """The last scores of each fit of a task, in the order of its sets and methods."""
    last = {}
    for row in results.rows:
        fit = Fit(*row["fit"])
        if fit.method in task.methods and settings_of(task, fit.method).items() <= row["settings"].items():
            last[fit] = row["scores"]
    sets, methods = list(task.sets), list(task.methods)
    order = sorted(last, key=lambda fit: (sets.index(fit.name), methods.index(fit.method), fit.split))
    return {fit: last[fit] for fit in order}


def _of_credo(found: Mapping[Fit, dict[str, Any]]) -> dict[Fit, dict[str, Any]]:
    return {fit: scores for fit, scores in found.items() if fit.method == table_figures.CREDO}


if __name__ == "__main__":
    main(sys.argv[1:])
