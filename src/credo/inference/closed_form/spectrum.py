"""The exact posterior, in double precision: sums over blocks of rows, and a noise that is integrated out.

Rows of a regression r = X u + ε (`affine`) are divided by one value of the noise. With XᵀX = V diag(λ) Vᵀ, all is known
for every other value, τ times as large:

    log p(D | τ) = −½ (Σ log(1 + λ/τ²) + |r⊥|²/τ² + Σ b²/(λ (τ² + λ))) − n log τ + constants,    b = Vᵀ Xᵀ r
    u | D, τ ~ N(V b/(τ² + λ), V diag(τ²/(τ² + λ)) Vᵀ)

with r⊥ what no weights explain, |r⊥|² = rᵀr − Σ b²/λ. So a noise with a prior costs an integral in one dimension, and
no other decomposition.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from credo._precision import working_precision
from credo.data import is_observed
from credo.inference.closed_form.affine import Affine, Rows
from credo.typing import Array, Batch, Theta

# Numbers of the design that one block of rows may hold.
NUMBERS_PER_BLOCK = 2**22
# Points at which an integral over the logarithm of a noise is summed: of a smooth integrand that has vanished at both
# ends the trapezoidal rule is exact to rounding, once a few points fall within its width.
NUM_POINTS = 2001
# Where the search for its mass begins, e^∓30 of the units of the model, and how many nats below its peak it ends.
WIDEST, DEPTH = 30.0, 50.0


class Spectrum(NamedTuple):
    """XᵀX, Xᵀr and rᵀr of one regression, in the k directions that the data know apart: n, or as many as rows.

    Arguments:
        values: λ, (k,); zero where only rounding is left.
        vectors: V, (n, k).
        along: b = Vᵀ Xᵀ r, (k,).
        explained: b²/λ, (k,).
        unexplained: |r⊥|².
        num: how many targets there are.
    """

    values: np.ndarray
    vectors: np.ndarray
    along: np.ndarray
    explained: np.ndarray
    unexplained: float
    num: float

    @classmethod
    def of(cls, gram: np.ndarray, product: np.ndarray, square: float, num: float) -> "Spectrum":
        values, vectors = np.linalg.eigh(gram)
        known = values > np.finfo(np.float64).eps * len(values) * values.max(initial=0.0)
        values, along = np.where(known, values, 0.0), np.where(known, vectors.T @ product, 0.0)
        explained = np.divide(along**2, values, out=np.zeros_like(values), where=known)
        return cls(values, vectors, along, explained, max(square - explained.sum(), 0.0), num)

    @classmethod
    def of_rows(cls, design: np.ndarray, targets: np.ndarray, num: float) -> "Spectrum":
        """Of fewer rows than weights: X = U diag(√λ) Vᵀ."""
        left, roots, right = np.linalg.svd(design, full_matrices=False)
        part = left.T @ targets
        return cls(roots**2, right.T, roots * part, part**2, max(targets @ targets - part @ part, 0.0), num)

    def log_evidence(self, tau: Any) -> np.ndarray:
        """log p(D | τ) for noise τ times as large as that of the rows, whose logarithms are not counted here: (…)."""
        tau2 = np.square(np.asarray(tau, np.float64))[..., None]
        log_det = np.sum(np.log1p(self.values / tau2), -1)
        fit = self.unexplained / tau2[..., 0] + np.sum(self.explained / (tau2 + self.values), -1)
        return -0.5 * (log_det + fit + self.num * np.log(2 * math.pi * tau2[..., 0]))

    def mean(self, tau: Any) -> np.ndarray:
        """E[u | D, τ], (…, n)."""
        tau2 = np.square(np.asarray(tau, np.float64))[..., None]
        return (self.along / (tau2 + self.values)) @ self.vectors.T

    def offset(self, tau: Any, noise: np.ndarray) -> np.ndarray:
        """√Σ ε of noise ε, (…, n): what the data know nothing of stays as the prior has it."""
        tau2 = np.square(np.asarray(tau, np.float64))[..., None]
        return noise + (noise @ self.vectors * (np.sqrt(tau2 / (tau2 + self.values)) - 1)) @ self.vectors.T

    def num_effective(self, tau: float) -> float:
        """Σ λ/(τ² + λ): how many directions the data know better than the prior does (MacKay, 1992)."""
        return float(np.sum(self.values / (tau**2 + self.values)))


class Sums(NamedTuple):
    """What the data say: a spectrum for each block, and Σ log noise."""

    spectra: list[Spectrum]
    log_noise: float


def sums_over_rows(problem: Affine, theta: Theta, data: Batch) -> Sums:
    """One pass over the data, block of rows by block of rows."""
    num_rows = int(data.num_rows)
    seen = np.asarray(is_observed(problem.targets(data.y)))[:num_rows].reshape(num_rows, -1)
    often = np.ones(num_rows) if data.counts is None else np.asarray(data.counts, np.float64)[:num_rows]
    nums = [float((often @ seen)[list(one.outputs)].sum()) for one in problem.blocks]
    numbers = sum(len(one.entries) * len(one.outputs) for one in problem.blocks)
    size = max(1, NUMBERS_PER_BLOCK // max(numbers, 1))
    if num_rows <= size and all(num_rows * len(one.outputs) < len(one.entries) for one in problem.blocks):
        (rows,) = _by_block(problem, theta, data, size)
        pairs = zip(problem.regressions(rows), nums, strict=True)
        return Sums([Spectrum.of_rows(*arrays, num) for arrays, num in pairs], float(rows.log_noise.sum()))
    widths = [len(one.entries) for one in problem.blocks]
    grams, products = [np.zeros((n, n)) for n in widths], [np.zeros(n) for n in widths]
    squares, log_noise = np.zeros(len(widths)), 0.0
    for rows in _by_block(problem, theta, data, size):
        log_noise += float(rows.log_noise.sum())
        for index, (design, targets) in enumerate(problem.regressions(rows)):
            grams[index] += design.T @ design
            products[index] += design.T @ targets
            squares[index] += targets @ targets
    return Sums(list(map(Spectrum.of, grams, products, squares.tolist(), nums)), float(log_noise))


def _by_block(problem: Affine, theta: Theta, data: Batch, size: int) -> Iterator[Rows]:
    """Rows that count, in double precision, `size` at a time."""
    num_rows = int(data.num_rows)
    for first in range(0, num_rows, size):
        block: Any = _rows(problem, theta, data.x[first : first + size], data.y[first : first + size])
        rows = Rows(*(np.asarray(part, np.float64)[: num_rows - first] for part in block))  # type: ignore[arg-type]
        own = None if data.counts is None else np.asarray(data.counts, np.float64)[first : first + len(rows.targets)]
        yield rows if own is None else rows.seen_often(own)


@jax.jit
def _rows(problem: Affine, theta: Theta, x: Array, y: Array) -> Rows:
    return problem.rows(theta, x, y)


# -- a noise with a prior -------------------------------------------------------------------------------------------


class NoiseScale(NamedTuple):
    """One number of theta that sets the noise of some blocks: the posterior of its value on a grid.

    Arguments:
        entry: among the numbers that set the noise.
        blocks: whose noise it sets, by number.
        grid: its unconstrained values, (points,).
        taus: the noise at these, as a multiple of that at the start, (points,).
        log_density: log p(D, value), (points,), without what does not depend on it.
    """

    entry: int
    blocks: tuple[int, ...]
    grid: np.ndarray
    taus: np.ndarray
    log_density: np.ndarray

    def log_integral(self) -> float:
        """log ∫ p(D, value) d value, by the trapezoidal rule."""
        peak = self.log_density.max()
        return float(peak + np.log(np.trapezoid(np.exp(self.log_density - peak), self.grid)))

    @property
    def peak(self) -> float:
        """The most probable τ."""
        return float(self.taus[self.log_density.argmax()])

    def draws(self, uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values of the number, and of τ, at quantiles of its posterior."""
        density = np.exp(self.log_density - self.log_density.max())
        below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        values = np.interp(uniform, below / below[-1], self.grid)
        return values, np.exp(np.interp(values, self.grid, np.log(self.taus)))


