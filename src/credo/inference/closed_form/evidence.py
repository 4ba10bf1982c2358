"""The evidence p(D | xi) with the weights integrated out, as a function to climb.

For r = X u + ε with u and ε standard normal (`affine`), the posterior is q = N(ū, Σ) with Σ = (I + XᵀX)⁻¹ and
ū = Σ Xᵀr, and there the ELBO (paper, "Variational inference") is the evidence itself:

    log p(D) = −½ |r − Xū|² − ½ tr(X Σ Xᵀ) − KL(N(ū, Σ) ‖ N(0, I)) − Σ log noise − n/2 log 2π

It is largest in q, so that its gradient in X and r, through which it depends on everything else, is the one at a fixed
q: no decomposition is differentiated. The root of Σ⁻¹ comes from a QR decomposition of X above I, and not from XᵀX, of
squared condition: single precision is enough to climb by.

Where there are fewer rows than weights, the same holds of r ~ N(0, K), K = I + X Xᵀ = RᵀR, a smaller problem:

    log p(D) = −½ rᵀ K⁻¹ r − Σ log |Rᵢᵢ| − Σ log noise − n/2 log 2π

Bishop, "Pattern recognition and machine learning" (2006), 3.5; Harrison, Willes and Snoek, "Variational Bayesian last
layers" (2024), who climb the same bound with a q that is learned along.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.data import is_observed
from credo.inference.closed_form.affine import Affine, Rows
from credo.typing import Array, Batch, Theta


class Normal(NamedTuple):
    """q = N(ū, Σ) of one regression, with R of RᵀR = Σ⁻¹, upper triangular."""

    mean: Array
    root: Array

    def spread(self, design: Array) -> Array:
        """X R⁻¹, whose squares add up to the variances of X u, (rows, n)."""
        return jax.scipy.linalg.solve_triangular(self.root, design.T, trans="T").T

    def kl(self) -> Array:
        """KL(N(ū, Σ) ‖ N(0, I))."""
        num = len(self.mean)
        variances = jnp.sum(self.spread(jnp.eye(num)) ** 2)
        return 0.5 * (jnp.sum(self.mean**2) + variances - num) + jnp.sum(jnp.log(jnp.abs(jnp.diagonal(self.root))))


def normal_of(design: Array, targets: Array) -> Normal:
    """The posterior of u, of which nothing is differentiated."""
    design, targets = jax.lax.stop_gradient((design, targets))
    root = jnp.linalg.qr(jnp.concatenate([design, jnp.eye(design.shape[1])]), mode="r")
    half = jax.scipy.linalg.solve_triangular(root, design.T @ targets, trans="T")
    return Normal(jax.scipy.linalg.solve_triangular(root, half), root)


def by_weights(design: Array, targets: Array) -> Array:
    """log N(r; 0, I + X Xᵀ) up to the constant, as the ELBO at the posterior of the weights."""
    q = normal_of(design, targets)
    fit = jnp.sum((targets - design @ q.mean) ** 2) + jnp.sum(q.spread(design) ** 2)
    return -0.5 * fit - q.kl()


def by_rows(design: Array, targets: Array) -> Array:
    """The same by K = I + X Xᵀ; its gradient is that of ½ |Xᵀα|² − ½ |R⁻ᵀX|² − αᵀr at a fixed α = K⁻¹r and R."""
    fixed_design, fixed_targets = jax.lax.stop_gradient((design, targets))
    root = jnp.linalg.qr(jnp.concatenate([fixed_design.T, jnp.eye(len(targets))]), mode="r")
    half = jax.scipy.linalg.solve_triangular(root, fixed_targets, trans="T")
    alpha = jax.scipy.linalg.solve_triangular(root, half)
    value = -0.5 * jnp.sum(half**2) - jnp.sum(jnp.log(jnp.abs(jnp.diagonal(root))))
    spread = jax.scipy.linalg.solve_triangular(root, design, trans="T")
    slope = 0.5 * (jnp.sum((design.T @ alpha) ** 2) - jnp.sum(spread**2)) - alpha @ targets
    return value + slope - jax.lax.stop_gradient(slope)


def log_evidence(problem: Affine, theta: Theta, data: Batch) -> Array:
    """log p(D | theta), theta without the weights: all else that the model leaves open."""
    rows, num_targets = _counted(problem, theta, data)
    total = -jnp.sum(rows.log_noise)
    for design, targets in problem.regressions(rows):
        total += by_rows(design, targets) if design.shape[0] < design.shape[1] else by_weights(design, targets)
    return total - 0.5 * math.log(2 * math.pi) * num_targets


def held_out_score(problem: Affine, theta: Theta, data: Batch, held_out: Batch) -> Array:
    """Mean over the held-out rows of Σ log p(y | x, D, theta), one target at a time."""
    # A row that is asked for is one, however often it was seen.
    held_out = held_out._replace(counts=None)
    (known, _), (asked, num_targets) = (_counted(problem, theta, batch) for batch in (data, held_out))
    total = -jnp.sum(asked.log_noise)
    pairs = zip(problem.regressions(known), problem.regressions(asked), strict=True)
    for (design, targets), (new, new_targets) in pairs:
        q = normal_of(design, targets)
        variance = 1 + jnp.sum(q.spread(new) ** 2, axis=1)
        total -= 0.5 * jnp.sum((new_targets - new @ q.mean) ** 2 / variance + jnp.log(variance))
    return (total - 0.5 * math.log(2 * math.pi) * num_targets) / held_out.num_rows


def _counted(problem: Affine, theta: Theta, data: Batch) -> tuple[Rows, Array]:
    """The rows of a regression, those that do not count at zero, and how many targets they have."""
    rows, seen = problem.rows(theta, data.x, data.y), is_observed(problem.targets(data.y))
    if data.num is not None:
        rows = Rows(*(jnp.where(_along(data.counted, part), part, 0.0) for part in rows))
        seen = seen & _along(data.counted, seen)
    if data.counts is None:
        return rows, jnp.sum(seen)
    return rows.seen_often(data.counts), jnp.sum(_along(data.counts, seen) * seen)


def _along(counted: Array, part: Array) -> Array:
    return counted.reshape(-1, *[1] * (part.ndim - 1))
