"""Augmentations made of others: one after another, one of several, and images that are stored as vectors."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least
from credo.models.augmentations.augmentation import Augmentation, as_augmentation
from credo.typing import Array, Key


@dataclass(frozen=True)
class Group(Augmentation):
    """See `group`.

    >>> from credo import augmentations
    >>> augmentations.group([lambda x: x, lambda x: -x]).num_images
    2
    """

    name = "group"
    functions: tuple[Callable[[Array], Array], ...]

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        return jnp.stack(self.images(x))[jax.random.randint(key, (), 0, len(self.functions))]

    @property
    def num_images(self) -> int:
        return len(self.functions)

    def images(self, x: Array) -> list[Array]:
        return [jnp.asarray(function(x)) for function in self.functions]


@dataclass(frozen=True)
class Compose(Augmentation):
    """See `compose`.

    >>> from credo import augmentations
    >>> augmentations.compose(augmentations.flip(0), augmentations.flip(1)).num_images
    4
    """

    name = "compose"
    parts: tuple[Augmentation, ...]

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        for number, part in enumerate(self.parts):
            own = {name.partition(".")[2]: value for name, value in constants.items() if _is_of(name, number)}
            x = part(jax.random.fold_in(key, number), x, **own)
        return x

    def constants(self, x: np.ndarray) -> dict[str, np.ndarray]:
        found = [(number, *item) for number, part in enumerate(self.parts) for item in part.constants(x).items()]
        return {f"{number}.{name}": value for number, name, value in found}

    @property
    def num_images(self) -> int | None:
        sizes = [part.num_images for part in self.parts]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    def images(self, x: Array) -> list[Array]:
        found = [x]
        for part in self.parts:
            found = [image for one in found for image in part.images(one)]
        return found

    def check(self, shape: tuple[int, ...]) -> None:
        for part in self.parts:
            part.check(shape)

    def __str__(self) -> str:
        return ", then ".join(map(str, self.parts))


@dataclass(frozen=True)
class AsImage(Augmentation):
    """See `as_image`.

    >>> from credo import augmentations
    >>> augmentations.as_image((8, 8), augmentations.flip(axis=1)).num_images
    2
    """

    name = "as_image"
    shape: tuple[int, ...]
    part: Augmentation

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        return self.part(key, x.reshape(self.shape), **constants).reshape(x.shape)

    def constants(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return self.part.constants(x.reshape(len(x), *self.shape))

    @property
    def num_images(self) -> int | None:
        return self.part.num_images

    def images(self, x: Array) -> list[Array]:
        return [image.reshape(x.shape) for image in self.part.images(x.reshape(self.shape))]

    def check(self, shape: tuple[int, ...]) -> None:
        if math.prod(shape) != math.prod(self.shape):
            raise ValueError(f"as_image: rows of shape {shape} are no images of shape {self.shape}")
        self.part.check(self.shape)


def group(functions: Sequence[Callable[[Array], Array]]) -> Group:
    """x′ is one of finitely many images of x, all equally probable: `num_draws="all"` sums over them exactly.

    Arguments:
        functions: pure JAX functions of one row; the identity too, if x itself is among the images.

    >>> print(jnp.stack(group([lambda x: x, lambda x: -x]).images(jnp.arange(2))))
    [[ 0  1]
     [ 0 -1]]
    """
    if isinstance(functions, str) or not isinstance(functions, Sequence) or not functions:
        raise ValueError(f"functions must be a list of functions x → x′, at least one, got {functions!r}")
    for function in functions:
        if not callable(function) or isinstance(function, Augmentation):
            raise ValueError(f"functions: {function!r} is not a function x → x′ of one row")
    return Group(tuple(functions))


def compose(*parts: Any) -> Compose:
    """One augmentation after another.

    >>> from credo.models.augmentations import flip, noise
    >>> str(compose(flip(), noise(0.1)))
    'flip(axis=1), then noise(scale=0.1)'
    """
    if len(parts) < 2:
        raise ValueError(f"compose takes two augmentations or more, got {len(parts)}")
    return Compose(tuple(as_augmentation(part) for part in parts))


def as_image(shape: Sequence[int], augmentation: Any) -> AsImage:
    """An augmentation of images for rows that hold their pixels as one vector.

    Arguments:
        shape: (height, width) or (height, width, channels).

    >>> from credo.models.augmentations import flip
    >>> as_image((2, 2), flip()).images(jnp.arange(4))[1].tolist()
    [1, 0, 3, 2]
    """
    sizes = tuple(shape)
    for size in sizes:
        require_at_least(1, shape=size)
    return AsImage(sizes, as_augmentation(augmentation))


def _is_of(name: str, number: int) -> bool:
    return name.partition(".")[0] == str(number)
