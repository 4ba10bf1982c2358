"""The progress bar: steps per second, time left, and the figure that matters for the method."""

import sys
import time
from types import TracebackType

from rich import progress as rich_progress
from rich.console import Console

from credo.inference.engine.chain import Chain
from credo.inference.method import Method
from credo.inference.plan import Plan


class Progress:
    """A live bar over all chains. `show=None` shows it where stderr is a terminal."""

    def __init__(self, method: Method, plan: Plan, *, show: bool | None = None) -> None:
        self.method = method
        self.plan = plan
        self.began = time.perf_counter()
        console = Console(stderr=True)
        visible = sys.stderr.isatty() if show is None else show
        self.bar = rich_progress.Progress(
            rich_progress.TextColumn("[bold]{task.description}"),
            rich_progress.BarColumn(),
            rich_progress.TaskProgressColumn(),
            rich_progress.TextColumn("{task.fields[speed]}"),
            rich_progress.TimeRemainingColumn(),
            rich_progress.TextColumn("{task.fields[figure]}"),
            console=console,
            disable=not visible,
        )
        self.task = self.bar.add_task(
            type(method).__name__, total=plan.num_chains * plan.num_steps, speed="", figure="compiled"
        )

    def __enter__(self) -> "Progress":
        self.began = time.perf_counter()
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def update(self, chains: "list[Chain]") -> None:
        """Tell where the chains stand."""
        if self.bar.disable:
            return
        done = sum(chain.step for chain in chains)
        warming_up = any(self.plan.warmup_left(chain.step) > 0 for chain in chains)
        newest = [chain.infos[-1:] or chain.warmup_infos[-1:] for chain in chains]
        figures = [self.method.status_line(infos[0]) for infos in newest if infos]
        speed = done / max(time.perf_counter() - self.began, 1e-9)
        self.bar.update(
            self.task,
            completed=done,
            description=f"{type(self.method).__name__}{' warm-up' if warming_up else ''}",
            speed=f"{speed:,.0f} steps/s",
            figure=figures[0] if figures else "",
        )
