"""An online learner in a folder: the posterior to predict with, as in any folder, and what it takes to go on.

online.json      settings, method and counts; of a learner that holds rows back, the posterior without them too
kept-rows.safetensors    the rows that are held back, if any
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from credo._files import LoadError, checksum_of, parsed, put_bytes, require_unaltered, signed, write_arrays
from credo._folders import locked, put_together, read_whole
from credo._manifest import Manifest, is_ours
from credo._schema import Count, Positive, checked, reading
from credo.data import Data
from credo.inference.method import Method
from credo.inference.registry import METHODS, name_of
from credo.inference.settings import build, settings_of
from credo.learning.drift import DriftAlarm
from credo.learning.judgement import Judgement
from credo.learning.learned import Learned, Settings
from credo.posterior.loading import read_posterior
from credo.posterior.saving import put_posterior, write

ONLINE, ROWS = "online.json", "kept-rows.safetensors"


@dataclass(frozen=True)
class State:
    """What `online.json` holds.

    Arguments:
        method: name and settings; None where text cannot hold them.
        belief: of a learner that holds rows back, the posterior without them, as a manifest has it.
    """

    settings: dict[str, Any]
    method: dict[str, Any] | None
    num_updates: Positive
    num_data: Count
    log_evidence: float | None
    belief: dict[str, Any] | None = None
    drift: DriftAlarm = field(default_factory=DriftAlarm)
    judgement: Judgement = field(default_factory=Judgement)


def save(learned: Learned, method: Method, settings: Settings, folder: str | Path) -> None:
    """Write a learner into a new folder, or in place of one that is there: all of it at once."""
    target = Path(folder)
    with locked(target):
        others = any(not path.name.startswith(".") for path in target.iterdir())
        if others and not (is_ours(target) and ONLINE in Manifest.read(target).files):
            raise ValueError(f"{target} exists and holds no online learner; choose a new or empty folder")
        put_together(target, lambda fresh: put_learner(learned, method, settings, fresh, Manifest()))


def put_learner(learned: Learned, method: Method, settings: Settings, folder: Path, held: Manifest) -> None:
    """Write all that a learner is into a folder.

    Arguments:
        held: what else the manifest of the folder names.
    """
    files, belief = dict(held.files), None
    if learned.kept is not None:
        files[ROWS] = write_arrays(folder / ROWS, {"x": learned.kept.x, "y": learned.kept.y})
        belief, arrays = put_posterior(learned.belief, folder)
        files |= arrays
    counts = (learned.num_updates, learned.num_data, learned.log_evidence)
    content = signed(asdict(State(asdict(settings), _named(method), *counts, belief, learned.drift, learned.judgement)))
    put_bytes(folder / ONLINE, content)
    files[ONLINE] = checksum_of(content)
    write(learned.posterior, folder, msgspec.structs.replace(held, files=files))


def load(folder: str | Path, *, method: Method | None = None, **given: Any) -> tuple[Learned, Method, Settings]:
    """What `save` wrote.

    Arguments:
        method: the one that it was made with, where that has settings that text cannot hold.
        given: network, model and inputs, as in `credo.load`.
    """
    source = Path(folder)

    def read(held: Manifest) -> tuple[Learned, Method, Settings]:
        learned, settings, stored = get_learned(source, held, **given)
        return learned, _method(source / ONLINE, stored) if method is None else method, settings

    return read_whole(source, read)


def get_learned(source: Path, held: Manifest, **given: Any) -> tuple[Learned, Settings, dict[str, Any] | None]:
    """What the learner in a folder with that manifest knows, what it was asked for, and its method as it is stored."""
    if ONLINE not in held.files:
        raise LoadError(f"{source} holds no online learner: its manifest names no {ONLINE}")
    path = source / ONLINE
    state = checked(path, require_unaltered(path, parsed(path, held.file(source, ONLINE))), State)
    with reading(path, "settings"):
        settings = checked(path, state.settings, Settings)
    posterior = read_posterior(source, held, **given)
    belief, kept = posterior, None
    if state.belief is not None:
        belief = read_posterior(source, msgspec.structs.replace(held, posterior=state.belief), **given)
        kept = _kept(source, held, belief)
    counts = (state.num_updates, state.num_data, state.log_evidence)
    return Learned(belief, posterior, *counts, kept, state.drift, state.judgement), settings, state.method


def _kept(source: Path, held: Manifest, belief: Any) -> Data:
    arrays = held.arrays(source, ROWS)
    with reading(source / ROWS, "rows"):
        rows = Data(arrays["x"], arrays["y"], names=belief.model.rows.columns)
        return belief.model.like_training(rows).with_scaling(belief.scaling)


def _named(method: Method) -> dict[str, Any] | None:
    """A method as name and settings; None if they cannot rebuild it."""
    if type(method) not in METHODS.values():
        return None
    name = name_of(method)
    try:
        settings = json.loads(json.dumps(settings_of(method)))
    except TypeError:  # a function, such as those that an optimiser of optax is made of
        return None
    return {"name": name, "settings": settings} if build(name, settings) == method else None


def _method(path: Path, stored: dict[str, Any] | None) -> Method:
    if stored is None:
        raise LoadError(
            f"{path}: the method had settings that text cannot hold; pass it: credo.Online.load(folder, method=method)"
        )
    with reading(path, "method"):
        return build(stored["name"], stored["settings"])
