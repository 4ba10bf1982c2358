"""The points that a function may be asked about: ranges and options, as coordinates that suit a network.

    {"rate": (1e-5, 0.1, "log"), "layers": (1, 5, "integer"), "width": (8, 512, "log integer"), "kind": ["a", "b"]}

A range becomes one coordinate from −1 to 1, a list of options one coordinate for each option: 1 for the chosen one, 0
for the others. Every row of coordinates stands for a point, the nearest one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from credo._checks import require_one_of

WORDS = ("log", "integer", "log integer")
# A point as the user has it: a value for each name, or an array where the bounds are a list.
Point = Any


class Dimension(Protocol):
    """One argument of the function."""

    @property
    def width(self) -> int:
        """How many coordinates it takes."""

    @property
    def is_continuous(self) -> bool:
        """Whether every coordinate stands for a value of its own."""

    @property
    def num_values(self) -> float:
        """How many values there are."""

    def encode(self, value: Any) -> np.ndarray:
        """The coordinates of a value; a ValueError if it has none."""

    def decode(self, coordinates: np.ndarray) -> Any:
        """The value nearest to coordinates."""

    def to_plain(self, value: Any) -> float:
        """A number that stands for the value in a file."""

    def from_plain(self, number: float) -> Any:
        """The value again."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, whole ones if `integer`; equal ratios are equally far apart if `log`."""

    low: float
    high: float
    log: bool = False
    integer: bool = False

    width = 1

    @property
    def is_continuous(self) -> bool:
        return not self.integer

    @property
    def num_values(self) -> float:
        return self.high - self.low + 1 if self.integer else math.inf

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Whole numbers stand for those that round to them: the first and the last get as much room as the others."""
        margin = 0.5 if self.integer else 0.0
        return self._warp(self.low - margin), self._warp(self.high + margin)

    def _warp(self, value: float) -> float:
        return math.log(value) if self.log else value

    def encode(self, value: Any) -> np.ndarray:
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ValueError(f"is {value!r}, which is no number")
        if not self.low <= value <= self.high:
            raise ValueError(f"is {value!r}, outside of {self.low:g} to {self.high:g}")
        if self.integer and not float(value).is_integer():
            raise ValueError(f"is {value!r}, which is no whole number")
        low, high = self._ends
        return np.array([2 * (self._warp(float(value)) - low) / (high - low) - 1])

    def decode(self, coordinates: np.ndarray) -> float | int:
        low, high = self._ends
        warped = low + (float(coordinates[0]) + 1) / 2 * (high - low)
        value = min(max(math.exp(warped) if self.log else warped, self.low), self.high)
        return round(value) if self.integer else value

    def to_plain(self, value: Any) -> float:
        return float(value)

    def from_plain(self, number: float) -> float | int:
        return int(number) if self.integer else float(number)


@dataclass(frozen=True)
class Options:
    """One of several values without an order."""

    options: tuple[Any, ...]

    is_continuous = False

    @property
    def width(self) -> int:
        return len(self.options)

    @property
    def num_values(self) -> float:
        return len(self.options)

    def encode(self, value: Any) -> np.ndarray:
        return np.eye(len(self.options))[int(self.to_plain(value))]

    def decode(self, coordinates: np.ndarray) -> Any:
        return self.options[int(np.argmax(coordinates))]

    def to_plain(self, value: Any) -> float:
        if value not in self.options:
            raise ValueError(f"is {value!r}, and the options are {', '.join(map(repr, self.options))}")
        return float(self.options.index(value))

    def from_plain(self, number: float) -> Any:
        return self.options[int(number)]


@dataclass(frozen=True)
class Space:
    """All points, by dimension; `names` where points are dictionaries, None where they are arrays.

    >>> space = Space.of({"rate": (0.01, 1.0, "log"), "kind": ["a", "b"]})
    >>> space.encode([{"rate": 0.1, "kind": "b"}]).tolist()
    [[0.0, 0.0, 1.0]]
    """

    dimensions: tuple[Dimension, ...]
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, bounds: Any) -> "Space":
        """From a dictionary of names, or a list of pairs of numbers; anything else is refused."""
        if isinstance(bounds, Space):
            return bounds
        if not isinstance(bounds, Mapping | Sequence | np.ndarray) or isinstance(bounds, str | bytes):
            raise ValueError(f"bounds is {bounds!r}; pass {{'name': (low, high), …}} or [(low, high), …]")
        if not len(bounds):
            raise ValueError("bounds is empty; pass at least one range, {'x': (low, high)}")
        if isinstance(bounds, Mapping):
            return cls(tuple(_dimension(name, bounds[name]) for name in bounds), tuple(map(str, bounds)))
        dimensions = tuple(_dimension(number, _as_tuple(number, one)) for number, one in enumerate(bounds))
        return cls(dimensions)

    @property
    def width(self) -> int:
        """How many coordinates a point has."""
        return sum(one.width for one in self.dimensions)

    @cached_property
    def continuous(self) -> np.ndarray:
        """Which coordinates may be moved by a little, (width,)."""
        return np.concatenate([np.full(one.width, one.is_continuous) for one in self.dimensions])

    @property
    def num_points(self) -> float:
        """How many points there are; infinite where a range is not of whole numbers."""
        return math.prod(one.num_values for one in self.dimensions)

    def encode(self, points: Sequence[Point]) -> np.ndarray:
        """The coordinates of points, (points, width)."""
        rows = [np.concatenate(self._encoded(self._values(point))) for point in points]
        return np.stack(rows) if rows else np.zeros((0, self.width))

    def decode(self, rows: np.ndarray) -> list[Point]:
        """The points nearest to rows of coordinates."""
        borders = np.cumsum([one.width for one in self.dimensions])[:-1]
        return [
            self._point([one.decode(part) for one, part in zip(self.dimensions, np.split(row, borders), strict=True)])
            for row in rows
        ]

    def snapped(self, rows: np.ndarray) -> np.ndarray:
        """Rows of coordinates moved to where the points are that they stand for."""
        return np.clip(rows, -1, 1) if self.continuous.all() else self.encode(self.decode(rows))

    def to_plain(self, point: Point) -> list[float]:
        """A point as numbers for a file."""
        values = self._values(point)
        self._encoded(values)
        return [one.to_plain(value) for one, value in zip(self.dimensions, values, strict=True)]

    def from_plain(self, numbers: Sequence[float]) -> Point:
        """A point that was numbers in a file."""
        return self._point([one.from_plain(number) for one, number in zip(self.dimensions, numbers, strict=True)])

    def checked(self, point: Point) -> Point:
        """A point in the form in which the space has it; a ValueError if it is not in the space."""
        return self.from_plain(self.to_plain(point))

    def _point(self, values: list[Any]) -> Point:
        return np.array(values, float) if self.names is None else dict(zip(self.names, values, strict=True))

    def _encoded(self, values: list[Any]) -> list[np.ndarray]:
        """The coordinates of the values of a point; a ValueError names the one that has none."""
        found = []
        for number, (one, value) in enumerate(zip(self.dimensions, values, strict=True)):
            try:
                found.append(one.encode(value))
            except ValueError as error:
                name = number if self.names is None else repr(self.names[number])
                raise ValueError(f"x: its value of {name} {error}") from error
        return found

    def _values(self, point: Point) -> list[Any]:
        if self.names is None:
            values = np.atleast_1d(np.asarray(point))
            if values.shape != (len(self.dimensions),) or values.dtype.kind not in "iuf":
                raise ValueError(f"x is {point!r}; pass {len(self.dimensions)} numbers, one for each of the bounds")
            return values.tolist()
        if not isinstance(point, Mapping) or set(point) != set(self.names):
            raise ValueError(f"x is {point!r}; pass a dictionary with a value for each of {', '.join(self.names)}")
        return [point[name] for name in self.names]


def _as_tuple(number: int, one: Any) -> tuple[Any, ...]:
    """The bounds of a number without a name: pairs may be lists there, as optimisers elsewhere take them."""
    if isinstance(one, str) or not hasattr(one, "__len__") or len(one) not in (2, 3):
        raise ValueError(f"bounds[{number}] is {one!r}; pass (low, high), or a dictionary to name options as well")
    return tuple(one)


def _dimension(name: Any, given: Any) -> Dimension:
    place = f"bounds[{name!r}]"
    if isinstance(given, list):
        return _options(place, given)
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise ValueError(
            f"{place} is {given!r}; pass (low, high), (low, high, 'log' or 'integer'), or a list of options"
        )
    low, high, word = (*given, "")[:3]
    if any(isinstance(end, bool) or not isinstance(end, int | float | np.number) for end in (low, high)):
        raise ValueError(f"{place} is {given!r}, whose ends are no numbers; pass (low, high), or options as a list")
    if word != "":
        require_one_of(WORDS, **{place: word})
    found = Range(float(low), float(high), log="log" in word, integer="integer" in word)
    _check_range(place, found)
    return found


def _options(place: str, given: list[Any]) -> Options:
    if len(given) < 2:
        raise ValueError(f"{place} is {given!r}; pass at least two options, or leave it out")
    repeated = [one for number, one in enumerate(given) if one in given[:number]]
    if repeated:
        raise ValueError(f"{place} has {repeated[0]!r} twice; pass each option once")
    return Options(tuple(given))


def _check_range(place: str, found: Range) -> None:
    low, high = found.low, found.high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{place} goes from {low:g} to {high:g}; pass finite numbers, the smaller one first")
    if found.log and low <= 0:
        raise ValueError(f"{place} begins at {low:g}, and a logarithm needs positive numbers; pass a low above 0")
    if found.integer and not (low.is_integer() and high.is_integer()):
        raise ValueError(f"{place} goes from {low:g} to {high:g}; of an integer both ends are whole numbers")
