"""What an augmentation is: a law p(x′ | x, Aug) of what one row could have been as well.

Paper, "Data augmentation". It acts on one row x in the user's units, and keeps its shape.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from credo.typing import Array, Key


class Augmentation:
    """p(x′ | x, Aug): a frozen dataclass, called with a key and a row. Derive from it, or pass any `(key, x) → x′`.

    >>> from dataclasses import dataclass
    >>> from credo import augmentations
    >>> @dataclass(frozen=True)
    ... class Swap(augmentations.Augmentation):
    ...     name = "swap"
    ...     num_images = 2
    ...     def images(self, x):
    ...         return [x, x[::-1]]
    >>> print(Swap(), Swap().num_images)
    swap() 2
    """

    name: ClassVar[str]

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        """One draw of x′, of the shape of x."""
        raise NotImplementedError

    def constants(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """What else it needs, from the training inputs, once and on the host."""
        return {}

    @property
    def num_images(self) -> int | None:
        """How many x′ there are, all equally probable; None where they are a continuum."""
        return None

    def images(self, x: Array) -> list[Array]:
        """All of them."""
        raise NotImplementedError

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse rows of a shape that it is not made for."""

    def __str__(self) -> str:
        own = [f"{field.name}={_said(getattr(self, field.name))}" for field in fields(self)]  # type: ignore[arg-type]
        return f"{self.name}({', '.join(own)})"

    def to_config(self) -> dict[str, Any]:
        """As JSON; code of the user's is named and not stored."""
        settings = {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"name": self.name, **settings}


@dataclass(frozen=True)
class Custom(Augmentation):
    """Any `(key, x) → x′` of the user's: a pure JAX function of a key and one row in the user's units.

    >>> import jax
    >>> from credo import augmentations
    >>> shuffled = augmentations.as_augmentation(jax.random.permutation)
    >>> isinstance(shuffled, augmentations.Custom), shuffled(jax.random.key(0), jax.numpy.arange(4)).shape
    (True, (4,))
    """

    name = "custom"
    function: Callable[[Key, Array], Array]

    def __call__(self, key: Key, x: Array, **constants: Any) -> Array:
        return self.function(key, x)

    def __str__(self) -> str:
        return _said(self.function)


def as_augmentation(transform: Any) -> Augmentation:
    """An augmentation from what users pass: one of `credo.augmentations`, or any `(key, x) → x′` of one row.

    >>> import jax
    >>> as_augmentation(jax.random.permutation).name
    'custom'
    """
    if isinstance(transform, Augmentation):
        return transform
    # A maker that was not called would be taken for a function of a key and a row.
    is_maker = str(getattr(transform, "__module__", "")).startswith(__package__)
    if not callable(transform) or isinstance(transform, type) or is_maker:
        raise ValueError(
            f"transform: {transform!r} is not an augmentation; pass a function (key, x) → x′ of one row, or one of "
            "credo.augmentations, such as credo.augmentations.shift(1)"
        )
    if not _takes_key_and_row(transform):
        raise ValueError(
            "transform: a function of your own takes a key and one row, (key, x) → x′; for functions of x alone there "
            "is credo.augmentations.group([…])"
        )
    return Custom(transform)


def _takes_key_and_row(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a built-in function, whose signature is not known
        return True
    return True


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_said, value))})"
    is_code = callable(value) and not isinstance(value, Augmentation)
    return getattr(value, "__name__", type(value).__name__) if is_code else str(value)


def _to_json(value: Any) -> Any:
    if isinstance(value, Augmentation):
        return value.to_config()
    if callable(value):
        return {"code": getattr(value, "__qualname__", type(value).__qualname__)}
    return [_to_json(item) for item in value] if isinstance(value, tuple) else value
