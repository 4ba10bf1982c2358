"""The column of pictures that a folder of images has."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from credo._schema import Positive
from credo.data.images import pixels, usual_shape
from credo.tables.column import ALL_ROWS, Column, RowNumbers, Unknown
from credo.tables.image_folder import IMAGE, ImageTable

# Of one picture: a photograph as it leaves a camera has some 10⁸, and no network here takes so many.
MAX_NUMBERS = 2**23


@dataclass(frozen=True)
class Images(Column):
    """Pictures, as numbers in [0, 1] by height, width and channel; those of another size are brought to this one."""

    kind: ClassVar[str] = "images"
    height: Positive = 1
    width: Positive = 1
    channels: Positive = 1

    def __post_init__(self) -> None:
        if self.height * self.width * self.channels > MAX_NUMBERS:
            raise ValueError(f"images of {self.height} × {self.width} are too large; make them smaller")

    @classmethod
    def learn(cls, table: ImageTable) -> "Images":
        height, width, channels = usual_shape(table.files)
        return cls(IMAGE, height=height, width=width, channels=channels)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}[{', '.join(map(str, place))}]" for place in np.ndindex(self.shape))

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        return ((0.0, 1.0),) * (self.height * self.width * self.channels)

    @property
    def says(self) -> str:
        colour = "grey" if self.channels == 1 else "in colour"
        return f"images of {self.height} × {self.width}, {colour}; others are brought to that"

    def encode(self, cells: pl.Series, *, unknown: Unknown = "error", rows: RowNumbers = ALL_ROWS) -> np.ndarray:
        found = np.empty((len(cells), self.height * self.width * self.channels), np.float32)
        for row, path in enumerate(cells):
            found[row] = pixels(Path(path), self.shape).ravel()
        return found
