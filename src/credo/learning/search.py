"""Where to ask a function next: the score of a point by sampled functions, and the climb to the best point.

One draw of theta is one function fᵢ, so whatever a score needs to know follows from the values of some draws:

    bᵢ = max fᵢ(x) over the points that were asked,    EI(x) = 1/S Σᵢ max(0, fᵢ(x) − bᵢ)

bᵢ is the best *expected* value under that draw, not the luckiest observation, so noise is not taken for merit; points
whose values are still out count as asked, so several may be asked at once and do not ask the same. Values are in
standardised units, and larger is better whatever the goal.

Letham et al., "Constrained Bayesian optimization with noisy experiments" (2019); Ament et al., "Unexpected improvements
to expected improvement for Bayesian optimization" (2023).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo._checks import require_one_of
from credo._precision import in_working_precision
from credo.learning.space import Space
from credo.models.program import Model
from credo.predictive.conditional import mean_of
from credo.typing import Array, Theta

# A score of points, (points,), from the values of sampled functions there, (draws, points), and the best of each draw.
Score = Callable[[Array, Array], Array]

# An improvement that a thousandth of the probability promises is seen by a few draws.
NUM_DRAWS = 512
# Half of the candidates are spread over all points, half lie around the best ones that are known.
NUM_CANDIDATES, NUM_BEST = 2048, 5
ROWS_PER_BLOCK = 128
# How far from them, in coordinates of length two: all scales are as likely.
NEAREST, FARTHEST = 1e-3, 0.5
# Around a point so many coordinates are moved at once: in many dimensions a step in all of them leads nowhere.
NUM_MOVED = 5
# The climb from the best candidates.
NUM_CLIMBS, NUM_STEPS, STEP = 8, 60, 0.05
# What counts where no draw improves: to be near. It is far below any improvement that a draw can see.
FLOOR = 1e-9


class Acquisition(NamedTuple):
    """A score, and how many draws it looks at."""

    score: Score
    num_draws: int = NUM_DRAWS


def expected_improvement(values: Array, best: Array) -> Array:
    """1/S Σᵢ max(0, fᵢ(x) − bᵢ), (points,).

    >>> expected_improvement(jnp.array([[1.0, 2.0], [0.0, 4.0]]), jnp.array([1.0, 2.0])).tolist()
    [0.0, 1.5]
    """
    return jnp.mean(jnp.maximum(values - best[:, None], 0.0), axis=0)


def log_improvement(values: Array, best: Array) -> Array:
    """The logarithm of the expected improvement, which can be climbed from where next to nothing is expected too."""
    short = values - best[:, None]
    return jnp.log(expected_improvement(values, best) + FLOOR * jnp.mean(1 / (1 + short**2), axis=0))


def thompson(values: Array, best: Array) -> Array:
    """One sampled function itself: its highest point is where the optimum is, with the probability that it is there."""
    return values[0]


ACQUISITIONS = {"improvement": Acquisition(log_improvement), "thompson": Acquisition(thompson, 1)}


def as_acquisition(acquisition: Any) -> Acquisition:
    """By name, or a user's own score."""
    if callable(acquisition):
        return Acquisition(acquisition)
    require_one_of(ACQUISITIONS, acquisition=acquisition)
    return ACQUISITIONS[acquisition]


class Functions(NamedTuple):
    """Sampled functions.

    Arguments:
        model: static, and without learned constants: what is compiled for one posterior serves the next.
        draws: of theta, with a leading axis of draws.
        shared: what is the same for all draws.
        sign: 1 or −1, so that larger is better.
    """

    model: Model
    draws: Theta
    shared: Theta
    sign: Any

    def __call__(self, x: Array) -> Array:
        """fᵢ(x), (draws, rows)."""

        def one(theta: Theta) -> Array:
            return mean_of(self.model.predictive({**self.shared, **theta}, x))

        return self.sign * jax.vmap(one)(self.draws)


def best_points(score: Score, functions: Functions, asked: np.ndarray, candidates: np.ndarray, free: np.ndarray) -> Any:
    """Rows of coordinates, best first: the candidates, and where a climb from the best of them leads.

    Arguments:
        asked: coordinates of what was asked already, (rows, width); repeated rows change nothing.
        candidates: (candidates, width), a multiple of 128 of them.
        free: which coordinates may be moved.
    """
    arrays = in_working_precision((functions[1:], asked, candidates, free.astype(float)))
    rows, scores = jax.device_get(_climbed(functions.model, score, *arrays))
    return np.asarray(rows, np.float64)[np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")]


@partial(jax.jit, static_argnums=(0, 1))
def _climbed(model: Model, score: Score, drawn: Any, asked: Array, candidates: Array, free: Array) -> Any:
    functions = Functions(model, *drawn)
    best = jnp.max(functions(asked), axis=1)

    def scores_of(x: Array) -> Array:
        return score(functions(x), best)

    blocks = candidates.reshape(-1, ROWS_PER_BLOCK, candidates.shape[1])
    scores = jax.lax.map(scores_of, blocks).reshape(-1)
    start = candidates[jax.lax.top_k(jnp.nan_to_num(scores, nan=-jnp.inf), NUM_CLIMBS)[1]]
    optimizer = optax.adam(optax.cosine_decay_schedule(STEP, NUM_STEPS))

    def step(carry: Any, _: None) -> tuple[Any, None]:
        x, state = carry
        slope = jax.grad(lambda x: jnp.sum(scores_of(x)))(x)
        change, state = optimizer.update(-jnp.nan_to_num(slope) * free, state)
        return (jnp.clip(x + change * free, -1, 1), state), None

    (top, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), None, length=NUM_STEPS)
    return jnp.concatenate([top, candidates]), jnp.concatenate([scores_of(top), scores])


def candidates(space: Space, best: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Points to begin with: some anywhere, some around the best ones, on all scales.

    Arguments:
        best: coordinates of the best points, (points, width).
    """
    half = NUM_CANDIDATES // 2
    anywhere = rng.uniform(-1, 1, (half, space.width))
    centres = best[rng.integers(len(best), size=half)]
    scales = np.exp(rng.uniform(np.log(NEAREST), np.log(FARTHEST), (half, 1)))
    moved = rng.random((half, space.width)) < min(1.0, NUM_MOVED / space.width)
    around = centres + np.where(moved, scales * rng.standard_normal((half, space.width)), 0.0)
    # A step of any size may reach another option or whole number.
    jumps = (rng.random((half, space.width)) < 1 / space.width) & ~space.continuous
    around = np.where(jumps, rng.uniform(-1, 1, around.shape) * 2, around)
    return space.snapped(np.concatenate([anywhere, around]))
