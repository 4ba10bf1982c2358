"""The manifest of a folder: it names every file with its checksum, and nothing is read that it does not name.

    manifest.json    {"files": {name: sha256}, "fit": …, "posterior": …, "sha256": of the manifest itself}

`fit` says which fit the folder is of, where one was begun with `credo.fit(…, checkpoint=folder)`; `posterior` is there
once there is one.
"""

from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
import numpy as np

from credo._files import LoadError, checksum_of, read_arrays, read_bytes, read_json, require_unaltered, write_json
from credo._schema import FileName, Sha256, checked
from credo._version import __version__

MANIFEST = "manifest.json"
FORMAT, FORMAT_VERSION = "credo-posterior", 2
# Posteriors of this version had the name and checksum of their arrays beside their other fields.
FIRST_VERSION = 1


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a folder holds.

    Arguments:
        files: the checksum of each file, by name.
        fit: what the fit is, as JSON: see `FitFolder`.
        posterior: as JSON: see `credo.posterior.saving`.
    """

    # Whether it names all files; that of an earlier version names the arrays alone.
    covers_all: ClassVar[bool] = True

    files: dict[FileName, Sha256] = {}
    fit: dict[str, Any] | None = None
    posterior: dict[str, Any] | None = None

    @staticmethod
    def read(folder: Path) -> "Manifest":
        """The manifest of a folder, of this version or an earlier one."""
        path = folder / MANIFEST
        if not path.exists():
            raise LoadError(f"{folder} is not a saved posterior: it has no {MANIFEST}")
        stored = read_json(path)
        if stored.get("format") != FORMAT:
            raise LoadError(f"{path} was not written by credo")
        version = stored.get("format_version")
        if version not in (FIRST_VERSION, FORMAT_VERSION) or isinstance(version, bool):
            raise LoadError(
                f"{path} has format version {version}, and this is credo {__version__}, which reads version "
                f"{FORMAT_VERSION}; install a newer credo"
            )
        own = require_unaltered(path, stored)
        content = {name: own[name] for name in own if name not in ("format", "format_version", "credo_version")}
        return checked(path, content, Manifest) if version == FORMAT_VERSION else FirstManifest.of(path, content)

    def write(self, folder: Path) -> None:
        """Write it into a folder, in place of the one that is there."""
        about = {"format": FORMAT, "format_version": FORMAT_VERSION, "credo_version": __version__}
        write_json(folder / MANIFEST, about | msgspec.to_builtins(self))

    def file(self, folder: Path, name: str) -> bytes:
        """The content of a file of the folder, if it is the one that the manifest names."""
        expected = self.files.get(name)
        if expected is None and self.covers_all:
            raise LoadError(f"{folder / MANIFEST} does not name {name}, which does not belong to what was saved there")
        content = read_bytes(folder / name)
        if expected not in (None, checksum_of(content)):
            raise LoadError(f"{folder / name} is damaged: it was altered after it was saved, or is of another run")
        return content

    def arrays(self, folder: Path, name: str) -> dict[str, np.ndarray]:
        """The arrays in a file of the folder."""
        if name not in self.files:
            raise LoadError(f"{folder / MANIFEST} is damaged: it has no checksum of {name!r}")
        return read_arrays(folder / name, self.files[name])


class FirstManifest(Manifest, frozen=True):
    """A manifest of the first version, in the form of this one."""

    covers_all: ClassVar[bool] = False

    @classmethod
    def of(cls, path: Path, content: dict[str, Any]) -> Self:
        posterior = {name: value for name, value in content.items() if name != "arrays_sha256"}
        files = {checked(path, content.get("arrays"), FileName): content.get("arrays_sha256")}
        return checked(path, {"files": files, "posterior": posterior}, cls)


def is_ours(folder: Path) -> bool:
    """Whether a folder has a manifest that credo wrote, be it damaged; others have files of that name too."""
    try:
        return FORMAT.encode() in read_bytes(folder / MANIFEST)
    except LoadError:
        return False


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a saved posterior; a ValueError if its manifest is damaged."""
    return is_ours(folder) and Manifest.read(folder).posterior is not None
