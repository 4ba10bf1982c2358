"""How the files of a command are written: options that all commands share that read tables."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from credo.tables import Source

# From the name of a file to what is read.
Written: TypeAlias = "Callable[[Path], Source]"
TABS = ("\\t", "tab")

OPTIONS = {
    "sep": Annotated[str, typer.Option(help="What separates cells: ';', '|', tab. [default: found]")],
    "decimal": Annotated[str, typer.Option(help="The decimal mark, . or a comma. [default: each column tells]")],
    "encoding": Annotated[str, typer.Option(help="Of the text: cp1252, latin-1, utf-16. [default: utf-8]")],
    "sheet": Annotated[str, typer.Option(help="Of an Excel file that has several.")],
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """A command with options that say how its files are written; it takes what makes a `Source` of each, `written`."""
    own = inspect.signature(command)

    @functools.wraps(command)
    def wrapped(*args: Any, **given: Any) -> None:
        options = {name: given.pop(name) for name in OPTIONS}
        if options["sep"] in TABS:
            options["sep"] = "\t"

        def written(path: Path) -> "Source":
            from credo.tables import Source  # lazy: imports NumPy

            return Source(path, **options)

        command(*args, written=written, **given)

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default="", annotation=annotation)
        for name, annotation in OPTIONS.items()
    ]
    kept = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own.parameters.values()]
    place = [parameter.name for parameter in kept].index("written")
    wrapped.__signature__ = own.replace(parameters=[*kept[:place], *added, *kept[place + 1 :]])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {
        name: kind for name, kind in command.__annotations__.items() if name != "written"
    } | OPTIONS
    return wrapped
