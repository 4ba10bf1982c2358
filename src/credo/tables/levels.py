"""Categories with more levels than a column for each could hold: the rarer ones together, or each by its target."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from credo.tables.cells import words
from credo.tables.column import Filled
from credo.tables.columns import Categorical

OTHER = "other"


@dataclass(frozen=True)
class Grouped(Categorical):
    """The most frequent levels, and a last one for all others: those that were rare at fit, and those that are new.

    >>> Grouped("city", levels=("Bern", "Ulm", OTHER), fill="Bern", num_levels=120).encode(pl.Series(["Ulm", "Bonn"]))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    kind: ClassVar[str] = "grouped"
    num_levels: int = 0

    @property
    def says(self) -> str:
        missing = f"; {self.num_missing:,} missing, a level of their own" if self.num_missing else ""
        return (
            f"category of {self.num_levels:,} levels: a column of 0 and 1 for each of the {len(self.levels) - 1} most "
            f"frequent ({', '.join(self.levels[:4])}, …), and one for all others and for new ones{missing}"
        )

    def read(self, cells: pl.Series) -> pl.Series:
        texts = words(cells)
        return super().read(texts.set(~texts.is_in(self.levels), OTHER))


@dataclass(frozen=True)
class ByTarget(Filled):
    """The mean of the target in each level, and how well it is known: an estimate that shrinks where rows are few.

        effect_l = μ + n_l/(n_l + m) (ȳ_l − μ),        known_l = n_l/(n_l + m),        m = σ²/τ²

    with the variance σ² of the target within levels, and τ² of their means, as an analysis of variance estimates them
    (Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes", 2001). A level that is new has
    μ, and 0. In the rows that they are learned from, effects are `cross_fitted`: a row never sees its own target.

    Arguments:
        outputs: what is averaged, in words: "mean of price", or a share for each class.
        levels: in order.
        effects: (outputs, levels).
        known: (levels,).
        overall: μ of each output.

    >>> ByTarget("zip", outputs=("mean of rent",), levels=("8001",), effects=((9.0,),), known=(0.5,), overall=(7.0,)
    ... ).encode(pl.Series(["8001", "9999"]))
    array([[9. , 0.5],
           [7. , 0. ]])
    """

    kind: ClassVar[str] = "by target"
    outputs: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    effects: tuple[tuple[float, ...], ...] = ()
    known: tuple[float, ...] = ()
    overall: tuple[float, ...] = ()
    read = staticmethod(words)

    @property
    def values_names(self) -> tuple[str, ...]:
        return (*(f"{self.name}: {output}" for output in self.outputs), f"{self.name}: known")

    @property
    def says(self) -> str:
        shares = self.outputs[0] if len(self.outputs) == 1 else "share of each class"
        return (
            f"category of {len(self.levels):,} levels ({', '.join(self.levels[:4])}, …), as the {shares} in each, "
            "nearer to that of all the fewer rows there are, and how well it is known; at fit from other rows, so that "
            f"none sees its own target; a new level has that of all{self._and_missing()}"
        )

    @property
    def filling(self) -> str:
        return "as a new level"

    def places(self, cells: pl.Series) -> np.ndarray:
        """The number of each cell's level, (rows,); −1 for a new or a missing one."""
        return (
            words(cells).cast(pl.Enum(self.levels), strict=False).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        )

    def numbers_of(self, values: pl.Series) -> np.ndarray:
        table = np.column_stack([*self.effects, self.known])
        # The last row is that of new levels: place −1.
        return np.vstack([table, [*self.overall, 0.0]])[self.places(values)]
