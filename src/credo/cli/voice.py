"""How commands speak: to people in words and tables, to machines in JSON, or not at all."""

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 140

Unknown = Annotated[
    str, typer.Option(help="New categories and text among numbers: an error, or missing to treat them so.")
]
Json = Annotated[bool, typer.Option("--json", help="Say it as JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more; show where an error came from.")]


@dataclass(frozen=True)
class Voice:
    """Where the words of a command go."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def progress(self) -> bool | None:
        """Whether to show a bar: None leaves it to the terminal."""
        return False if self.as_json or self.quiet else None

    def say(self, message: Any, *, markup: bool = False) -> None:
        """A line or a table for people."""
        if not (self.as_json or self.quiet):
            from rich.console import Console

            # A file or a pipe has no width of its own, and 80 columns would cut tables short.
            width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
            Console(width=width, highlight=False, markup=markup, soft_wrap=isinstance(message, str)).print(message)

    def detail(self, message: Any) -> None:
        """A line for those who asked for more."""
        if self.verbose:
            self.say(message)

    def table(self, headings: "Iterable[str]", rows: "Iterable[Iterable[str]]") -> None:
        """A table of text for people."""
        from rich.table import Table
        from rich.text import Text

        table = Table(*headings)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self.say(table)

    def result(self, content: Any) -> None:
        """What came out, for machines."""
        if self.as_json:
            typer.echo(json.dumps(content, indent=2, ensure_ascii=False, default=str))
