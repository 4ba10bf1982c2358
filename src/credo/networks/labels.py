"""Labels of axes: which of them count the same units, which are fixed, and how an axis is made up of several."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# The labels of one axis, outermost first; an axis of length one (or none) has none.
Factors = tuple[int, ...]


@dataclass
class Labels:
    """Labels in disjoint sets, some of them fixed, some divided into an outer and an inner one."""

    sizes: list[int] = field(default_factory=list)
    _parents: list[int] = field(default_factory=list)
    _parts: dict[int, tuple[int, int]] = field(default_factory=dict)
    _fixed: set[int] = field(default_factory=set)

    def new(self, size: int, *, fixed: bool = False) -> Factors:
        """The labels of a new axis."""
        if size < 2:
            return ()
        label = len(self.sizes)
        self.sizes.append(size)
        self._parents.append(label)
        if fixed:
            self._fixed.add(label)
        return (label,)

    def is_fixed(self, label: int) -> bool:
        return self._root(label) in self._fixed

    def size(self, factors: Iterable[int]) -> int:
        return math.prod(self.sizes[label] for label in factors)

    def resolved(self, factors: Iterable[int]) -> list[int]:
        """The same factors as representatives that are not divided any further."""
        found: list[int] = []
        for label in map(self._root, factors):
            found += self.resolved(self._parts[label]) if label in self._parts else [label]
        return found

    def fix(self, *axes: Factors) -> None:
        for factors in axes:
            self._fixed.update(self.resolved(factors))

    def unify(self, *axes: Factors) -> Factors:
        """Let axes of the same length, or of length one, be one; where divisions do not fit, they are fixed."""
        first, *others = [factors for factors in axes if factors] or [()]
        for other in others:
            self._match(list(first), list(other))
        return first

    def reshaped(self, axes: Sequence[Factors], shape: Sequence[int]) -> tuple[Factors, ...]:
        """The axes of an array whose numbers keep their order in another shape."""
        fresh = [self.new(size) for size in shape]
        self._match([one for axis in axes for one in axis], [one for axis in fresh for one in axis])
        return tuple(fresh)

    def _match(self, left: list[int], right: list[int]) -> None:
        """Bring together the factors of two axes from the outermost inwards; fix what does not fit."""
        while left and right:
            left, right = ([*self.resolved(side[:1]), *side[1:]] for side in (left, right))
            one, other = self.sizes[left[0]], self.sizes[right[0]]
            if one == other:
                self._union(left.pop(0), right.pop(0))
            elif one % other == 0:
                self._divide(left[0], other)
            elif other % one == 0:
                self._divide(right[0], one)
            else:
                break
        self.fix(tuple(left), tuple(right))

    def _root(self, label: int) -> int:
        while self._parents[label] != label:
            label = self._parents[label]
        return label

    def _union(self, one: int, other: int) -> None:
        one, other = self._root(one), self._root(other)
        if one != other:
            self._parents[other] = one
            if other in self._fixed:
                self._fixed.add(one)

    def _divide(self, label: int, outer: int) -> None:
        fixed = label in self._fixed
        sizes = outer, self.sizes[label] // outer
        self._parts[label] = tuple(self.new(size, fixed=fixed)[0] for size in sizes)  # type: ignore[assignment]
