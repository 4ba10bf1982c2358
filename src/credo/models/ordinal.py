"""Classes in an order: grades, stages, ratings.

    P(y ≤ k | x) = sigmoid(c_k − f_theta(x)),    c_1 < c_2 < …

McCullagh, "Regression models for ordinal data" (1980). One number for each row says how far up it is; the cut points
say where the classes end.
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._checks import require_at_least
from credo.data import Data, as_whole
from credo.models.laws import model_of, numbers_of, refuse
from credo.models.program import Model
from credo.typing import Array


def ordinal(net: Any, num_classes: int, *, prior: Any = None) -> Model:
    """A network whose output is a place on a scale, which cut points divide into classes.

        theta ~ p(theta),    shares ~ Dirichlet(1, …, 1),    c_k = logit(shares_1 + … + shares_k)
        P(y ≤ k) = sigmoid(c_k − f_theta(x))

    The prior of the cut points is that of the shares of the classes where the network says 0. Predictions are those of
    a classifier; what is predicted for one class knows of its neighbours.

    Arguments:
        net: one output.
        num_classes: y holds 0, 1, … num_classes − 1, in their order.
        prior: of the weights, as for `credo.models.regression`.

    >>> from credo.networks import MLP
    >>> model = ordinal(MLP([20], out=1), 4).bind(([1.0, 2.0, 3.0], [0, 3, 1]))
    >>> model.describe().sites[-1].name
    'shares'
    """
    require_at_least(2, num_classes=num_classes)
    return model_of(Ordinal(num_classes), net, prior)


@dataclass(frozen=True)
class Ordinal:
    """y ~ Cat of a place between cut points; see `ordinal`."""

    name: ClassVar[str] = "ordinal"
    num_classes: int

    @property
    def outputs(self) -> dict[int, str]:
        return {1: "the place on the scale"}

    def suited(self, data: Data) -> Data:
        y = numbers_of(data, self.name)
        refuse(
            y,
            (y < 0) | (y >= self.num_classes) | (y != np.round(y)) & np.isfinite(y),
            self.name,
            f"the numbers of {self.num_classes} classes in their order, 0 to {self.num_classes - 1}",
        )
        return data.with_unit(as_whole(data.y))

    def draw(self, num_outputs: int) -> Array:
        """The cut points, (classes − 1,)."""
        return cut_points(numpyro.sample("shares", dist.Dirichlet(jnp.ones(self.num_classes))))

    def answer(self, outputs: Array) -> Array:
        return outputs

    def around(self, outputs: Array, drawn: Array) -> dist.Distribution:
        """sigmoid(a) − sigmoid(b) = sigmoid(a) sigmoid(−b) (1 − exp(b − a)): no difference of equal numbers."""
        ends = drawn - outputs
        first, last = jax.nn.log_sigmoid(ends[..., :1]), jax.nn.log_sigmoid(-ends[..., -1:])
        above, below = ends[..., 1:], ends[..., :-1]
        middle = jax.nn.log_sigmoid(above) + jax.nn.log_sigmoid(-below) + jnp.log(-jnp.expm1(below - above))
        return dist.Categorical(logits=jnp.concatenate([first, middle, last], axis=-1))

    def to_config(self) -> dict[str, Any]:
        return asdict(self)


def cut_points(shares: Array) -> Array:
    """Where classes end that have these shares where the network says 0, (classes − 1,).

    >>> print(cut_points(jnp.array([0.5, 0.25, 0.25])).round(3))
    [0.    1.099]
    """
    below, above = jnp.cumsum(shares)[:-1], jnp.cumsum(shares[::-1])[::-1][1:]
    return jnp.log(below) - jnp.log(above)
