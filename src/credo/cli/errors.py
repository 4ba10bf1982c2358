"""One policy for errors: what users can fix is one line on stderr and exit code 2.

Anything else is a bug in credo: it keeps its traceback, and exit code 1.
"""

import functools
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import typer

from credo.cli.voice import in_flags

USER_ERROR, INTERRUPTED = 2, 130
FIXABLE = (ValueError, OSError, MemoryError)


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors and warnings are one line each; with --verbose also a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _note
            try:
                command(*args, **options)
            except KeyboardInterrupt as stop:
                typer.echo(f"credo: interrupted{_in_one_line(stop, before='; ')}", err=True)
                raise typer.Exit(INTERRUPTED) from stop
            except BrokenPipeError as closed:
                # The reader of our output has closed it; without this Python would complain when it flushes.
                sys.stdout = None
                raise typer.Exit(0) from closed
            except (*FIXABLE, ArithmeticError) as error:
                if not _is_fixable(error):
                    raise
                if options.get("verbose"):
                    traceback.print_exc()
                typer.echo(f"credo: {_in_one_line(error)}", err=True)
                raise typer.Exit(USER_ERROR) from error

    return wrapped


def _is_fixable(error: Exception) -> bool:
    if not isinstance(error, ArithmeticError):
        return True
    from credo.inference.outcome import NonFiniteError  # lazy: imports JAX

    return isinstance(error, NonFiniteError)


def _note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):
        typer.echo(f"credo: note: {_in_one_line(message)}", err=True)


def _in_one_line(message: Any, *, before: str = "") -> str:
    text = in_flags(" ".join(str(message).split()))
    if not text and isinstance(message, Exception):
        text = type(message).__name__
    return f"{before}{text}" if text else ""
