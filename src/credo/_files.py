"""Atomic files: written under another name, then renamed.

A reader, or the next run after a crash, sees either the old file or the new one. A JSON file holds its own checksum and
those of the arrays it names, so damage does not go unnoticed.
"""

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from credo._stopping import STOP

# The suffix of files that a killed process leaves behind.
PARTIAL = ".partial"


def put(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file under another name, and rename it once it is on disk."""
    fresh = path.with_name(f".{path.name}-{uuid.uuid4().hex[:8]}{PARTIAL}")
    try:
        with STOP.removing(fresh):
            write(fresh)
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8."""
    put(path, lambda fresh: fresh.write_text(text, encoding="utf-8"))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a dictionary together with its checksum."""
    write_text(path, json.dumps({**content, "sha256": digest(content)}, indent=2, sort_keys=True) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote; the checksum is not yet verified."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} was not written by credo")
    return content


def require_unaltered(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Verify the checksum; returns the dictionary without it."""
    own = {name: value for name, value in content.items() if name != "sha256"}
    if content.get("sha256") != digest(own):
        raise ValueError(f"{path} is damaged: it was altered after it was saved")
    return own


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays as safetensors; returns the checksum of the file."""
    # np.ascontiguousarray would add an axis to scalars.
    whole = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    checksums: list[str] = []

    def write(fresh: Path) -> None:
        try:
            save_file(whole, fresh)
        except SafetensorError as error:
            raise OSError(f"{path} could not be written: {error}") from error
        checksums.append(checksum(fresh))

    put(path, write)
    return checksums[0]


def read_arrays(path: Path, expected: str) -> dict[str, np.ndarray]:
    """Read arrays, after verifying the checksum of their file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} is damaged: {path.name} is missing")
    if checksum(path) != expected:
        raise ValueError(f"{path} is damaged: it was cut short or altered after it was saved")
    return load_file(path)


def digest(content: Mapping[str, Any]) -> str:
    """The checksum of a dictionary."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checksum(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_partial(folder: Path) -> None:
    """Remove files left behind by killed writers. Call it only when nobody else is writing."""
    for left in folder.glob(f".*{PARTIAL}"):
        left.unlink()


def named(**groups: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
    """Groups of arrays under the names `group/name`."""
    return {
        f"{group}/{name}": np.asarray(value)
        for group, values in groups.items()
        for name, value in (values or {}).items()
    }


def group_of(arrays: Mapping[str, np.ndarray], group: str) -> dict[str, np.ndarray]:
    """Those of a group again, by name."""
    start = f"{group}/"
    return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}
