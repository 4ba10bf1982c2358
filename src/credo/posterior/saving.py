"""Saving and loading posteriors without running code: arrays as safetensors, the rest as JSON.

A folder holds `manifest.json` and the file of arrays that it names. The arrays are written first and the manifest is
renamed into place, so that a reader sees the old posterior or the new one, never half of one. The manifest records its
own checksum and that of the arrays: a file that was cut short or altered is refused.
"""

import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from credo._files import LoadError, group_of, named, write_arrays
from credo._folders import ARRAYS, locked, remove_unnamed
from credo._manifest import MANIFEST, Manifest, is_ours
from credo._schema import checked, require_numbers
from credo.covariance import Root
from credo.models.program import Model

# A posterior's own part of the manifest, and its arrays by the names `group/name` or `name`.
Parts = tuple[dict[str, Any], dict[str, np.ndarray]]
# Figures of a step: a run whose log joint density, or a part of it, is not finite ends there.
ALWAYS_FINITE = ("log_joint", "log_likelihood", "log_prior", "elbo", "kl")


def save(posterior: Any, folder: str | Path) -> None:
    """Write a posterior into `folder`, in place of a posterior that was there; anything else is left alone."""
    target = Path(folder)
    if target.exists() and not is_ours(target) and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not a saved posterior; choose a new or empty folder")
    with locked(target):
        if is_ours(target):
            _require_no_run(target, Manifest.read(target))
        write(posterior, target)


def _require_no_run(folder: Path, held: Manifest) -> None:
    """A run is a posterior and what it was made with: with another posterior it would be neither's."""
    if held.posterior is None or held.fit is not None or len(held.files) > 1:
        raise ValueError(f"{folder} holds a run, of which a posterior is only a part; choose another folder")


def write(posterior: Any, folder: Path, held: Manifest | None = None) -> None:
    """Write a posterior into a folder, whatever else is in it.

    Arguments:
        held: what else the manifest of the folder names; nothing by default.
    """
    held = held or Manifest()
    files: dict[str, str] = {}
    try:
        content, files = put_posterior(posterior, folder)
        msgspec.structs.replace(held, files=held.files | files, posterior=content).write(folder)
    except Exception:
        for name in files:
            (folder / name).unlink(missing_ok=True)
        raise
    remove_unnamed(folder)


def put_posterior(posterior: Any, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Write the arrays of a posterior into a folder: what a manifest must say of it, and their checksum by file."""
    config, own = pack(posterior)
    arrays = own | named(scaling=posterior.scaling.to_dict())
    for index, model in enumerate(posterior.models):
        arrays |= named(**{f"inputs/{index}": model.constants.stored()})
    if posterior.probes is not None:
        arrays |= {"probes": posterior.probes}
    # A name of its own: the old manifest finds the old arrays until the new one is there.
    file = ARRAYS.replace("*", uuid.uuid4().hex[:8])
    shapes = {name: list(np.shape(array)) for name, array in arrays.items()}
    content = _described(posterior) | config | {"arrays": file, "shapes": shapes}
    return content, {file: write_arrays(folder / file, arrays)}


def pack(posterior: Any) -> Parts:
    """A posterior, or a member of one, without what it knows of the data."""
    config, arrays = posterior.to_parts()
    return config | {"kind": posterior.stored_as, "provenance": asdict(posterior.provenance)}, arrays


def _described(posterior: Any) -> dict[str, Any]:
    """What a posterior and its members share: the models, and what they know of the data."""
    configs = [model.config for model in posterior.models]
    return {
        "model": configs if len(configs) > 1 else configs[0],
        "rows": asdict(posterior.model.rows),
        "inputs": [model.constants.to_config() for model in posterior.models],
    }


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

    def field(self, name: str, kind: Any, default: Any = None) -> Any:
        """A field of the manifest, of this type."""
        return checked(self.source / MANIFEST, self.config.get(name, default), kind)

    def theta(self, group: str, model: Model) -> dict[str, np.ndarray]:
        """Numbers in the shape of theta: those of a group, one array for each of the model's."""
        found = self.group(group)
        self.require_shapes(model, {name: leaf.shape for name, leaf in found.items()})
        return {name: self.numbers(f"{group}/{name}") for name in found}

    def numbers(self, name: str, shape: tuple[int, ...] | None = None, **limits: Any) -> np.ndarray:
        """An array of finite numbers; limits as for `require_numbers`."""
        if name not in self.arrays:
            raise LoadError(f"{self.source} is damaged: it has no array {name!r}")
        return require_numbers(self.source, name, self.arrays[name], shape=shape, **limits)

    def figures(self, group: str, leading: tuple[int, ...] | None = None) -> dict[str, np.ndarray]:
        """What was noted at each step or draw: arrays whose first two axes are the same, (chains, steps).

        The energy of a step that diverged, or a score on held-out data that there are none of, need not be finite; what
        a run stops at is.
        """
        found = self.group(group)
        leading = leading or next((array.shape[:2] for array in found.values()), ())
        for name, array in found.items():
            if array.dtype.kind not in "fiub" or array.ndim < 2 or array.shape[:2] != leading:
                raise LoadError(
                    f"{self.source} is damaged: {group}/{name} is {array.dtype} of shape {array.shape}, and should be "
                    f"numbers of shape {leading}"
                )
            if name in ALWAYS_FINITE:
                self.numbers(f"{group}/{name}")
        return found

    def require_shapes(self, model: Model, found: dict[str, tuple[int, ...]]) -> None:
        """The network or model that was passed must be the one that was fitted."""
        expected = {name: shape.shape for name, shape in model.template.items()}
        if expected != found:
            names = sorted(name for name in expected | found if expected.get(name) != found.get(name))
            raise LoadError(
                f"{self.source} does not fit the model: "
                + "; ".join(f"{name}: saved {found.get(name)}, model {expected.get(name)}" for name in names[:4])
            )


def stored_root(stored: Stored, mean: dict[str, np.ndarray]) -> Root:
    """The covariance root of a posterior around that mean; what it does not cover is certain."""
    config = stored.field("root", dict[str, Any])
    return Root.from_stored(
        stored.source, config, stored.group("root"), {name: one.shape for name, one in mean.items()}
    )
