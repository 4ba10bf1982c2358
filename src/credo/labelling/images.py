"""A pool of images: files in a folder, or arrays in a file."""

import io
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from credo.labelling.features import SIDE, features
from credo.labelling.pool import Pool, digest, numbered, require_items

# What browsers show as it is; anything else is shown as PNG.
SHOWN = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
SUFFIXES = (*SHOWN, ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
# An image smaller than this is enlarged for people.
SMALLEST_SHOWN = 64


@dataclass(frozen=True, eq=False)
class ImagePool(Pool):
    """Images: a model sees their edges and colours, of which it learns from few labels."""

    kind: ClassVar[str] = "image"
    network: ClassVar[str] = "mlp:50"


@dataclass(frozen=True, eq=False)
class FolderPool(ImagePool):
    """The images of a folder and the folders in it. What does not decode is named and left out."""

    @classmethod
    def read(cls, path: Path) -> "FolderPool":
        """All that can be decoded, by name."""
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
        found, broken = list[tuple[str, np.ndarray, str]](), list[str]()
        for file in files:
            name = file.relative_to(path).as_posix()
            try:
                content = file.read_bytes()
                found.append((name, _small(content), digest(content)))
            except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # all that decoders raise
                broken.append(name)
        if broken:
            listed = ", ".join(broken[:10]) + (f", … ({len(broken)} in all)" if len(broken) > 10 else "")
            warnings.warn(f"{path}: not images, or damaged, and left out: {listed}", stacklevel=3)
        require_items(path, found, f"put images there that end in {', '.join(SUFFIXES)}")
        ids, small, digests = zip(*found, strict=True)
        return cls(path, ids, features(np.stack(small)), digests)

    def image(self, item: str) -> tuple[bytes, str]:
        """The file as it is, or as PNG where browsers do not know its kind."""
        file = self.path / self.ids[self.place(item)]
        content = file.read_bytes()
        if mime := SHOWN.get(file.suffix.lower()):
            return content, mime
        with Image.open(io.BytesIO(content)) as image:
            return _png(image.convert("RGB")), "image/png"


@dataclass(frozen=True, eq=False)
class ArrayPool(ImagePool):
    """Images in an array, (items, height, width) or (items, height, width, channels)."""

    images: np.ndarray = field(default_factory=lambda: np.zeros((0, 1, 1), np.uint8))

    @classmethod
    def of(cls, path: Path, images: np.ndarray, given: dict[str, str]) -> "ArrayPool":
        """Images of bytes, or of numbers between the smallest and the largest of all."""
        require_items(path, images, "store at least one image in x")
        if images.ndim not in (3, 4) or images.shape[3:] not in ((), (1,), (3,), (4,)):
            raise ValueError(
                f"{path} holds x of shape {images.shape}; images are (items, height, width), with 1, 3 or 4 channels "
                "behind if they have any"
            )
        content = _bytes(path, images).reshape(images.shape[:3] if images.shape[3:] == (1,) else images.shape)
        small = np.stack([_resized(Image.fromarray(one)) for one in content])
        digests = tuple(digest(np.ascontiguousarray(one).tobytes()) for one in images)
        return cls(path, numbered(len(images)), features(small), digests, given, images=content)

    def image(self, item: str) -> tuple[bytes, str]:
        """The image as PNG, small ones enlarged."""
        image = Image.fromarray(self.images[self.place(item)])
        times = max(1, SMALLEST_SHOWN // max(image.size))
        larger = image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
        return _png(larger), "image/png"


def _bytes(path: Path, images: np.ndarray) -> np.ndarray:
    """Images as bytes; other numbers are brought between 0 and 255."""
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind not in "biuf" or not np.all(np.isfinite(images)):
        raise ValueError(f"{path} holds images of {images.dtype}, or with NaN among them; store finite numbers")
    low, high = float(images.min()), float(images.max())
    return np.round((images - low) * (255 / max(high - low, 1e-9))).astype(np.uint8)


def _small(content: bytes) -> np.ndarray:
    """A file decoded, upright, as colours at the size that the model sees."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(io.BytesIO(content)) as image:
                # The first of several, decoded at a size not much larger than needed where the format can.
                image.draft("RGB", (4 * SIDE, 4 * SIDE))
                return _resized(image)
        except Image.DecompressionBombWarning as error:
            raise ValueError(str(error)) from error


def _resized(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
