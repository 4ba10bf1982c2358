"""Inputs of a model's own: points that its prior looks at, the same ones whatever the batch is.

A prior that looks at inputs, such as one with a consistency condition p(theta | D_x) (paper, "Prior with a consistency
condition"), must not look at the batch: each method, and each step, would see another prior. So a model declares them,
`credo.Model(program, inputs={"u": U})`, binds them to the data, and hands them to its program as arguments.

What stands in a plate of the same name, `numpyro.plate("u", u.shape[0])`, is a sum over these inputs: methods that see
minibatches of the data then see some of them at a time, n of N, and the sum is scaled by N/n. Others are always whole.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import msgspec
import numpy as np

from credo._files import LoadError
from credo._precision import working_precision
from credo._schema import Count, Sha256, checked
from credo._text import nearest
from credo.data import Data, Scaling

# Stands for the inputs of the training data, in the place of an array.
TRAINING = "training"
# Larger arrays, and the training inputs, are saved by reference: their shape and checksum.
MAX_STORED_BYTES = 2**26
# A program is traced with so many rows of an input of which nothing depends on the values.
NUM_EXAMPLE_ROWS = 2


@dataclass(frozen=True)
class Input:
    """One array: equal where the content is equal, so that models that hold it can be hashed.

    Arguments:
        by_reference: whether it is too large to be saved, or the user has it anyway.
        value: None where it was saved by reference, and has not been given again.
    """

    shape: tuple[int, ...]
    dtype: str
    checksum: str
    by_reference: bool = False
    is_known: bool = True
    value: np.ndarray | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, array: Any, *, by_reference: bool = False) -> "Input":
        whole = np.ascontiguousarray(array)
        by_reference = by_reference or whole.nbytes > MAX_STORED_BYTES
        checksum = hashlib.sha256(whole.data).hexdigest()
        return cls(whole.shape, str(whole.dtype), checksum, by_reference, True, whole)

    def placeholder(self, num_rows: int | None = None) -> np.ndarray:
        """Zeros in its place, fewer rows if asked."""
        shape = self.shape if num_rows is None else (min(num_rows, self.shape[0]), *self.shape[1:])
        return np.zeros(shape, self.dtype)


class StoredInput(msgspec.Struct, forbid_unknown_fields=True):
    """An input as JSON has it."""

    shape: tuple[Count, ...]
    dtype: Literal["float32", "float64", "int32", "int64", "bool"]
    checksum: Sha256
    stored: bool


@dataclass(frozen=True)
class Inputs:
    """The inputs of a bound model, by name."""

    items: tuple[tuple[str, Input], ...] = ()

    @classmethod
    def of(cls, inputs: Mapping[str, Input]) -> "Inputs":
        return cls(tuple(inputs.items()))

    def __getitem__(self, name: str) -> Input:
        return dict(self.items)[name]

    def __contains__(self, name: object) -> bool:
        return name in dict(self.items)

    def values(self) -> dict[str, np.ndarray]:
        """The arrays by name; a ValueError if one of them was not saved."""
        for name, one in self.items:
            if one.value is None:
                raise ValueError(
                    f"the model's prior looks at the inputs {name!r}, which were saved by reference; to evaluate it, "
                    "pass them: credo.load(folder, inputs={…}), or bind the model to its data again"
                )
        return self.known()

    def known(self) -> dict[str, np.ndarray]:
        """The arrays that there are, by name."""
        return {name: one.value for name, one in self.items if one.value is not None}

    def stored(self) -> dict[str, np.ndarray]:
        """The arrays that are saved with a posterior."""
        return {name: value for name, value in self.known().items() if not self[name].by_reference}

    def kept(self, names: frozenset[str]) -> "Inputs":
        """The same, with those of these names saved, however large."""
        return Inputs.of({n: replace(one, by_reference=one.by_reference and n not in names) for n, one in self.items})

    def to_config(self) -> dict[str, dict[str, Any]]:
        """Shapes and checksums, as JSON."""
        return {
            name: {
                "shape": list(one.shape),
                "dtype": one.dtype,
                "checksum": one.checksum,
                "stored": not one.by_reference,
            }
            for name, one in self.items
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Mapping[str, Any]], arrays: Mapping[str, np.ndarray]) -> "Inputs":
        """The inverse of `to_config` and `stored`; arrays that were saved by reference may be given too."""
        found = {}
        for name, stored in config.items():
            one, value = checked("inputs", dict(stored), StoredInput), arrays.get(name)
            known = value is not None
            own = Input(one.shape, one.dtype, one.checksum, not one.stored, known, value)
            if value is not None and replace(Input.of(value), by_reference=own.by_reference) != own:
                raise LoadError(
                    f"inputs: {name!r} is not the array that the model was fitted with: it has other values"
                )
            found[name] = own
        return cls.of(found)


NO_INPUTS = Inputs()


class Declared(Protocol):
    """What a model asks for: arrays that are known once there are data."""

    def bound(self, data: Data) -> Inputs:
        """The arrays, for a model of these data."""


@dataclass(frozen=True, eq=False)
class Given:
    """Arrays of the user's, by the names of the program's arguments; "training" stands for the training inputs.

    They are in the user's units: those with rows like x are standardised as x is.
    """

    arrays: dict[str, Any]

    def bound(self, data: Data) -> Inputs:
        return Inputs.of({name: self._bound(name, array, data) for name, array in self.arrays.items()})

    def _bound(self, name: str, array: Any, data: Data) -> Input:
        if isinstance(array, str):
            if array != TRAINING:
                raise ValueError(
                    f"inputs: {name!r} is {array!r}{nearest(array, (TRAINING,))}; pass an array, or "
                    f"{TRAINING!r} for the training inputs"
                )
            return Input.of(data.scaling.inputs(data.x), by_reference=True)
        return Input.of(in_model_units(name, array, data.scaling, data.x.shape[1:]))


def as_declared(inputs: Any) -> Declared | None:
    """What a model asks for, from what users pass: None, or a dict of arrays by name."""
    if inputs is None or hasattr(inputs, "bound"):
        return inputs
    if not isinstance(inputs, Mapping) or not all(isinstance(name, str) for name in inputs):
        raise ValueError(
            f"inputs must be a dict of arrays by name, such as {{'u': points}}, got {type(inputs).__name__}"
        )
    taken = sorted({"x", "y", "data"}.intersection(inputs))
    if taken:
        raise ValueError(f"inputs: the name {taken[0]!r} is taken by the data; choose another")
    return Given(dict(inputs)) if inputs else None


def in_model_units(name: str, array: Any, scaling: Scaling, row: tuple[int, ...], precision: Any = None) -> np.ndarray:
    """An array of the user's, checked; those with rows of x's shape are standardised like x, whole numbers are not.

    Arguments:
        precision: of real numbers, if not the working one.
    """
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"inputs: {name!r} must hold numbers, got {values.dtype}")
    if values.size == 0:
        raise ValueError(f"inputs: {name!r} is empty")
    if values.dtype.kind in "iub":
        return values.astype(np.int32)
    if not np.all(np.isfinite(values)):
        raise ValueError(f"inputs: {name!r} has values that are missing or infinite")
    if values.shape[1:] == row:
        return scaling.inputs(values, precision)
    return values.astype(precision or working_precision())
