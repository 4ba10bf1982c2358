"""A bar for work that turns out to be long."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

T = TypeVar("T")

# Work that is done sooner shows nothing.
PATIENCE_SECONDS = 1.5


def tracked(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """The items as they come; where stderr is a terminal, a bar appears once they have taken a while."""
    began = time.perf_counter()
    bar = Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    task = bar.add_task(label, total=total)
    try:
        for number, item in enumerate(items, start=1):
            if not bar.live.is_started and time.perf_counter() - began > PATIENCE_SECONDS:
                bar.start()
            bar.update(task, completed=number)
            yield item
    finally:
        if bar.live.is_started:
            bar.stop()
