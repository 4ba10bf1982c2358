"""How commands speak: to people in words and tables, to machines in JSON, or not at all."""

import json
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credo._text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 140

Unknown = Annotated[
    str, typer.Option(help="New categories and text among numbers: error, or missing to treat them as missing.")
]
Monotone = Annotated[str | None, typer.Option(help="Columns with which the prediction rises or falls: size:+,age:-.")]
Smooth = Annotated[bool | None, typer.Option("--smooth", help="Prefer functions that change slowly.")]
Strength = Annotated[
    float | None, typer.Option(help="How strongly --monotone and --smooth hold: 2 is twice as much. [default: 1]")
]
Group = Annotated[
    str | None, typer.Option(help="The column of what several rows share (patient): rows held out are whole groups.")
]
Time = Annotated[str | None, typer.Option(help="The column of dates or numbers in time: rows held out are the latest.")]
Counts = Annotated[str | None, typer.Option(help="The column of how often each row was seen: 2 is the row twice.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same bits.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a run that is already there.")]
Precisions = Annotated[
    str | None, typer.Option(help="The column of how precisely each row was measured: 2 is half the variance of noise.")
]
Json = Annotated[bool, typer.Option("--json", help="Say it as JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more; show where an error came from.")]


# The library names its arguments as Python does; commands take these as flags.
ARGUMENT = re.compile(
    r"\b(again|data|decimal|drop|encoding|method|network|new_classes|overwrite|resume|sep|sheet|target|task|unknown)="
    r"(?:True|'([^']*)'|(…))"
)


def in_flags(text: str) -> str:
    """A message of the library with flags in place of arguments.

    >>> in_flags("choose task='regression', or continue with resume=True")
    'choose --task regression, or continue with --resume'
    """
    return ARGUMENT.sub(
        lambda found: " ".join([f"--{found[1].replace('_', '-')}", *filter(None, found.groups()[1:])]), text
    )


def how_to_continue(run: Path) -> str:
    """The command that goes on with a run."""
    return f"to continue: credo fit --resume --out {shlex.quote(str(run))}"


def as_json_text(content: Any) -> str:
    """JSON in letters that stdout has: none may become a question mark."""
    has_all = (sys.stdout.encoding or "").lower().startswith("utf")
    return json.dumps(content, indent=2, ensure_ascii=not has_all, default=str)


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

            # A file or a pipe has no width, and the default of 80 columns would truncate tables.
            width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
            text = visible(in_flags(message)) if isinstance(message, str) else message
            Console(width=width, highlight=False, markup=markup, soft_wrap=isinstance(message, str)).print(text)

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
            table.add_row(*(Text(visible(in_flags(cell))) for cell in row))
        self.say(table)

    def verdict(self, status: str, answers: "Iterable[str]", to_do: "Iterable[str]" = ()) -> None:
        """How far to trust a fit, why, and what to do about it."""
        from credo.diagnostics.status import Status  # lazy: imports NumPy

        self.say(f"Verdict: {Status(status).words}")
        for line in answers:
            self.say(f"  {line}")
        for line in to_do:
            self.say(line)

    def result(self, content: Any) -> None:
        """The result, for machines."""
        if self.as_json:
            typer.echo(as_json_text(content))
