"""One policy for what goes wrong: what users can mend is one line on stderr, and exit code 2.

What they cannot mend is a fault of credo: it keeps its traceback, and exit code 1.
"""

import functools
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import typer

USER_ERROR, INTERRUPTED = 2, 130
MENDABLE = (ValueError, OSError, MemoryError)


def told(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors and warnings are told in one line each; with --verbose also where they came from."""

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
                # Whoever read our output has seen enough; Python would complain once more when it flushes.
                sys.stdout = None
                raise typer.Exit(0) from closed
            except (*MENDABLE, ArithmeticError) as error:
                if not _is_mendable(error):
                    raise
                if options.get("verbose"):
                    traceback.print_exc()
                typer.echo(f"credo: {_in_one_line(error)}", err=True)
                raise typer.Exit(USER_ERROR) from error

    return wrapped


def _is_mendable(error: Exception) -> bool:
    if not isinstance(error, ArithmeticError):
        return True
    from credo.inference.outcome import NonFiniteError

    return isinstance(error, NonFiniteError)


def _note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):
        typer.echo(f"credo: note: {_in_one_line(message)}", err=True)


def _in_one_line(message: Any, *, before: str = "") -> str:
    text = " ".join(str(message).split())
    if not text and isinstance(message, Exception):
        text = type(message).__name__
    return f"{before}{text}" if text else ""