def noise_scales(problem: Affine, theta: Theta, sums: Sums) -> list[NoiseScale]:
    """The posterior of each number that sets the noise: those of different blocks are independent."""
    flat, _ = ravel_pytree({name: theta[name] for name in problem.others})

    def density(entry: int, blocks: tuple[int, ...], grid: np.ndarray) -> NoiseScale:
        output = problem.blocks[blocks[0]].outputs[0]
        log_noise, log_prior = (
            np.asarray(part, np.float64) for part in _noises_at(problem, theta, entry, np.append(grid, flat[entry]))
        )
        taus = np.exp(log_noise[:-1, output] - log_noise[-1, output])
        total = log_prior[:-1] - log_prior[-1] + sum(sums.spectra[block].log_evidence(taus) for block in blocks)
        return NoiseScale(entry, blocks, grid, taus, np.where(np.isfinite(total), total, -np.inf))

    return [_located(partial(density, entry, blocks)) for entry, blocks in enumerate(problem.noises)]


@jax.jit
def _noises_at(problem: Affine, theta: Theta, entry: Array, grid: Array) -> tuple[Array, Array]:
    """log noise and log prior at values of one of the numbers that set the noise."""
    flat, unravel = ravel_pytree({name: theta[name] for name in problem.others})

    def one(value: Array) -> tuple[Array, Array]:
        found = {**theta, **unravel(flat.at[entry].set(value))}
        return problem.whitened(found, *problem.example()[:2])[1][0], problem.log_prior_of_others(found)

    return jax.vmap(one)(grid)


def _located(density: Any) -> NoiseScale:
    """The density on a grid that covers its mass and nothing else: each look is closer than the one before."""
    low, high = -WIDEST, WIDEST
    while True:
        # Values that single precision has, in which the model computes.
        found = density(np.linspace(low, high, NUM_POINTS).astype(working_precision()).astype(np.float64))
        inside = np.flatnonzero(found.log_density > found.log_density.max() - DEPTH)
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, NUM_POINTS - 1)
        if last - first > NUM_POINTS // 2:
            return found
        low, high = found.grid[first], found.grid[last]
