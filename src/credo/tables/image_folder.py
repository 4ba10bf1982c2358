"""A folder of images as a table: a column with the picture of each row, and one with its class."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from credo._files import checksum
from credo.data.images import ImageFile, image_files
from credo.tables.table import Table

IMAGE, CLASS = "image", "class"
# Pictures to read at once.
BATCH_IMAGES = 256


@dataclass(frozen=True)
class ImageTable(Table):
    """The pictures of a folder; those in a folder inside it have its name as their class.

    Arguments:
        files: the pictures, in order.
    """

    files: tuple[ImageFile, ...]

    @classmethod
    def open(cls, path: Path) -> "ImageTable":
        return cls(path, (IMAGE, CLASS), tuple(image_files(path)))

    @property
    def max_rows(self) -> int:
        return len(self.files)

    def batches(self) -> Iterator[pl.DataFrame]:
        for first in range(0, len(self.files), BATCH_IMAGES):
            paths, labels = zip(*self.files[first : first + BATCH_IMAGES], strict=True)
            schema = {IMAGE: pl.String, CLASS: pl.String}
            yield pl.DataFrame({IMAGE: list(map(str, paths)), CLASS: labels}, schema=schema)

    @property
    def checksum(self) -> str:
        """Of all pictures and their classes, wherever the folder is."""
        lines = (f"{file.label} {file.path.name} {checksum(file.path)}\n" for file in self.files)
        return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()
