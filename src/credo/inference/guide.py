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
class Guide:
    """What a method is good for. What it is stands in the first line of its docstring.

    Arguments:
        exact: how far the result can be from the posterior, one of `EXACTNESS`.
        benefits, limits, use_cases: as in the paper's summary, each a short phrase.
        stores: what is kept, as a law; `method.describe(model, data)` has the numbers.
        costs: what it takes to compute.
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
    if_non_finite: str = "check the scale of the data (standardise them) and the prior"
    if_too_large: str = "keep fewer draws, thin more, or choose a method that stores less (credo.MAP)"
