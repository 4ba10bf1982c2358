"""Log densities of a program: the prior, the likelihood, and the two together.

    log p(theta, D) = log p(theta) + N/n · Σ_batch log p(y | x, theta)

What is outside the plate `data` is the prior, what is inside is the likelihood; N/n is here, and nowhere else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo import _activations
from credo._precision import working_precision
from credo.models.row_blocks import rows_of, sum_by_block
from credo.models.sites import in_data_plate, is_seen, log_density
from credo.models.summed import combinations, row_terms
from credo.models.traced import Traced, any_key
from credo.typing import Array, Batch, Key, Theta

# Of one network on a batch, activations may take this much at once; a larger batch goes through it block by block.
ACTIVATION_BYTES = 2**28
# Batches of no more numbers than this are not looked at: their activations are never that many.
FEW_INPUTS = 2**14


@dataclass(frozen=True)
class Densities(Traced):
    """A program with its log densities. See `Model` for the fields."""

    # -- memory ----------------------------------------------------------------------------------------------

    @property
    def bytes_per_row(self) -> int:
        """What the gradient of the log likelihood keeps of each row: the activations of the network."""
        return _bytes_per_row(self, working_precision())

    def activation_bytes(self, num_rows: int) -> int:
        """What the activations of a batch take at once, at most."""
        return min(num_rows * self.bytes_per_row, max(ACTIVATION_BYTES, self.bytes_per_row))

    def num_blocks(self, batch: Batch, activation_bytes: int | None = None) -> int:
        """How many blocks of rows a batch is seen in: one, unless its activations would be too many at once."""
        if self.rows is None or batch.x.size <= FEW_INPUTS:
            return 1
        num_rows, limit = batch.x.shape[0], ACTIVATION_BYTES if activation_bytes is None else activation_bytes
        return min(max(1, -(-num_rows * self.bytes_per_row // limit)), num_rows)

    # -- densities -------------------------------------------------------------------------------------------

    def log_prior(self, theta: Theta) -> Array:
        """log p(theta) of the unconstrained theta, log-Jacobians and factors outside the plate included."""
        return self._log_sums(theta, self.example(), any_key)[0]

    def log_factors(self, theta: Theta) -> Array:
        """The part of log p(theta) that conditions the latents on something: `factor`s outside the plate."""
        example = self.example()
        trace = self._trace(theta, example.x, example.y, inputs=self._inputs_of(example))[0]
        terms = self._prior_terms({name: trace[name] for name in self.factors})
        return sum(terms.values(), jnp.zeros(()))

    def log_likelihood(self, theta: Theta, batch: Batch, *, key: Key | None = None) -> Array:
        """Σ_batch log p(y | x, theta): what is inside the plate `data`. Local latents need a key."""
        return self._log_sums(theta, batch, lambda: _given(key), num_blocks=self.num_blocks(batch))[1]

    def log_joint(
        self, theta: Theta, batch: Batch, *, key: Key | None = None, activation_bytes: int | None = None
    ) -> Array:
        """log p(theta) + N/n · Σ_batch log p(y | x, theta): an unbiased estimate of the log joint density.

        Arguments:
            activation_bytes: what the activations may take at once; a larger batch goes block by block.
        """
        log_prior, log_likelihood = self.log_parts(theta, batch, key=key, activation_bytes=activation_bytes)
        return log_prior + log_likelihood

    def log_parts(
        self,
        theta: Theta,
        batch: Batch,
        *,
        moments: tuple[Theta, Theta] | None = None,
        key: Key | None = None,
        activation_bytes: int | None = None,
    ) -> tuple[Array, Array]:
        """The two terms of the log joint: log p(theta), and N/n · Σ_batch log p(y | x, theta).

        With moments of a Gaussian q over theta, each site of `closed_form_sites` adds its expectation to the first,

            E_q[log N(w; m, s²)] = log N(E_q[w]; m, s²) − Var_q[w] / 2s²,

        with m and s at the given theta; other sites add log p(theta) at that theta. The average over theta ~ q is
        E_q[log p(theta)] if w and the latents in m and s are independent under q: if q correlates weights, leave
        `hierarchical_sites` out of the moments.

        Arguments:
            moments: means and variances of the unconstrained latents, by name; latents not named are not averaged.
            key: for local latents, drawn afresh; the average over keys is a lower bound on the log likelihood.
        """
        num_blocks = self.num_blocks(batch, activation_bytes)
        log_prior, log_likelihood = self._log_sums(theta, batch, lambda: _given(key), moments, num_blocks)
        return log_prior, batch.scale * log_likelihood

    def _log_sums(
        self,
        theta: Theta,
        batch: Batch,
        local: Callable[[], Key],
        moments: tuple[Theta, Theta] | None = None,
        num_blocks: int = 1,
    ) -> tuple[Array, Array]:
        """log p(theta), and Σ_batch log p(y | x, theta), in so many blocks of rows."""
        if num_blocks == 1:
            return self._log_sums_at_once(theta, batch, local, moments)

        def terms(theta: Theta, rows: Batch, own: Callable[[Key], Key]) -> Array:
            return self._log_sums_at_once(theta, rows, lambda: own(local()))[1]

        # The prior does not look at the rows, and is not computed for every block.
        log_prior = self._log_sums_at_once(theta, rows_of(batch, 0, 1), local, moments)[0]
        return log_prior, sum_by_block(terms, theta, batch, num_blocks)

    def _log_sums_at_once(
        self, theta: Theta, batch: Batch, local: Callable[[], Key], moments: tuple[Theta, Theta] | None = None
    ) -> tuple[Array, Array]:
        """log p(theta), and Σ_batch log p(y | x, theta)."""
        if self.views is not None:
            keys = jax.random.split(local(), batch.x.shape[0]) if self.has_local_latents else None

            def log_rows(seen: Batch, key: Any) -> tuple[Array, Array]:
                return self._log_rows(theta, seen, lambda: key, moments)

            log_prior, terms = self.views.log_rows(log_rows, batch, self._inputs_of(batch), keys)
            return log_prior, batch.sum(terms)
        if self.summed_sites or batch.num is not None or batch.counts is not None:
            log_prior, terms = self._log_rows(theta, batch, local, moments)
            return log_prior, batch.sum(terms)
        trace, log_jacobian = self._trace(theta, batch.x, batch.y, local, self._inputs_of(batch))
        return self._log_prior_of(theta, trace, log_jacobian, moments), self._likelihood_of(trace, batch)

    def _log_rows(
        self, theta: Theta, batch: Batch, local: Callable[[], Key], moments: tuple[Theta, Theta] | None
    ) -> tuple[Array, Array]:
        """log p(theta), and log p(y | x, theta) of each row, of which the discrete latents are summed out."""

        def parts(values: Theta) -> tuple[Array, Array]:
            trace, log_jacobian = self._trace({**theta, **values}, batch.x, batch.y, local, self._inputs_of(batch))
            return self._log_prior_of(theta, trace, log_jacobian, moments), self._rows_of(trace, batch)

        if not self.summed_sites:
            return parts({})
        log_prior, terms = jax.vmap(parts, out_axes=(None, 0))(combinations(self.summed_sites))
        return log_prior, jax.nn.logsumexp(terms, axis=0)

    def _likelihood_of(self, trace: dict[str, Any], batch: Batch) -> Array:
        """What the sites inside the plate `data` add up to."""
        return sum((log_density(site) for site in trace.values() if is_seen(site)), jnp.zeros(()))

    def _rows_of(self, trace: dict[str, Any], batch: Batch) -> Array:
        """The same for each row, (rows,)."""
        return row_terms(trace)

    def _log_prior_of(
        self, theta: Theta, trace: dict[str, Any], log_jacobian: Array, moments: tuple[Theta, Theta] | None
    ) -> Array:
        """log p(theta), from a run of the program at theta."""
        return sum(self._prior_terms(trace, moments).values(), log_jacobian)

    def _prior_terms(self, trace: dict[str, Any], moments: tuple[Theta, Theta] | None = None) -> dict[str, Array]:
        """What each site outside the plate `data` adds to log p(theta), without the log-Jacobians."""
        outside = [site for site in trace.values() if site["type"] == "sample" and not in_data_plate(site)]
        return {site["name"]: self._share(site) * log_density(site, moments) for site in outside}

    def _share(self, site: dict[str, Any]) -> float:
        """N/n of a sum over n of the N rows of an input, which stands in a plate of its name."""
        for frame in site["cond_indep_stack"]:
            if frame.name in self.constants:
                return self.constants[frame.name].shape[0] / frame.size
        return 1.0


# A program is traced for this once, and not in each fit of it.
@lru_cache(maxsize=16)
def _bytes_per_row(model: Densities, precision: np.dtype) -> int:
    def log_likelihood(theta: Theta, x: Array, y: Array) -> Array:
        return model._log_sums_at_once(theta, Batch(x, y, _activations.NUM_ROWS), any_key)[1]

    shapes = model._bound
    x = jax.ShapeDtypeStruct((_activations.NUM_ROWS, *shapes.x_shape[1:]), shapes.x_dtype)
    y = jax.ShapeDtypeStruct(shapes.batch_y_shape(_activations.NUM_ROWS), shapes.y_dtype)
    return _activations.bytes_per_row(log_likelihood, {**model.template, **model.xi_template}, x, y)


def _given(key: Key | None) -> Key:
    if key is None:
        raise ValueError(
            "the model draws latents inside the plate 'data', one value per row, and its likelihood needs a key to "
            "draw them: log_parts(theta, batch, key=key). credo.BayesByBackprop trains it; samplers cannot"
        )
    return key
