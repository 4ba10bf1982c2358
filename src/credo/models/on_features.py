"""A model whose points are constants, on the features that they make of x: the same posterior for less.

Paper, "Bayesian inference on the (n-)last layer(s) only". Where no point is left to learn, the part of the network that
depends on x and on points alone gives the same numbers in every gradient: they are computed once, and

    log p(theta, D) = log p(theta) + Σ log p(y | f_theta(g(x)))        g(x) in place of x
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._blocks import block_size, by_block
from credo.models.priors import Drawn, Parameter, Prior, draw, on_network, prior_at
from credo.models.program import Model
from credo.networks.cut import cut
from credo.networks.functional import functional
from credo.typing import Array, Batch

# Rows whose features are computed at once: enough to keep a processor busy, and few enough for the inside of a network.
ROWS_AT_ONCE = 256
# The most memory that features may take, beyond what the inputs take: more would crowd out what they are for.
MAX_BYTES = 2**30


@dataclass(frozen=True, eq=False)
class OnFeatures:
    """A model of features in place of inputs, with the same theta.

    Arguments:
        model: bound to the shape of features; its log joint density is that of the whole model, but for `constant`.
        function: from rows of x, in the model's units, to their features (rows, num_features).
        constant: what regularises the points adds to the log joint of the whole model.
    """

    model: Model
    function: Callable[[Array], Array]
    num_features: int
    constant: float

    def batch(self, batch: Batch) -> Batch:
        """The same rows by their features, computed block by block."""
        x = np.asarray(batch.x)
        size = block_size(len(x), x[0].size, ROWS_AT_ONCE)
        return batch._replace(x=jnp.asarray(by_block(self.function, [x], size, what="Computing features")))


def on_features(model: Model, num_rows: int) -> OnFeatures | None:
    """The model on features, or None where the whole network is needed.

    That is: where points are still to be learned, or there are none; where the program is the user's own, or something
    besides the network looks at x (label noise of x); where x changes (augmentations); where the prior looks at other
    inputs (conditions); and where the features of all rows would take too much memory.

    Arguments:
        model: bound to the shape of the data.

    >>> from credo.models import last_layer, regression
    >>> from credo.networks import MLP, functional
    >>> x, net = np.zeros((9, 3)), MLP([50, 20], out=1)
    >>> model = last_layer(regression(net), trained=functional(net, x).params).bind((x, np.zeros(9)))
    >>> on_features(model, 9).num_features
    20
    """
    found = None if model.recipe is None else _on_features(model)
    if found is None or 4 * num_rows * (found.num_features - math.prod(model.example().x.shape[1:])) > MAX_BYTES:
        return None
    return found


@lru_cache(maxsize=16)  # the same model is the same program, which is compiled once
def _on_features(model: Model) -> OnFeatures | None:
    recipe = model.recipe
    if recipe is None or not recipe.sees_x_by_network or not model.points or not model.frozen_xi.keys() >= model.points:
        return None
    if model.views is not None or model.constants.items:
        return None
    x = model.example().x
    network = functional(recipe.net, x)
    starts: Any = {} if model.initial is None else model.initial(x)
    started = replace(network, params={path: starts.get(path, value) for path, value in network.params.items()})
    found = cut(started, {path: model.frozen_xi[path] for path in model.points}, x)
    if found is None:
        return None
    made: Model = recipe.make(found.head, _Resolved(on_network(recipe.prior, network, x)))
    rows: Any = replace(model.rows, x_shape=(len(x), found.num_features))  # type: ignore[type-var]
    others = {name: value for name, value in model.frozen_xi.items() if name not in model.points}
    own = replace(made, rows=rows, local=model.local, predicts=model.predicts).freeze(others)
    theta = own.initial_theta(random.key(0))
    constant = jax.jit(lambda theta: model.log_prior(theta) - own.log_prior(theta))(theta)
    return OnFeatures(own, jax.jit(found.features), found.num_features, float(constant))


@dataclass(frozen=True)
class _Resolved:
    """A prior of a whole network, for the part of it that is drawn: patterns that match none of that part are right."""

    whole: Prior

    def __call__(self, parameter: Parameter) -> Any:
        return self.whole(parameter)

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        return draw(self.whole, parameter, drawn)

    def at(self, path: str) -> Prior:
        """The prior of one parameter."""
        return prior_at(self.whole, path)

    def to_config(self) -> dict[str, Any]:
        return self.whole.to_config()
