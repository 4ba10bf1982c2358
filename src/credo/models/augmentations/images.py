"""What may happen to images, (height, width) or (height, width, channels); flips and shifts also to series."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates

from credo._checks import require_at_least, require_one_of, require_positive
from credo.models.augmentations.augmentation import Augmentation
from credo.typing import Array, Key

Fill = Literal["zero", "edge"]


@dataclass(frozen=True)
class Flip(Augmentation):
    """See `flip`.

    >>> from credo import augmentations
    >>> augmentations.flip(axis=0)
    Flip(axis=0)
    """

    name = "flip"
    axis: int

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        return jnp.where(jax.random.bernoulli(key), jnp.flip(x, self.axis), x)

    @property
    def num_images(self) -> int:
        return 2

    def images(self, x: Array) -> list[Array]:
        return [x, jnp.flip(x, self.axis)]

    def check(self, shape: tuple[int, ...]) -> None:
        if self.axis >= len(shape):
            raise ValueError(f"flip: axis is {self.axis}, and rows of shape {shape} have axes 0 to {len(shape) - 1}")


@dataclass(frozen=True)
class Shift(Augmentation):
    """See `shift`.

    >>> from credo import augmentations
    >>> augmentations.shift(1).num_images  # nine: by −1, 0 or 1 along both axes
    9
    """

    name = "shift"
    by: int
    axes: tuple[int, ...]
    fill: Fill

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        offsets = jax.random.randint(key, (len(self.axes),), -self.by, self.by + 1)
        for number, axis in enumerate(self.axes):
            x = self._moved(x, axis, offsets[number])
        return x

    @property
    def num_images(self) -> int:
        return (2 * self.by + 1) ** len(self.axes)

    def images(self, x: Array) -> list[Array]:
        found = [x]
        for axis in self.axes:
            found = [self._moved(one, axis, offset) for one in found for offset in range(-self.by, self.by + 1)]
        return found

    def _moved(self, x: Array, axis: int, offset: Any) -> Array:
        # One of a few slices, and each is chosen or not: on a CPU faster than a gather for each row.
        wide = [(self.by, self.by) if other == axis else (0, 0) for other in range(x.ndim)]
        padded = jnp.pad(x, wide, mode="edge" if self.fill == "edge" else "constant")
        size, found = x.shape[axis], jnp.zeros_like(x)
        for first in range(2 * self.by + 1):
            window = jax.lax.slice_in_dim(padded, first, first + size, axis=axis)
            found = jnp.where(self.by - offset == first, window, found)
        return found

    def check(self, shape: tuple[int, ...]) -> None:
        for axis in self.axes:
            if axis >= len(shape):
                raise ValueError(f"shift: axes are {self.axes}, and rows of shape {shape} have no axis {axis}")
            if self.by >= shape[axis]:
                raise ValueError(f"shift: by={self.by} moves rows of shape {shape} out of sight along axis {axis}")


@dataclass(frozen=True)
class Rotate(Augmentation):
    """See `rotate`.

    >>> from credo import augmentations
    >>> augmentations.rotate(15)
    Rotate(degrees=15.0, fill='zero')
    """

    name = "rotate"
    degrees: float
    fill: Fill

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        angle = jax.random.uniform(key, minval=-1.0, maxval=1.0) * math.radians(self.degrees)
        return _resampled(x, _turn(angle), jnp.zeros(2), self.fill)

    def check(self, shape: tuple[int, ...]) -> None:
        _check_image(self.name, shape)


@dataclass(frozen=True)
class Crop(Augmentation):
    """See `crop`.

    >>> from credo import augmentations
    >>> augmentations.crop(0.9)
    Crop(smallest=0.9)
    """

    name = "crop"
    smallest: float

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        share, down, right = jax.random.uniform(key, (3,))
        share = self.smallest + (1 - self.smallest) * share
        # The centre of a window of that share lies so far from the middle at most that all of it is in the image.
        room = (1 - share) * (jnp.array(x.shape[:2]) - 1) / 2
        centre = room * (2 * jnp.stack([down, right]) - 1)
        return _resampled(x, share * jnp.eye(2), centre, "edge")

    def check(self, shape: tuple[int, ...]) -> None:
        _check_image(self.name, shape)


def flip(axis: int = 1) -> Flip:
    """x′ is x, or x in reverse along an axis: of an image left and right change places, with axis=0 top and bottom.

    >>> print(jnp.stack(flip(axis=0).images(jnp.arange(3))))
    [[0 1 2]
     [2 1 0]]
    """
    require_at_least(0, axis=axis)
    return Flip(int(axis))


def shift(by: int = 1, *, axes: Sequence[int] = (0, 1), fill: Fill = "zero") -> Shift:
    """x′ is x moved by up to `by` whole places along each of the axes, all offsets being equally probable.

    Arguments:
        axes: those of an image, height and width; (0,) for a series.
        fill: what comes in: "zero" (in the user's units), or "edge", the nearest value.

    >>> print(jnp.stack(shift(1, axes=(0,)).images(jnp.arange(1, 4))))
    [[2 3 0]
     [1 2 3]
     [0 1 2]]
    """
    require_at_least(1, by=by)
    require_one_of(("zero", "edge"), fill=fill)
    chosen = tuple(axes) if isinstance(axes, Sequence) else ()
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"axes must be different axes of a row, such as (0, 1), got {axes!r}")
    for axis in chosen:
        require_at_least(0, axes=axis)
    return Shift(int(by), chosen, fill)


def rotate(degrees: float = 10.0, *, fill: Fill = "zero") -> Rotate:
    """x′ is the image x turned about its middle by an angle of at most `degrees` either way, uniform; bilinear.

    >>> from credo import random
    >>> rotate(15)(random.key(0), jnp.ones((8, 8))).shape
    (8, 8)
    """
    require_positive(degrees=degrees)
    require_one_of(("zero", "edge"), fill=fill)
    return Rotate(float(degrees), fill)


def crop(smallest: float = 0.8) -> Crop:
    """x′ is a window of the image x at a random place, made as large as x again; bilinear.

    Arguments:
        smallest: share of height and width that the smallest window has; shares are uniform from there to 1.

    >>> from credo import random
    >>> crop(0.9)(random.key(0), jnp.ones((8, 8, 3))).shape
    (8, 8, 3)
    """
    require_positive(smallest=smallest)
    if smallest >= 1:
        raise ValueError(f"smallest must be a share below 1, got {smallest!r}")
    return Crop(float(smallest))


def _resampled(x: Array, matrix: Array, centre: Array, fill: Fill) -> Array:
    """The image at the places matrix @ place + centre, bilinear; places are counted from the middle."""
    middle = (jnp.array(x.shape[:2]) - 1) / 2
    grid = jnp.stack(jnp.meshgrid(*map(jnp.arange, x.shape[:2]), indexing="ij")) - middle[:, None, None]
    places = jnp.einsum("ij,jhw->ihw", matrix, grid) + (middle + centre)[:, None, None]
    mode = "nearest" if fill == "edge" else "constant"

    def of_channel(channel: Array) -> Array:
        return map_coordinates(channel, [places[0], places[1]], order=1, mode=mode)

    return of_channel(x) if x.ndim == 2 else jax.vmap(of_channel, in_axes=-1, out_axes=-1)(x)


def _turn(angle: Array) -> Array:
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    return jnp.array([[cosine, -sine], [sine, cosine]])


def _check_image(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) not in (2, 3):
        raise ValueError(
            f"{name} is for images, (height, width) or (height, width, channels), and rows have shape {shape}; if they "
            f"hold the pixels of one, pass credo.augmentations.as_image((height, width), {name}(…))"
        )
