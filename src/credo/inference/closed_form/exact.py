"""What a closed form leaves behind: the evidence, and a normal of the weights or draws of them and of their noise."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from credo import random
from credo._precision import working_precision
from credo.covariance import Blocks
from credo.covariance.layout import Layout
from credo.diagnostics.exact import ExactEvidence
from credo.inference.closed_form.affine import Affine
from credo.inference.closed_form.spectrum import NoiseScale, Sums, noise_scales, sums_over_rows
from credo.typing import Array, Batch, Key, Theta


class Exact(NamedTuple):
    """A regression that has seen its data.

    Arguments:
        theta: xi, and a value of the noise that the rows were divided by.
        scales: the posterior of each number that sets the noise, where it has a prior.
    """

    problem: Affine
    theta: Theta
    sums: Sums
    scales: list[NoiseScale]

    @classmethod
    def of(cls, problem: Affine, theta: Theta, data: Batch) -> "Exact":
        """After one pass over the data."""
        sums = sums_over_rows(problem, theta, data)
        return cls(problem, theta, sums, noise_scales(problem, theta, sums) if problem.others else [])

    def evidence(self) -> ExactEvidence:
        """log p(D | xi), the noise integrated out where it has a prior."""
        spectra = self.sums.spectra
        if self.scales:
            total = float(self.problem.log_prior_of_others(self.theta)) + sum(one.log_integral() for one in self.scales)
        else:
            total = float(sum(one.log_evidence(1.0) for one in spectra))
        taus = {block: scale.peak for scale in self.scales for block in scale.blocks}
        num_effective = sum(one.num_effective(taus.get(index, 1.0)) for index, one in enumerate(spectra))
        num_weights = sum(len(one.entries) for one in self.problem.blocks)
        return ExactEvidence(total - self.sums.log_noise, num_effective, num_weights)

    def normal(self) -> tuple[dict[str, np.ndarray], Blocks]:
        """The mean of the weights m + L ū, and a root of L Σ Lᵀ that is lower triangular; the noise is known."""
        prior, unravel, root = self._prior()
        mean, spread = np.zeros_like(prior), np.zeros((len(prior), len(prior)))
        for block, one in zip(self.problem.blocks, self.sums.spectra, strict=True):
            entries = list(block.entries)
            mean[entries] = one.mean(1.0)
            spread[np.ix_(entries, entries)] = one.offset(1.0, np.eye(len(entries)))
        # Its rows are √Σ of one direction each: from their triangular factor nothing is squared.
        _, upper = np.linalg.qr(_times(root, spread))
        lower = upper.T * np.where(np.diagonal(upper) < 0, -1.0, 1.0)
        layout = Layout.together({name: self.problem.model.template[name] for name in sorted(self.problem.weights)})
        found = unravel(jnp.asarray(prior + _times(root, mean), working_precision()))
        ordered = {name: np.asarray(found[name]) for name in self.problem.weights}
        return ordered, Blocks({"all": lower[None].astype(working_precision())}, layout)

    def draws(self, key: Key, num: int) -> dict[str, np.ndarray]:
        """Independent draws, each leaf (1, draws, …): of the noise, and of the weights given it."""
        problem = self.problem
        prior, unravel, root = self._prior()
        others, unravel_others = ravel_pytree({name: self.theta[name] for name in problem.others})
        noise_key, weight_key = jax.random.split(key)
        uniform = np.asarray(jax.random.uniform(noise_key, (len(self.scales), num)), np.float64)
        noise = np.asarray(random.normal(weight_key, (num, len(prior))), np.float64)
        drawn, values = np.zeros_like(noise), np.tile(np.asarray(others, np.float64), (num, 1))
        for scale, own in zip(self.scales, uniform, strict=True):
            values[:, scale.entry], taus = scale.draws(own)
            for block in scale.blocks:
                entries, one = list(problem.blocks[block].entries), self.sums.spectra[block]
                drawn[:, entries] = one.mean(taus) + one.offset(taus, noise[:, entries])
        weights = jax.vmap(unravel)(jnp.asarray(prior + _times(root, drawn), working_precision()))
        found = weights | jax.vmap(unravel_others)(jnp.asarray(values, working_precision()))
        return {name: np.asarray(found[name])[None] for name in problem.model.template}

    def _prior(self) -> tuple[np.ndarray, Any, np.ndarray]:
        """m as a vector, the way back to arrays, and L, as in `Affine.prior`."""
        mean, root = _prior(self.problem, self.theta)
        flat, unravel = ravel_pytree(mean)
        return np.asarray(flat, np.float64), unravel, np.asarray(root, np.float64)


@jax.jit
def _prior(problem: Affine, theta: Theta) -> tuple[Theta, Array]:
    return problem.prior(theta)


def _times(root: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """L u of one or several u, (…, n)."""
    return directions @ root.T if root.ndim == 2 else directions * root
