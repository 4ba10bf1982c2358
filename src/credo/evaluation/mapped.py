"""A prediction seen through a map of its marginal."""

from typing import Any, Self

from credo.predictive import Predictive


class Mapped(Predictive):
    """The prediction `base` with the marginal that `map` makes of it; `functions` stay those of the draws."""

    def __init__(self, base: Any, map: Any) -> None:
        super().__init__(base.conditional_of, base.draws, base.x, weights=base.weights, scaling=base.scaling)
        self.base = base
        self.map = map

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.base[rows], self.map)
