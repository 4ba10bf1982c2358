"""One policy for errors: what users can fix is one line on stderr and exit code 2.

Anything else is a bug in credo: it keeps its traceback, and exit code 1.
"""

import functools
import logging
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from credo._text import visible
from credo.cli.signals import exit_code
from credo.cli.voice import in_flags

USER_ERROR = 2
FIXABLE = (ValueError, OSError, MemoryError)


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors and warnings are one line each; with --verbose also a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            # Letters that the font of plots lacks are boxes, which is all that can be done about them.
            warnings.filterwarnings("ignore", r"Glyph .* missing from font")
            warnings.showwarning = _note
            # Where it cannot keep its list of fonts concerns nobody.
            logging.getLogger("matplotlib").setLevel(logging.ERROR)
            try:
                command(*args, **options)
            except KeyboardInterrupt as stop:
                typer.echo("; ".join(filter(None, ("credo: interrupted", _in_one_line(stop)))), err=True)
                raise typer.Exit(exit_code()) from stop
            except (*FIXABLE, ArithmeticError) as error:
                if not _is_fixable(error):
                    raise
                if options.get("verbose"):
                    traceback.print_exc()
                typer.echo(f"credo: {_in_one_line(error)}", err=True)
                raise typer.Exit(USER_ERROR) from error

    return wrapped


def require_folder(out: Path) -> None:
    """Refuse a name that cannot be a folder before anything is computed for it."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file, and --out names a folder; choose another")


def _is_fixable(error: Exception) -> bool:
    if not isinstance(error, ArithmeticError):
        return True
    from credo.inference.outcome import NonFiniteError  # lazy: imports JAX

    return isinstance(error, NonFiniteError)


def _note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):
        typer.echo(f"credo: note: {_in_one_line(message)}", err=True)


def _in_one_line(message: Any) -> str:
    text = str(message)
    if isinstance(message, OSError) and message.strerror:  # without its number, which nobody reads
        text = message.strerror if message.filename is None else f"{message.filename}: {message.strerror}"
    text = visible(in_flags(" ".join(text.split())))
    return text or (type(message).__name__ if isinstance(message, Exception) else "")
