"""One look for all tables: words to the left, numbers to the right."""

from rich import box
from rich.console import Console
from rich.table import Table

console = Console(width=150)

WORDS = ("problem", "what", "what grows", "network", "method", "family", "peer", "prior", "published")


def new_table(title: str, *columns: str) -> Table:
    """An empty table."""
    table = Table(title=title, title_justify="left")
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
