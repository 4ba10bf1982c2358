"""One look for all tables: words to the left, numbers to the right."""

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
