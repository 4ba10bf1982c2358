"""One look for all tables: words to the left, numbers to the right. They can be kept, for the documentation."""

import datetime
import json
import os
import platform
from pathlib import Path

import jax
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


def keep(file: Path, command: str) -> None:
    """Write the tables so far to a file, with what made them, when and where, and forget them."""
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
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        kept = {"command": command, "date": today, "machine": machine(), "tables": tables}
        text = json.dumps(kept, indent=1, ensure_ascii=False)
        file.write_text(f"{text}\n", encoding="utf-8")


def machine() -> str:
    """What this runs on, in words, and how much else runs there: times mean little without."""
    versions = f"{platform.system()}, Python {platform.python_version()}, JAX {jax.__version__}"
    return f"{os.cpu_count()} cores ({platform.machine()}), {versions}, load {os.getloadavg()[0]:.1f} at the end"
