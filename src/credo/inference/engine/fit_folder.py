"""The folder of a fit that survives: which fit it is, a lock, its checkpoints, and in the end its posterior.

run/fit.json           which fit this is: method, seed, model, data
run/checkpoint/0/      stage 0, such as the search for starting points
run/manifest.json      the posterior, once there is one; then the checkpoints are gone
"""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import numpy as np

from credo._files import read_json, remove_partial, require_unaltered, write_json
from credo._precision import working_precision
from credo._version import __version__
from credo.inference.engine.checkpoint import CheckpointError, unwritable
from credo.inference.method import Method
from credo.models.program import Model
from credo.posterior import Posterior
from credo.posterior.saving import MANIFEST, is_saved, write
from credo.typing import Batch

FIT, CHECKPOINT = "fit.json", "checkpoint"
FORMAT_VERSION = 1


class FitFolder(AbstractContextManager["FitFolder"]):
    """The folder of one fit, which no other process can write to meanwhile.

    Arguments:
        folder: of the run; made if it is not there.
        identity: what the fit is, as JSON: what is in the folder must have the same, or is another's.
        resume: whether to go on from what is there; without it the folder must not hold a run.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any], *, resume: bool) -> None:
        self.folder = Path(folder)
        self.identity = {"format_version": FORMAT_VERSION, **identity}
        self.resume = resume

    def __enter__(self) -> "FitFolder":
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        with ExitStack() as stack:
            stack.enter_context(locked(self.folder))
            self._claim()
            self.lock = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.close()

    def _claim(self) -> None:
        """Make sure that what the folder holds is this fit, or nothing yet."""
        path = self.folder / FIT
        if path.exists():
            found = require_unaltered(path, read_json(path))
            if not self.resume:
                kind = "a finished run" if self.is_finished else "a run that has not ended"
                raise ValueError(
                    f"{self.folder} holds {kind}; pass resume=True to go on with it, or choose another folder"
                )
            different = sorted(name for name in found | self.identity if found.get(name) != self.identity.get(name))
            if different:
                raise ValueError(
                    f"{self.folder} holds another run: its {_listed(different)} differ; pass what it was begun with, "
                    "or choose another folder"
                )
        elif is_saved(self.folder):
            raise ValueError(f"{self.folder} holds a posterior that was saved; choose another folder")
        elif (self.folder / MANIFEST).exists():
            raise ValueError(f"{self.folder} holds a {MANIFEST} of something else; choose another folder")
        try:
            remove_partial(self.folder)
            write_json(path, self.identity)
            if self.is_finished:
                self._remove_checkpoints()
            else:
                (self.folder / CHECKPOINT).mkdir(exist_ok=True)
        except OSError as error:
            raise unwritable(self.folder, error) from error

    @property
    def is_finished(self) -> bool:
        return is_saved(self.folder)

    @property
    def checkpoints(self) -> Path:
        """Where the stages of the fit are written down."""
        return self.folder / CHECKPOINT

    def finish(self, posterior: Posterior) -> None:
        """Save what the fit has come to; what was needed to get there goes."""
        try:
            write(posterior, self.folder)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        self._remove_checkpoints()

    def _remove_checkpoints(self) -> None:
        if (self.folder / CHECKPOINT).exists():
            shutil.rmtree(self.folder / CHECKPOINT)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which the end of a process gives back too, however it comes."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CheckpointError(
                f"another process is at work on {folder}; wait for it, or choose another folder"
            ) from error
        yield
    finally:
        os.close(handle)


def identity_of(method: Method, models: Sequence[Model], data: Iterable[Batch | None], seed: int) -> dict[str, Any]:
    """What makes a fit the same fit, as JSON."""
    # A function without a name of its own is given by its address, which is another one in each process.
    settings = re.sub(r" at 0x[0-9a-f]+", "", repr(method.to_config()))
    return {
        "method": settings,
        "seed": seed,
        "precision": str(working_precision()),
        "model": [
            {
                "program": getattr(one.program, "__qualname__", type(one.program).__name__),
                "config": one.config,
                "shapes": {name: list(leaf.shape) for name, leaf in one.template.items()},
                "inputs": one.constants.to_config(),
                "constants": _digest(one.frozen_xi.values()),
            }
            for one in models
        ],
        "data": [None if batch is None else _digest((batch.x, batch.y)) for batch in data],
        "credo version": __version__,
        "jax version": jax.__version__,
    }


def _digest(arrays: Iterable[Any]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        whole = np.ascontiguousarray(array)
        found.update(f"{whole.dtype}{whole.shape}".encode())
        found.update(whole.data)
    return found.hexdigest()


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
