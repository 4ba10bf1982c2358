"""The folder of a fit that survives: which fit it is, a lock, its checkpoints, and in the end its posterior.

run/manifest.json      which fit this is: method, seed, model, data; and the posterior, once there is one
run/checkpoint/0/      stage 0, such as the search for starting points; gone once there is a posterior
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import numpy as np

from credo._files import checksum_of, put_bytes
from credo._folders import CHECKPOINT, FIRST_FIT, locked, put_together, unwritable
from credo._manifest import MANIFEST, Manifest, is_ours
from credo._precision import working_precision
from credo._version import __version__
from credo.inference.method import Method
from credo.models.program import Model
from credo.posterior import Posterior
from credo.posterior.saving import write
from credo.typing import Batch, Theta


@dataclass(frozen=True)
class Place:
    """Where a fit is to be kept.

    Arguments:
        folder: made if it is not there.
        files: further files that belong to the fit, there from its beginning on.
        overwrite: whether a run that the folder holds is replaced; it is whole until the new one is.
    """

    folder: Path
    files: Mapping[str, bytes] = field(default_factory=dict)
    overwrite: bool = False


class FitFolder(AbstractContextManager["FitFolder"]):
    """The folder of one fit, which no other process can write to meanwhile.

    Arguments:
        place: the folder of the run.
        identity: what the fit is, as JSON: what is in the folder must have the same, or is another's.
        resume: whether to go on from what is there; without it the folder must not hold a run.
    """

    def __init__(self, place: str | Path | Place, identity: Mapping[str, Any], *, resume: bool) -> None:
        self.place = place if isinstance(place, Place) else Place(Path(place))
        self.folder = self.place.folder
        # As it is read again: JSON knows no tuples.
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self.resume = resume

    def __enter__(self) -> "FitFolder":
        with ExitStack() as stack:
            stack.enter_context(locked(self.folder))
            if self._holds_a_run():
                self._require_same(Manifest.read(self.folder))
            else:
                put_together(self.folder, self._begin)
            if self.is_finished:
                self._remove_checkpoints()
            self.lock = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.close()

    def _holds_a_run(self) -> bool:
        """Whether there is one to go on with; a ValueError if there is something else."""
        if (self.folder / MANIFEST).exists() and not is_ours(self.folder):
            raise ValueError(f"{self.folder} holds a {MANIFEST} of something else; choose another folder")
        if self.place.overwrite:
            return False
        if (self.folder / FIRST_FIT).exists():
            raise ValueError(
                f"{self.folder} holds a run of an earlier version of credo, which cannot go on; fit again in another "
                "folder, or replace it (overwrite=True)"
            )
        return is_ours(self.folder)

    def _require_same(self, held: Manifest) -> None:
        """What the folder holds must be this fit, and may be gone on with."""
        if held.fit is None:
            raise ValueError(f"{self.folder} holds a posterior that was saved; choose another folder")
        if not self.resume:
            kind = "a run that has not ended" if held.posterior is None else "a finished run"
            raise ValueError(f"{self.folder} holds {kind}; pass resume=True to go on with it, or choose another folder")
        names = sorted(held.fit | self.identity)
        different = [name for name in names if held.fit.get(name) != self.identity.get(name)]
        files = {name: checksum_of(content) for name, content in self.place.files.items()}
        different += sorted(name for name in files if held.files.get(name) != files[name])
        if different:
            raise ValueError(
                f"{self.folder} holds another run: its {_listed(different)} differ{'s' * (len(different) == 1)}; pass "
                "what it was begun with, or choose another folder"
            )
        for name in self.place.files:
            held.file(self.folder, name)  # which refuses one that was altered

    def _begin(self, folder: Path) -> None:
        """Write what a fit has from its beginning on."""
        for name, content in self.place.files.items():
            put_bytes(folder / name, content)
        files = {name: checksum_of(content) for name, content in self.place.files.items()}
        Manifest(files, fit=self.identity).write(folder)

    @property
    def is_finished(self) -> bool:
        return Manifest.read(self.folder).posterior is not None

    @property
    def checkpoints(self) -> Path:
        """Where the stages of the fit are written down."""
        return self.folder / CHECKPOINT

    def finish(self, posterior: Posterior) -> None:
        """Save what the fit has come to; what was needed to get there goes."""
        try:
            write(posterior, self.folder, Manifest.read(self.folder))
        except OSError as error:
            raise unwritable(self.folder, error) from error
        self._remove_checkpoints()

    def _remove_checkpoints(self) -> None:
        if self.checkpoints.exists():
            shutil.rmtree(self.checkpoints)


def identity_of(
    method: Method, models: Sequence[Model], data: Iterable[Batch | str | None], seed: int, start: Theta | None = None
) -> dict[str, Any]:
    """What makes a fit the same fit, as JSON; of rows in files, `data` has their checksum."""
    # A function without a name of its own is given by its address, which is another one in each process.
    settings = re.sub(r" at 0x[0-9a-f]+", "", repr(method.to_config()))
    warm = {} if start is None else {"start": _digest(start.values())}
    return warm | {
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
        "data": [_digest(_counted(one)) if isinstance(one, Batch) else one for one in data],
        "credo version": __version__,
        "jax version": jax.__version__,
    }


def _counted(batch: Batch) -> list[np.ndarray]:
    """x, y and counts of the rows that count, on the host, where a cut compiles nothing."""
    arrays = [batch.x, batch.y, *([] if batch.counts is None else [batch.counts])]
    return [np.asarray(array)[: batch.num] for array in arrays]


def _digest(arrays: Iterable[Any]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        whole = np.ascontiguousarray(array)
        found.update(f"{whole.dtype}{whole.shape}".encode())
        found.update(whole.data)
    return found.hexdigest()


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
