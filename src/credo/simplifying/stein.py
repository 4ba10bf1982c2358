"""Stein thinning: the draws that are closest to the posterior itself, by its gradient, and not to the other draws.

The kernel Stein discrepancy of a few draws is zero where they are the posterior. With u = ∇ log p(theta, D) and the
inverse multiquadric kernel (1 + ‖a − b‖²/ℓ²)^(−½) it is a sum over pairs of

    k(a, b) = −3 ‖a − b‖²/ℓ⁴ · q^(−5/2) + [n/ℓ² + (a − b)·(u_a − u_b)/ℓ²] · q^(−3/2) + u_a·u_b · q^(−½),

q = 1 + ‖a − b‖²/ℓ², and each new draw is the one that lowers it most. Draws that have not yet reached the posterior are
left out; but it looks at weights, and not at functions: mirror images of a mode count as modes.

Reference: Riabiz et al., Optimal thinning of MCMC output, JRSS B 84 (2022).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from credo.models.program import Model
from credo.typing import Array, Batch, Theta


def stein_thinned(model: Model, theta: Theta, batch: Batch, num: int) -> tuple[np.ndarray, np.ndarray]:
    """`num` picks among draws, as draws by number and their weights: a draw may be picked more than once.

    Arguments:
        model: whose log joint is the target.
        theta: unconstrained, every leaf (draws, …).
        batch: the data, in the model's units.
    """
    names = list(model.template)
    flat = np.concatenate([theta[name].reshape(len(theta[name]), -1) for name in names], axis=1).astype(np.float64)
    scores = _scores(model, {name: jnp.asarray(theta[name]) for name in names}, batch)
    kernel = stein_kernel(flat, np.asarray(scores, np.float64))
    picks = herded(kernel, num)
    rows, counts = np.unique(picks, return_counts=True)
    return rows, counts / num


def stein_kernel(theta: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """k between all draws, (draws, draws), from theta and ∇ log p, each (draws, n)."""
    products = theta @ theta.T
    lengths = np.diag(products)
    squares = np.maximum(lengths[:, None] + lengths - 2 * products, 0.0)
    # The median distance over √log of their number: the authors' advice, which adapts to the units of theta.
    away = squares[np.triu_indices(len(theta), 1)]
    width = max(float(np.median(away)), np.finfo(np.float64).tiny) / np.log(max(len(theta), 3))
    along = theta @ scores.T
    own = np.diag(along)
    crossed = own[:, None] - along.T - along + own
    q = 1 + squares / width
    first = -3 * squares / width**2 * q**-2.5
    second = (theta.shape[1] + crossed) / width * q**-1.5
    return first + second + scores @ scores.T * q**-0.5


def herded(kernel: np.ndarray, num: int) -> np.ndarray:
    """The numbers of `num` draws, each the one that lowers the mean of the kernel over all pairs most.

    >>> herded(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]), 3)
    array([0, 2, 0])
    """
    picks, cost = [], np.diag(kernel) / 2
    for _ in range(num):
        picks.append(int(np.argmin(cost)))
        cost = cost + kernel[:, picks[-1]]
    return np.asarray(picks)


@partial(jax.jit, static_argnums=0)
def _scores(model: Model, theta: Theta, batch: Batch) -> Array:
    """∇ log p(theta, D) of every draw, (draws, n)."""

    def score(one: Theta) -> Array:
        gradient = jax.grad(model.log_joint)(one, batch)
        return jnp.concatenate([gradient[name].ravel() for name in theta])

    return jax.lax.map(score, theta)
