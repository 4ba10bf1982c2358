"""Atomic files: written under another name, then renamed.

A reader, or the next run after a crash, sees either the old file or the new one. A JSON file holds its own checksum and
those of the files it names, so damage does not go unnoticed.
"""

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from credo._stopping import STOP
from credo._text import in_one_line, size_in_words

# The suffix of files that a killed process leaves behind.
PARTIAL = ".partial"
# What the system says where there is no room: on the disk, in the quota, in one file.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Nothing that credo saves is nested half as deep: what is nested deeper would exhaust the stack of whoever walks it.
MAX_DEPTH = 50


# A table of 100,000 columns takes a tenth of this to describe: what is larger is not read.
MAX_TEXT_BYTES = 2**28
# Damage can be long: of what it is quoted by, this many characters are enough.
MAX_CHARACTERS = 600


class LoadError(ValueError):
    """What was saved cannot be read: it is damaged, incomplete, of another version, or not what it says it is.

    >>> import tempfile
    >>> import credo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         credo.load(folder)
    ...     except credo.LoadError as error:
    ...         print(type(error).__name__)
    LoadError
    """

    def __init__(self, message: str) -> None:
        super().__init__(in_one_line(message, MAX_CHARACTERS))


def put(path: Path, write: Callable[[Path], Any], *, num_bytes: int | None = None) -> None:
    """Write a file under another name, and rename it once it is on disk.

    Arguments:
        write: makes the file of the name that it is given.
        num_bytes: how large it will be, as far as that is known before.
    """
    fresh = path.with_name(f".{path.name}-{uuid.uuid4().hex[:8]}{PARTIAL}")
    try:
        with STOP.removing(fresh):
            write(fresh)
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            fresh.replace(path)
        # The new name is on disk once its folder is.
        sync(path.parent)
    except BaseException as error:
        written = fresh.stat().st_size if fresh.exists() else 0
        fresh.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise _full(path, error, num_bytes, written) from error
        raise


def sync(folder: Path) -> None:
    """Make sure that the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _full(path: Path, error: OSError, num_bytes: int | None, written: int) -> OSError:
    """The same error, with what it needed and what there is."""
    needs = f"more than {size_in_words(written)}" if num_bytes is None else size_in_words(num_bytes)
    free = size_in_words(shutil.disk_usage(path.parent).free)
    return OSError(f"{path} could not be written: {error.strerror}; it needs {needs}, and {free} are free")


def put_bytes(path: Path, content: bytes) -> None:
    """Write a file that is whole or not there."""
    put(path, lambda fresh: fresh.write_bytes(content), num_bytes=len(content))


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all."""
    put_bytes(path, text.encode())


def signed(content: Mapping[str, Any]) -> bytes:
    """A dictionary together with its checksum, as JSON."""
    return (json.dumps({**content, "sha256": digest(content)}, indent=2, sort_keys=True) + "\n").encode()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a dictionary together with its checksum."""
    put_bytes(path, signed(content))


def read_bytes(path: Path) -> bytes:
    """The content of a file of a saved folder."""
    require_inside(path)
    try:
        if path.stat().st_size > MAX_TEXT_BYTES:
            raise LoadError(f"{path} is damaged: it is larger than {size_in_words(MAX_TEXT_BYTES)}")
        return path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote; the checksum is not yet verified."""
    return parsed(path, read_bytes(path))


def parsed(path: Path, content: bytes) -> dict[str, Any]:
    """The dictionary that `signed` made into JSON, of a file; the checksum is not yet verified."""
    try:
        found = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise LoadError(f"{path} was not written by credo")
    if _is_deeper(found, MAX_DEPTH):
        raise LoadError(f"{path} is damaged: it is nested more than {MAX_DEPTH} times")
    return found


def _is_deeper(value: Any, depth: int) -> bool:
    """Whether lists and dictionaries are nested more than `depth` times."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < 0 or any(_is_deeper(one, depth - 1) for one in inner)


def require_unaltered(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Verify the checksum; returns the dictionary without it."""
    own = {name: value for name, value in content.items() if name != "sha256"}
    if content.get("sha256") != digest(own):
        raise LoadError(f"{path} is damaged: it was altered after it was saved")
    return own


def require_inside(path: Path) -> None:
    """Refuse a file that is not there, or a link that leads out of its folder."""
    if not path.is_file():
        raise LoadError(f"{path.parent} is damaged: {path.name} is missing")
    if path.is_symlink() and path.resolve().parent != path.parent.resolve():
        raise LoadError(f"{path} leads out of its folder; put the file itself there")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays as safetensors; returns the checksum of the file."""
    # np.ascontiguousarray would add an axis to scalars.
    whole = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    checksums: list[str] = []

    def write(fresh: Path) -> None:
        try:
            save_file(whole, fresh)
        except SafetensorError as error:
            raise _as_os_error(path, error) from error
        checksums.append(checksum(fresh))

    put(path, write, num_bytes=sum(value.nbytes for value in whole.values()))
    return checksums[0]


def _as_os_error(path: Path, error: SafetensorError) -> OSError:
    """What the system said, which the writer of arrays puts into words."""
    code = next((code for code in NO_ROOM if f"os error {code}" in str(error)), None)
    if code is None:
        return OSError(f"{path} could not be written: {error}")
    return OSError(code, os.strerror(code))


def read_arrays(path: Path, expected: str) -> dict[str, np.ndarray]:
    """Read arrays, after verifying the checksum of their file."""
    require_inside(path)
    try:
        if checksum(path) != expected:
            raise LoadError(f"{path} is damaged: it was cut short or altered after it was saved")
        # The header is checked against the size of the file before anything is allocated.
        return load_file(path)
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror or error}") from error
    except LoadError:
        raise
    except (SafetensorError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise LoadError(f"{path} is damaged: it does not hold arrays ({error})") from error


def digest(content: Mapping[str, Any]) -> str:
    """The checksum of a dictionary."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checksum_of(content: bytes) -> str:
    """The checksum of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def checksum(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_partial(folder: Path) -> None:
    """Remove what killed writers left behind. Call it only when nobody else is writing."""
    for left in folder.glob(f".*{PARTIAL}"):
        if left.is_dir():
            shutil.rmtree(left)
        else:
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
