"""The page at the end of an example: words and tables, written next to the figures and printed."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from credo._files import write_text


def say(text: str) -> None:
    """Print a line."""
    Console().print(text, soft_wrap=True, highlight=False)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown: the first column holds words, the others numbers.

    >>> print(table(["method", "mean"], [["NUTS", "0.49"]]))
    | method | mean |
    |:---|---:|
    | NUTS | 0.49 |
    """
    rule = [":---", *("---:" for _ in header[1:])]
    lines = [" | ".join(header), "|".join(rule), *(" | ".join(row) for row in rows)]
    return "\n".join(f"|{line}|" if line == lines[1] else f"| {line} |" for line in lines)


def finish(out: Path, text: str) -> list[Path]:
    """Write the page as `verdict.md`, print it, and list the files of the folder."""
    write_text(out / "verdict.md", text + "\n")
    console = Console()
    console.print(Markdown(text))
    files = sorted(path for path in out.iterdir() if path.suffix in (".png", ".md"))
    console.print(f"\nFiles in [bold]{escape(str(out.resolve()))}[/]:", soft_wrap=True)
    for path in files:
        console.print(f"  {path.name}", highlight=False, markup=False)
    return files
