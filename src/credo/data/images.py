"""Images in files: folders by class, and how a picture becomes numbers in [0, 1]."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
# Of a picture in one channel.
GREY_MODES = ("1", "L", "LA", "I", "I;16", "F")


class ImageFile(NamedTuple):
    """A picture, and the folder that it is in: its class, None for one that is in none."""

    path: Path
    label: str | None


def image_files(folder: str | Path) -> list[ImageFile]:
    """The pictures in a folder: those in it are without a class, and those in a folder inside are of that class."""
    source = Path(folder)
    if not source.is_dir():
        raise FileNotFoundError(f"{source} is no folder; name one with a folder of images for each class")
    groups: list[tuple[str | None, Path]] = [(None, source)]
    groups += [(inner.name, inner) for inner in sorted(source.iterdir()) if inner.is_dir() and inner.name[0] != "."]
    found = [ImageFile(path, label) for label, place in groups for path in _pictures(place, deep=label is not None)]
    if not found:
        raise ValueError(
            f"{source} is a folder that holds no images; name a file, or put them there ({', '.join(SUFFIXES)}), those "
            "of each class in a folder of its own"
        )
    return found


def usual_shape(files: Sequence[ImageFile]) -> tuple[int, int, int]:
    """(height, width, channels): the most frequent size, and one channel where all pictures are grey."""
    sizes, modes = Counter[tuple[int, int]](), set[str]()
    for file in files:
        with _opened(file.path) as picture:
            sizes[picture.height, picture.width] += 1
            modes.add(picture.mode)
    (height, width), _ = sizes.most_common(1)[0]
    return height, width, 1 if modes <= set(GREY_MODES) else 3


def pixels(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    """A picture as numbers in [0, 1], (height, width, channels), brought to that size and colour if it has another."""
    height, width, channels = shape
    with _opened(path) as picture:
        # Numbers of sixteen bits are grey; where they become others, Pillow would cut them off at 255.
        grey = picture.point(lambda number: number / 257) if picture.mode.startswith("I") else picture
        whole = grey.convert("L" if channels == 1 else "RGB")
        if whole.size != (width, height):
            whole = whole.resize((width, height))
        return np.asarray(whole, np.float32).reshape(shape) / np.float32(255)


def stacked(files: Sequence[ImageFile], shape: tuple[int, int, int], cache: Path | None) -> np.ndarray:
    """All pictures, (N, height, width, channels); with `cache` in a file, of which only what is used is in memory."""
    whole = (len(files), *shape)
    if cache is None:
        found = np.empty(whole, np.float32)
    else:
        found = np.lib.format.open_memmap(cache, mode="w+", dtype=np.float32, shape=whole)
    for row, file in enumerate(files):
        found[row] = pixels(file.path, shape)
    if cache is None:
        return found
    found.flush()  # type: ignore[attr-defined]
    return np.load(cache, mmap_mode="r")


def _pictures(folder: Path, *, deep: bool) -> Iterator[Path]:
    inside = folder.rglob("*") if deep else folder.iterdir()
    return (path for path in sorted(inside) if path.suffix.lower() in SUFFIXES and path.is_file())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A picture, of which only the size and the colours are known until it is used."""
    from PIL import Image  # lazy: whoever has tables needs it not

    try:
        with Image.open(path) as picture:
            yield picture
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is no image that can be read: {error}; remove it, or save it again") from error
