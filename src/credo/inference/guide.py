"""What a method is good for, in the words that only people can say.

Paper, figure "Summary of the different inference approaches used to train a BNN with their benefits, limitations and
use cases". `catalogue` puts them beside what is read off the code.
"""

from dataclasses import dataclass
from typing import Literal

Exactness = Literal["exact", "up to its step size", "approximate", "point"]

EXACTNESS: dict[Exactness, str] = {
    "exact": "the posterior itself; by draws, if chains run long enough",
    "up to its step size": "draws from a density that comes the closer to the posterior the smaller the steps",
    "approximate": "a simpler distribution in place of the posterior",
    "point": "one value of theta, without epistemic uncertainty",
}


@dataclass(frozen=True)
class Reach:
    """What a method reaches at its default settings, on a regression that is linear in six weights, from 300 rows.

    It is measured on functions, at 50 inputs, and `tests/contract/test_defaults.py` holds each method to it.

    Arguments:
        means: the largest distance from the exact mean, in exact sds.
        sds: the least and the largest sd, as shares of the exact ones.
        beside: whose mean and sds these are: the "posterior", or the best "diagonal" Gaussian, of the same mean.

    >>> print(Reach(0.1, (0.9, 1.1)))
    means within 0.1 sds, sds 0.9 to 1.1 of the posterior's
    """

    means: float
    sds: tuple[float, float]
    beside: Literal["posterior", "diagonal"] = "posterior"

    def __str__(self) -> str:
        low, high = self.sds
        widths = "no spread at all" if high == 0 else f"sds {low:g} to {high:g} of {WHOSE[self.beside]}"
        return f"means within {self.means:g} sds, {widths}"


WHOSE = {"posterior": "the posterior's", "diagonal": "the best diagonal Gaussian's"}


@dataclass(frozen=True)
class Guide:
    """What a method is good for. What it is stands in the first line of its docstring.

    Arguments:
        exact: how far the result can be from the posterior, one of `EXACTNESS`.
        benefits, limits, use_cases: as in the paper's summary, each a short phrase.
        stores: what is kept, as a law; `method.describe(model, data)` has the numbers.
        costs: what it takes to compute.
        reaches: what it reaches at its defaults where the posterior is known; every method of the registry says it.
        if_non_finite: what to try when a run goes non-finite.
        if_too_large: what to do where a run would not fit into memory.

    >>> Guide("point", "cheap", "too sure", "a baseline", "one theta", "one gradient per step").exact
    'point'
    """

    exact: Exactness
    benefits: str
    limits: str
    use_cases: str
    stores: str
    costs: str
    reaches: Reach | None = None
    if_non_finite: str = "check the scale of the data (standardise them) and the prior"
    if_too_large: str = "keep fewer draws, thin more, or choose a method that stores less (credo.MAP)"
