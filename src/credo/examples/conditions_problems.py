"""Four problems of which something is known beforehand: that the function rises, is even, or obeys an equation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

import credo
from credo.models.conditions import Condition, Function
from credo.typing import Array

# The damped oscillator y″ + 2ζω y′ + ω² y = 0 from y = 1 at rest: a period of 3.2, and 6 time units for two of them.
OMEGA, ZETA = 2.0, 0.15
END, LAST_MEASURED = 6.0, 2.0
# Where the noise is known, chains start at trained networks. Where it is learned, training ends at an overfit without
# noise, which a short chain does not leave.
TRAINED = credo.MAP(num_steps=2000)


@dataclass(frozen=True)
class Problem:
    """Data, and what is known of the function behind them.

    Arguments:
        test: held-out rows; those of a synthetic problem have noise too.
        truth: the function without noise, (rows, columns) -> (rows,), if anybody knows it.
        condition: what is known.
        inputs: where it is imposed; at the training inputs if None.
        base: the prior of the weights, with and without the condition.
        noise: as of `credo.models.regression`.
        start: of the chains.
    """

    train: credo.Data
    test: credo.Data
    condition: Condition
    truth: Callable[[np.ndarray], np.ndarray] | None = None
    inputs: np.ndarray | None = None
    strength: float = 1000.0
    base: Any = None
    noise: Any = None
    num_hidden: int = 20
    start: str | credo.MAP = "prior"

    @property
    def plain(self) -> credo.Model:
        """The network without the condition."""
        return self._model(self.base)

    @property
    def conditioned(self) -> credo.Model:
        """The same network with it."""
        return self._model(
            credo.priors.consistent(self.base, self.condition, inputs=self.inputs, strength=self.strength)
        )

    def _model(self, prior: Any) -> credo.Model:
        net = credo.networks.MLP([self.num_hidden], out=1, activation="tanh")
        return credo.models.regression(net, prior=prior, noise=self.noise)


@dataclass(frozen=True)
class Fits:
    """The posteriors of a problem: of the plain network, and of that with the condition."""

    plain: Any
    conditioned: Any


def fits(problem: Problem, method: credo.NUTS, seed: int) -> Fits:
    """Both posteriors by the same method, from the same seed."""
    return Fits(*(credo.fit(model, problem.train, method, seed=seed) for model in (problem.plain, problem.conditioned)))


# -- a function that rises ----------------------------------------------------------------------------------


def stairs(x: np.ndarray) -> np.ndarray:
    """Two smooth steps, with level ground around them."""
    return 1 / (1 + np.exp(-4 * (x[:, 0] + 1.5))) + 1 / (1 + np.exp(-4 * (x[:, 0] - 1.5)))


def rising(seed: int) -> Problem:
    """Thirty rows of `stairs` on [−3, 3], with noise half as large as a step; it rises at sixty points of a grid.

    At the training inputs alone the condition would say nothing about where the rows end, at either side.
    """
    rng = np.random.default_rng(seed)
    train, test = (noisy(stairs, rng.uniform(-3, 3, (num, 1)), 0.5, rng) for num in (30, 1000))
    known = credo.conditions.monotone({0: "+"})
    grid = np.linspace(-3, 3, 60)[:, None]
    return Problem(replace(train, standardise=True), test, known, truth=stairs, inputs=grid)


def diabetes(seed: int) -> Problem:
    """A hundred patients: the disease progresses faster with a higher body mass index and blood pressure."""
    everybody = credo.datasets.load("diabetes", standardise=True)
    order = np.random.default_rng(seed).permutation(everybody.size)
    train, test = everybody.partition(order[:100], order[100:])
    known = credo.conditions.monotone({"bmi": "+", "bp": "+"})
    # Most slopes are near zero, and a strength of 1000 makes falls just 8 to 13 times smaller, depending on the split.
    return Problem(train, test, known, strength=3000.0, num_hidden=10)


# -- a function that is even --------------------------------------------------------------------------------


def bowl(x: np.ndarray) -> np.ndarray:
    """|x₁| + x₂²: an even function."""
    return np.abs(x[:, 0]) + x[:, 1] ** 2


def even(seed: int) -> Problem:
    """Fifty rows of `bowl` in [−2, 2]⁶, four inputs of which do not matter, and 200 rows without targets.

    A constant is even too. Where the noise is to be learned, a chain may settle there, at a log joint a hundred nats
    lower: one that it hardly ever leaves. With the noise known it does not.
    """
    rng = np.random.default_rng(seed)
    train, test = (noisy(bowl, rng.uniform(-2, 2, (num, 6)), 0.1, rng) for num in (50, 500))
    known = credo.conditions.invariant("negate")
    return Problem(train, test, known, truth=bowl, inputs=rng.uniform(-2, 2, (200, 6)), noise=0.1, start=TRAINED)


# -- a function that obeys an equation ----------------------------------------------------------------------


def swing(t: np.ndarray) -> np.ndarray:
    """The damped oscillation from y = 1 at rest."""
    slowed = np.sqrt(1 - ZETA**2)
    phase = OMEGA * slowed * t[:, 0]
    return np.exp(-ZETA * OMEGA * t[:, 0]) * (np.cos(phase) + ZETA / slowed * np.sin(phase))


def residual(y: Function, t: Array) -> Array:
    """y″ + 2ζω y′ + ω² y, in the user's units."""
    speed, acceleration = (credo.conditions.derivative(y, t, order=order) for order in (1, 2))
    return acceleration + 2 * ZETA * OMEGA * speed + OMEGA**2 * jnp.asarray(y(t))


def oscillator(seed: int) -> Problem:
    """Eight noisy points of `swing` up to t = 2; the equation holds at forty times up to t = 6.

    Biases have a sd of 3, so that units can bend anywhere on [0, 6].
    """
    rng = np.random.default_rng(seed)
    train = noisy(swing, np.linspace(0, LAST_MEASURED, 8)[:, None], 0.1, rng)
    test = noisy(swing, np.linspace(LAST_MEASURED, END, 81)[1:, None], 0.1, rng)
    return Problem(
        train,
        test,
        credo.conditions.differential_equation(residual),
        truth=swing,
        inputs=np.linspace(0, END, 40)[:, None],
        base={"*.bias": credo.priors.normal(3.0)},
        noise=0.1,
        start=TRAINED,
    )


def noisy(
    function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, noise: float, rng: np.random.Generator
) -> credo.Data:
    """Values of a function with normal noise."""
    return credo.Data(x, function(x) + noise * rng.standard_normal(len(x)))
