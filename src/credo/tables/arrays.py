"""The arrays of an NPZ file, each checked by its header before any of it is read."""

import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from credo._machine import memory_limit
from credo._text import size_in_words

# Booleans, whole numbers, floats, dates, durations, texts and bytes.
PLAIN = "biufMmUS"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class _Refused(Exception):
    """What is whole, and no table."""


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """The columns of an NPZ file by name; those of a matrix x are x1, x2, … (an embedding, say)."""
    found: list[tuple[str, np.ndarray]] = []
    for name, array in plain_arrays(path):
        if array.ndim == 2:
            found += [(f"{name}{place}", column) for place, column in enumerate(array.T, start=1)]
        else:
            found.append((name, array))
    columns = dict(found)
    if len(columns) < len(found):
        raise ValueError(
            f"{path} has several columns of one name (those of a matrix x are x1, x2, …); give each its own name"
        )
    shapes = {name: array.shape for name, array in found}
    if not shapes or any(len(shape) != 1 for shape in shapes.values()) or len(set(shapes.values())) > 1:
        shown = ", ".join(f"{name} {shape}" for name, shape in list(shapes.items())[:12])
        raise ValueError(
            f"{path} holds {f'arrays of shapes {shown}' if shown else 'no arrays'}; store x of shape (rows, columns) "
            "and y of shape (rows,), or one array of shape (rows,) for each column"
        )
    return columns


def plain_arrays(path: Path) -> list[tuple[str, np.ndarray]]:
    """The arrays of an NPZ file by name, as they are stored."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            num_bytes = sum(entry.file_size for entry in entries)
            limit = memory_limit()
            if num_bytes > limit.num_bytes:
                raise _Refused(f"holds {size_in_words(num_bytes)} of arrays, and there are {limit}")
            return [(entry.filename.removesuffix(".npy"), _array(archive, entry)) for entry in entries]
    except MemoryError:
        raise
    except _Refused as error:
        raise ValueError(f"{path} {error}") from None
    except Exception as error:  # a damaged archive can raise anything
        raise ValueError(f"{path} is not an NPZ file of plain arrays, or it is damaged: {error}") from error


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """An array whose header tells no more than its file holds, in a type that tables take."""
    name = entry.filename.removesuffix(".npy")
    with archive.open(entry) as file:
        shape, dtype = _header(file, name)
        held = entry.file_size - file.tell()
    if dtype.kind not in PLAIN:
        raise _Refused(
            f"holds {name!r} of dtype {dtype}; store real numbers, texts or dates, one array for each column"
        )
    if int(np.prod(shape, dtype=object)) * dtype.itemsize != held:
        raise _Refused(f"is damaged: {name!r} is of {held} bytes, and not of the shape {shape} that it tells")
    with archive.open(entry) as file:
        return _taken(np.lib.format.read_array(file, allow_pickle=False))


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise _Refused(f"holds {name!r} with fields of its own names; store one array for each column")
    shape, _, dtype = HEADERS[version](file)
    return shape, dtype


def _taken(array: np.ndarray) -> np.ndarray:
    """The same values in a type that polars has."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "S":
        return np.char.decode(array, "utf-8")
    if kind in "Mm":
        taken = array.astype(f"{kind}8[us]")
        if not np.array_equal(taken.astype(array.dtype), array, equal_nan=True):
            raise _Refused("holds dates that do not fit into 64 bits of microseconds; correct them")
        return taken
    native = np.dtype(np.float64) if kind == "f" and size not in (4, 8) else array.dtype.newbyteorder("=")
    return array.astype(native, copy=False)
