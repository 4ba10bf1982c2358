"""What a model is made of: enough to make the same model of another network, or with another prior."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, eq=False)
class Recipe:
    """The network and the prior of a model, and how it is made of them.

    Arguments:
        make: `make(net, prior)` is the same model of another network and another prior.
        net: as it was passed.
        prior: of `credo.priors`.
        sees_x_by_network: whether x is seen through the network alone, so that what a part of the network makes of x
            may stand in its place.
    """

    make: Callable[[Any, Any], Any]
    net: Any
    prior: Any
    sees_x_by_network: bool = True

    def then(self, change: Callable[[Any], Any]) -> "Recipe":
        """The recipe of a model that was changed after it was made."""
        return replace(self, make=lambda net, prior: change(self.make(net, prior)))
