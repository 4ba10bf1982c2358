"""Saving and loading posteriors without running code: arrays as safetensors, the rest as JSON.

A folder holds `manifest.json` and the file of arrays that it names. The arrays are written first and the manifest is
renamed into place, so that a reader sees the old posterior or the new one, never half of one. The manifest records its
own checksum and that of the arrays: a file that was cut short or altered is refused.
"""

import json
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from credo._files import group_of, named, write_arrays, write_json
from credo._version import __version__
from credo.models.program import Model

FORMAT = "credo-posterior"
FORMAT_VERSION = 1
MANIFEST, ARRAYS = "manifest.json", "arrays-*.safetensors"

# A posterior's own part of the manifest, and its arrays by the names `group/name` or `name`.
Parts = tuple[dict[str, Any], dict[str, np.ndarray]]


def save(posterior: Any, folder: str | Path) -> None:
    """Write a posterior into `folder`, in place of a posterior that was there; anything else is left alone."""
    target = Path(folder)
    if target.exists() and not is_saved(target) and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not a saved posterior; choose a new or empty folder")
    target.mkdir(parents=True, exist_ok=True)
    write(posterior, target)


def write(posterior: Any, folder: Path) -> None:
    """Write a posterior into a folder, whatever else is in it."""
    config, own = pack(posterior)
    arrays = own | named(scaling=posterior.scaling.to_dict())
    for index, model in enumerate(posterior.models):
        arrays |= named(**{f"inputs/{index}": model.constants.stored()})
    if posterior.probes is not None:
        arrays |= {"probes": posterior.probes}
    # A name of its own: the old manifest finds the old arrays until the new one is there.
    name = ARRAYS.replace("*", uuid.uuid4().hex[:8])
    try:
        checksum = write_arrays(folder / name, arrays)
        write_json(folder / MANIFEST, _manifest(posterior, config | {"arrays": name, "arrays_sha256": checksum}))
    except Exception:
        (folder / name).unlink(missing_ok=True)
        raise
    for old in folder.glob(ARRAYS):
        if old.name != name:
            old.unlink()


def pack(posterior: Any) -> Parts:
    """A posterior, or a member of one, without what it knows of the data."""
    config, arrays = posterior.to_parts()
    return config | {"kind": posterior.stored_as, "provenance": asdict(posterior.provenance)}, arrays


def _manifest(posterior: Any, config: dict[str, Any]) -> dict[str, Any]:
    configs = [model.config for model in posterior.models]
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "credo_version": __version__,
        "model": configs if len(configs) > 1 else configs[0],
        "rows": asdict(posterior.model.rows),
        "inputs": [model.constants.to_config() for model in posterior.models],
    } | config


class Stored(NamedTuple):
    """A posterior as it is stored: its part of the manifest, and its arrays by the names `group/name` or `name`.

    `models` are those of the whole; the manifest's number `architecture` says which one it is of, the first without it.
    """

    source: Path
    config: dict[str, Any]
    arrays: dict[str, np.ndarray]
    models: tuple[Model, ...]

    def group(self, group: str) -> dict[str, np.ndarray]:
        """The arrays of a group, by name."""
        return group_of(self.arrays, group)

    def require_shapes(self, model: Model, found: dict[str, tuple[int, ...]]) -> None:
        """The network or model that was passed must be the one that was fitted."""
        expected = {name: shape.shape for name, shape in model.template.items()}
        if expected != found:
            names = sorted(name for name in expected | found if expected.get(name) != found.get(name))
            raise ValueError(
                f"{self.source} does not fit the model: "
                + "; ".join(f"{name}: saved {found.get(name)}, model {expected.get(name)}" for name in names[:4])
            )


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a saved posterior, of whatever version; others have files named manifest.json too."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT
