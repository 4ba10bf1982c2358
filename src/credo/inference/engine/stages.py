"""The stages of a fit, in order: runs of the engine, and what is concluded from them.

With a folder each stage is written down as it goes, and done once: a fit that is resumed finds what was done before.

    0/    a run: its checkpoints
    1/    a conclusion: a saved posterior, and in folders of their own the runs on the way to it
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jax.sharding import Mesh

from credo._folders import unwritable
from credo._manifest import is_saved
from credo._mesh import Lane
from credo._processes import by_one_of
from credo._progress import working
from credo.inference.engine import driver
from credo.inference.engine.checkpoint import Stage
from credo.inference.method import Method
from credo.inference.outcome import Outcome, P
from credo.models.program import Model
from credo.posterior import load
from credo.posterior.saving import write
from credo.typing import Batch


class FitStages:
    """The stages of one fit: the same ones in the same order each time.

    Arguments:
        folder: where they are written down; None for nowhere.
        progress: a live bar on stderr; by default where stderr is a terminal.
        mesh: the devices of all runs.
    """

    def __init__(self, folder: Path | None = None, *, progress: bool | None = None, mesh: Mesh | None = None) -> None:
        self.folder, self.progress, self.mesh = folder, progress, mesh
        self.num_stages = 0
        self.seconds = 0.0  # of all runs, also of those that an earlier process has done

    def run(self, method: Method, model: Model, data: Batch, **options: Any) -> Outcome:
        """A run of the engine, with the options of `driver.run`."""
        folder = self._next()
        stage = None if folder is None else Stage(folder)
        outcome = driver.run(method, model, data, progress=self.progress, stage=stage, mesh=self.mesh, **options)
        self.seconds += outcome.seconds
        return replace(outcome, stages=self)

    def conclude(self, name: str, model: Model, make: Callable[["FitStages"], P]) -> P:
        """A posterior that takes long to compute."""
        folder = self._next()
        done: Any = by_one_of(self.mesh)
        known: P | None = done(lambda: _saved(folder, model))
        if known is not None:
            return known
        with working(f"Computing the {name}", show=self.progress):
            # Bars within would fight the spinner for the terminal.
            found = make(FitStages(folder, progress=False, mesh=self.mesh))
        if folder is not None:
            done(lambda: _save(found, folder))
        return found

    def shared(self, data: Batch) -> Batch:
        """Data for sums over all rows: each device of the mesh has a share of them."""
        return data if self.mesh is None else Lane(tuple(self.mesh.devices.ravel())).shared(data)

    def _next(self) -> Path | None:
        self.num_stages += 1
        return None if self.folder is None else self.folder / str(self.num_stages - 1)


def _saved(folder: Path | None, model: Model) -> Any:
    """What a folder holds; None for nothing."""
    return load(folder, model=model) if folder is not None and is_saved(folder) else None


def _save(posterior: Any, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write(posterior, folder)
    except OSError as error:
        raise unwritable(folder, error) from error
