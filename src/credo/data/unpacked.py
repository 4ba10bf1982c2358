"""Tables of numbers in Parquet and Arrow files, unpacked once into files whose rows can be read one by one.

A row in the middle of a Parquet file cannot be read by itself: it is packed together with thousands of others, column
by column. So one pass unpacks the table, in single precision, into a folder that goes when nobody needs it any more.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from credo._text import nearest, size_in_words
from credo.data.stored import StoredArray, StoredRows

ROWS_AT_ONCE = 2**15
SUFFIXES = (".parquet", ".arrow", ".feather", ".ipc")
# Of a folder, the kinds that it may hold.
FOLDER_PATTERNS = tuple(f"*{suffix}" for suffix in SUFFIXES)


def files_of(path: Path) -> list[Path]:
    """The files of a table: itself, or all in a folder, by name."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; check the name and the folder")
    if not path.is_dir():
        return [path]
    found = sorted(one for pattern in FOLDER_PATTERNS for one in path.glob(pattern))
    if not found:
        raise ValueError(f"{path} holds no files that end in {', '.join(SUFFIXES)}; name a folder of such files")
    return found


def scanned(path: Path) -> pl.LazyFrame:
    """A file that polars reads piece by piece."""
    if path.suffix == ".parquet":
        return pl.scan_parquet(path, low_memory=True)
    return pl.scan_ipc(path)


def schema_of(files: Sequence[Path]) -> dict[str, Any]:
    """The columns of several files, which must be of the same names and types in all of them."""
    schemas = []
    for path in files:
        try:
            schemas.append(dict(scanned(path).collect_schema()))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            said = next(iter(str(error).splitlines()), type(error).__name__)
            what = "is not a Parquet file, or it is damaged" if path.suffix == ".parquet" else "is damaged"
            raise ValueError(f"{path} {what}: {said}; get it again") from error
    first = schemas[0]
    for path, own in zip(files[1:], schemas[1:], strict=True):
        for name in first:
            if name not in own:
                raise ValueError(f"{path} has no column {name!r}, which {files[0].name} has; all files need the same")
            if own[name] != first[name]:
                raise ValueError(
                    f"{path}: column {name!r} is {own[name]}, and in {files[0].name} it is {first[name]}; write all "
                    "files with one type for each column"
                )
    return first


@dataclass(frozen=True, eq=False)
class Unpacked:
    """A table that was unpacked.

    Arguments:
        names: of the columns of x.
        folder: which is removed with the last reference to it.
    """

    rows: StoredRows
    names: tuple[str, ...]
    folder: "tempfile.TemporaryDirectory[str]"


def unpacked(path: Path, target: str, drop: Sequence[str] = (), scratch: str | Path | None = None) -> Unpacked:
    """Unpack the numbers of a Parquet or Arrow file, or of a folder of such files.

    Arguments:
        target: the column to predict; whole numbers are labels.
        scratch: the folder for what is unpacked, with room for a number of four bytes for each cell; by default that of
            temporary files.
    """
    files = files_of(path)
    schema = schema_of(files)
    for name in (target, *drop):
        if name not in schema:
            raise ValueError(f"{files[0]} has no column {name!r}{nearest(name, schema)}; it has {', '.join(schema)}")
    names = tuple(name for name in schema if name != target and name not in drop)
    for name in (*names, target):
        if not (schema[name].is_numeric() or schema[name] == pl.Boolean):
            raise ValueError(
                f"{files[0]}: column {name!r} is {schema[name]}, and rows in files are numbers; leave it out "
                f"(drop=[{name!r}]), encode it, or use `credo fit`, which does"
            )
    if not names:
        raise ValueError(f"{files[0]} has no column beside the target {target!r}")
    num_rows = sum(int(scanned(one).select(pl.len()).collect().item()) for one in files)
    is_label = schema[target].is_integer() or schema[target] == pl.Boolean
    folder = room_for(num_rows, len(names), scratch)
    with RowWriter(Path(folder.name), (len(names),), () if is_label else None) as writer:
        for one in files:
            for batch in _batches(one, (*names, target)):
                _require_complete(one, batch)
                writer.write(batch.select(names).to_numpy(), batch[target].to_numpy())
    return Unpacked(writer.rows, names, folder)


def room_for(num_rows: int, num_columns: int, scratch: str | Path | None) -> "tempfile.TemporaryDirectory[str]":
    """A folder of its own for so many rows, or an OSError that says how much room there is."""
    folder = tempfile.TemporaryDirectory(prefix="credo-rows-", dir=scratch)
    needed, free = 4 * num_rows * (num_columns + 2), shutil.disk_usage(folder.name).free
    if needed > free:
        place = Path(folder.name).parent
        folder.cleanup()
        raise OSError(
            f"{num_rows:,} rows take {size_in_words(needed)} to unpack, and {place} has {size_in_words(free)} left; "
            "name a folder with more room, scratch=…, or set TMPDIR"
        )
    return folder


class RowWriter:
    """Writes rows one after another into x.npy and y.npy, whose heads are written last, when their number is known.

    Arguments:
        x_shape: of one row.
        y_shape: of one target that is a label; None for a number.
    """

    def __init__(self, folder: Path, x_shape: tuple[int, ...], y_shape: tuple[int, ...] | None) -> None:
        self._kinds = {"x": (x_shape, np.float32), "y": ((), np.float32 if y_shape is None else np.int32)}
        self._paths = {name: folder / f"{name}.npy" for name in self._kinds}
        self.num_rows = 0

    def __enter__(self) -> "RowWriter":
        self._files = {name: path.open("wb") for name, path in self._paths.items()}
        for name in self._files:
            self._head(name)
        return self

    def write(self, x: np.ndarray, y: np.ndarray) -> None:
        """Some more rows."""
        for name, array in (("x", x), ("y", y)):
            np.ascontiguousarray(array, self._kinds[name][1]).tofile(self._files[name])
        self.num_rows += len(y)

    def __exit__(self, *_: object) -> None:
        for name, file in self._files.items():
            file.seek(0)
            self._head(name)
            file.close()

    def _head(self, name: str) -> None:
        # NumPy leaves room in the head for a number of rows that grows.
        shape, dtype = self._kinds[name]
        described = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (self.num_rows, *shape)}
        np.lib.format.write_array_header_1_0(self._files[name], described)

    @property
    def rows(self) -> StoredRows:
        """What was written."""
        return StoredRows(StoredArray.open(self._paths["x"]), StoredArray.open(self._paths["y"]))


def _batches(path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    try:
        yield from (
            scanned(path).select(columns).collect_batches(chunk_size=ROWS_AT_ONCE, lazy=True, maintain_order=True)
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"{path} cannot be read, it may be damaged: {said}; get it again") from error


def _require_complete(path: Path, batch: pl.DataFrame) -> None:
    for name in batch.columns:
        if num := batch[name].null_count():
            raise ValueError(
                f"{path}: column {name!r} misses {num:,} values among {len(batch):,} rows that were read, and rows in "
                "files must be complete; leave those rows out, or fill them in"
            )
