"""One look for all tables: words to the left, numbers to the right. They can be kept, for the documentation."""

import json
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

console = Console(width=150)

WORDS = ("problem", "what", "what grows", "network", "method", "family", "peer", "prior", "published")


# Every table of this process, in the order in which they were begun.
_TABLES: list[Table] = []


def new_table(title: str, *columns: str) -> Table:
    """An empty table."""
    table = Table(title=title, title_justify="left")
    _TABLES.append(table)
    for column in columns:
        table.add_column(column, justify="left" if column in WORDS else "right")
    return table


def show(table: Table, *, markdown: bool = False) -> None:
    """Print a table; as Markdown, to be put into a document, it is as wide as it has to be."""
    if not markdown:
        console.print(table)
        return
    title, table.title, table.box = table.title, None, box.MARKDOWN
    for row in table.rows:
        row.end_section = False
    wide = Console(width=400)
    wide.print(f"\n**{title}**\n", table, sep="\n")


def keep(folder: Path, name: str, command: str) -> None:
    """Write the tables so far to `folder/name.json`, with the command that made them, and forget them."""
    tables = [
        {
            "title": str(table.title),
            "columns": [str(column.header) for column in table.columns],
            "rows": [list(row) for row in zip(*(column.cells for column in table.columns), strict=True)],
        }
        for table in _TABLES
    ]
    _TABLES.clear()
    if tables:
        text = json.dumps({"command": command, "tables": tables}, indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
