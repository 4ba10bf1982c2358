"""Tables of figures, from the JSON that `python -m benchmarks --keep docs/figures …` writes: none is typed by hand.

.. figures:: which        the tables of one benchmark, with the command that made them, when, and on what
.. kept::                 which benchmarks have left tables behind
.. methods:: which        what the registry says of each method, beside its figures
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from credo.inference.catalogue import entries

# Programs print a hyphen.
MINUS = re.compile(r"(?<![\w.])-(?=\d)")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("figures", Figures)
    app.add_directive("kept", Overview)
    app.add_directive("methods", Methods)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Kept(SphinxDirective):
    """What benchmarks have left behind."""

    optional_arguments = 1

    def kept(self) -> Iterator[dict[str, Any]]:
        folder = Path(self.env.srcdir) / "figures"
        for file in [folder / f"{one}.json" for one in self.arguments] or sorted(folder.glob("*.json")):
            self.env.note_dependency(str(file))
            yield json.loads(file.read_text(encoding="utf-8"))


class Figures(Kept):
    """The tables as they were printed."""

    required_arguments, optional_arguments = 1, 0

    def run(self) -> list[nodes.Node]:
        (one,) = self.kept()
        origin = nodes.paragraph("", "", nodes.literal(text=one["command"]), nodes.Text(f" · {when_and_where(one)}"))
        return [origin, *(table(made["columns"], made["rows"], made["title"]) for made in one["tables"])]


class Overview(Kept):
    """The commands that have been run, with the day and the machine."""

    optional_arguments = 0

    def run(self) -> list[nodes.Node]:
        rows = [[one["command"], day(one), one["machine"]] for one in self.kept()]
        return [table(["command", "on", "machine"], rows, "What has been kept", names=True)]


def when_and_where(one: dict[str, Any]) -> str:
    return f"{day(one)}, on {one['machine']}"


def day(one: dict[str, Any]) -> str:
    """Its date, which is not to be broken."""
    return one["date"].replace("-", "\N{NON-BREAKING HYPHEN}")


class Methods(Kept):
    """Every method of the registry: what it is good for, and what was measured."""

    def run(self) -> list[nodes.Node]:
        (made,) = next(self.kept())["tables"]
        figures = {row[0]: row[1:] for row in made["rows"]}
        said = [
            [f"credo.{one.type.__name__}", guide.exact, guide.use_cases, guide.costs]
            for one in entries()
            for guide in [one.type.guide]
        ]
        measured = [[f"credo.{one.type.__name__}", *figures[one.name]] for one in entries()]
        return [
            table(["method", "exact?", "use it for", "it costs"], said, "What the methods are for", names=True),
            table(made["columns"], measured, made["title"], names=True),
        ]


def table(columns: list[str], rows: list[list[str]], title: str, *, names: bool = False) -> nodes.table:
    """A table of text; names in the first column are code, and so links."""
    group = nodes.tgroup(cols=len(columns))
    group += [nodes.colspec(colwidth=1) for _ in columns]
    head, body = nodes.thead(), nodes.tbody()
    head += _row([nodes.Text(one) for one in columns])
    for first, *others in rows:
        body += _row(
            [
                nodes.literal(text=first) if names else nodes.Text(first),
                *(nodes.Text(MINUS.sub("−", one.replace("`", ""))) for one in others),
            ]
        )
    group += [head, body]
    return nodes.table("", nodes.title(text=title), group)


def _row(cells: list[nodes.Node]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))
