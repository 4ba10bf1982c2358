"""Progress bars on stderr, shown only where that is a terminal: for items as they come, for steps, and a spinner."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

T = TypeVar("T")

# Work that takes less time than this shows no bar.
PATIENCE_SECONDS = 1.5


def tracked(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """The items as they come, with a bar once they have taken a while."""
    began = time.perf_counter()
    bar = Progress(console=Console(stderr=True), transient=True, disable=not _is_terminal())
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


def _is_terminal() -> bool:
    """Whether stderr is one; a process without a console has none."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def working(label: str, *, show: bool | None = None) -> Iterator[None]:
    """A spinner beside the label, for work of unknown length; `show` as for `StepBar`."""
    console = Console(stderr=True)
    spinner = "dots" if console.encoding.startswith("utf") else "line"
    with console.status(label, spinner=spinner) if (_is_terminal() if show is None else show) else nullcontext():
        yield


class StepBar(Progress):
    """A bar over `total` steps: a name, steps per second, the time left, and a line of text.

    Arguments:
        show: whether to show it; None shows it where stderr is a terminal.
    """

    def __init__(self, name: str, total: int, *, show: bool | None = None) -> None:
        super().__init__(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[line]}"),
            console=Console(stderr=True),
            disable=not (_is_terminal() if show is None else show),
        )
        self.add_task(name, total=total, speed="", line="compiled")

    def move(self, name: str, done: int, line: str) -> None:
        """Show the name, the number of steps done, their speed and the line."""
        speed = done / max(self.tasks[0].elapsed or 0.0, 1e-9)
        self.update(self.task_ids[0], description=name, completed=done, speed=f"{speed:,.0f} steps/s", line=line)
