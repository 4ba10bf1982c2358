"""Models whose mean is affine in the weights: where a posterior has a closed form, and the rows that it is made of.

With weights w ~ N(m, S), S = L Lᵀ, and y ~ N(f(x, w), C), f affine in w and C free of it,

    w = m + L u,    u ~ N(0, I),    C^(−½) (y − f(x, w)) = r − X u ~ N(0, I)

so that r and X, in units of the noise and of the prior, are all that inference needs. Whether a model is of that kind
is read off its data flow: a directional derivative of f that does not depend on w is that of an affine function.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from numpyro.distributions import biject_to

from credo._precision import working_precision
from credo.data import is_observed
from credo.inference.closed_form.checks import affine_weights, check_noises
from credo.models.program import Model
from credo.models.sites import log_density, stripped
from credo.posterior.believed import Believed
from credo.typing import Array, Batch, Theta

# Entries of theta that are followed to the outputs at once.
NUM_FOLLOWED = 256


class Rows(NamedTuple):
    """Rows of data in units of the noise and of the prior.

    Arguments:
        design: X, (rows, n) where each weight enters one output, else (rows, K, n).
        targets: r, (rows, K): what is left of the targets at the prior's mean.
        log_noise: the logarithm of the noise that they were divided by, (rows, K); zero for a missing target.
    """

    design: Array
    targets: Array
    log_noise: Array

    def seen_often(self, counts: Any) -> "Rows":
        """The same rows, each as often as told: its squares count that many times, and so does its noise."""
        roots = counts**0.5
        design = self.design * roots.reshape(-1, *[1] * (self.design.ndim - 1))
        return Rows(design, self.targets * roots[:, None], self.log_noise * counts[:, None])


class Block(NamedTuple):
    """A linear regression of its own, r = X u + ε: some outputs, and the weights that enter them.

    Arguments:
        outputs: by number.
        entries: of the weights, by number.
    """

    outputs: tuple[int, ...]
    entries: tuple[int, ...]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["model"],
    meta_fields=["weights", "others", "coupled", "blocks", "noises"],
)
@dataclass(frozen=True)
class Affine:
    """A model as a linear regression given everything but its weights: static but for what the model holds as arrays.

    Arguments:
        weights: the names of the latents in which the mean is affine.
        others: those of the latents that set the noise.
        coupled: whether the prior correlates the weights.
        blocks: regressions that share neither weights nor outputs.
        noises: for each number of `others`, the blocks whose noise it sets.
    """

    model: Model
    weights: tuple[str, ...]
    others: tuple[str, ...]
    coupled: bool
    blocks: tuple[Block, ...]
    noises: tuple[tuple[int, ...], ...]

    @property
    def num_outputs(self) -> int:
        """K."""
        return sum(len(block.outputs) for block in self.blocks)

    @property
    def one_output_each(self) -> bool:
        """Whether each weight enters one output only, and each block is of one output."""
        return all(len(block.outputs) == 1 for block in self.blocks)

    def rows(self, theta: Theta, x: Array, y: Array) -> Rows:
        """r and X of some rows, at everything that theta holds beside the weights."""
        mean, root = self.prior(theta)
        targets, log_noise = self.whitened({**theta, **mean}, x, y)
        flat, unravel = ravel_pytree(mean)

        def left(flat: Array, x: Array, y: Array) -> Array:
            found = self.whitened({**theta, **unravel(flat)}, x[None], y[None])[0][0]
            # Each weight enters one term of the sum, so that its gradient holds all of the Jacobian.
            return jnp.sum(found) if self.one_output_each else found

        design = -jax.vmap(jax.jacrev(left), in_axes=(None, 0, 0))(flat, x, y)
        return Rows(design @ root if self.coupled else design * root, targets, log_noise)

    def regressions(self, rows: Rows) -> list[tuple[Any, Any]]:
        """X, (rows, n), and r, (rows,), of each block."""
        if self.one_output_each:
            return [(rows.design[:, list(one.entries)], rows.targets[:, one.outputs[0]]) for one in self.blocks]
        return [
            (
                rows.design[:, list(one.outputs)][..., list(one.entries)].reshape(-1, len(one.entries)),
                rows.targets[:, list(one.outputs)].reshape(-1),
            )
            for one in self.blocks
        ]

    def whitened(self, theta: Theta, x: Array, y: Array) -> tuple[Array, Array]:
        """C^(−½) (y − f(x, w)) and the logarithms of the diagonal of C^½, both (rows, K)."""
        model = self.model.of_likelihood()
        law, y = model._bound.given(model.predictive(theta, x), y)
        bare, shape = stripped(law), (len(x), -1)
        seen = is_observed(y).reshape(shape)
        offset = jnp.where(seen, y.reshape(shape) - jnp.broadcast_to(bare.loc, law.shape()).reshape(shape), 0.0)
        if isinstance(bare, dist.MultivariateNormal):
            root = jnp.broadcast_to(bare.scale_tril, (*offset.shape, offset.shape[1]))
            solved = jax.scipy.linalg.solve_triangular(root, offset[..., None], lower=True)[..., 0]
            return solved, jnp.log(jnp.diagonal(root, axis1=1, axis2=2))
        noise = jnp.where(seen, jnp.broadcast_to(bare.scale, law.shape()).reshape(shape), 1.0)
        return offset / noise, jnp.log(noise)

    def targets(self, y: Array) -> Array:
        """The targets of a batch, without their precisions."""
        return self.model._bound.parted(y).y

    def prior(self, theta: Theta) -> tuple[Theta, Array]:
        """m by name, and L: a matrix where the prior correlates weights, else its diagonal."""
        flat, unravel = ravel_pytree({name: jnp.zeros_like(theta[name]) for name in self.weights})
        slope = jax.grad(lambda flat: self.model.log_prior({**theta, **unravel(flat)}))
        if not self.coupled:
            start, along = jax.jvp(slope, (flat,), (jnp.ones_like(flat),))
            return unravel(-start / along), 1 / jnp.sqrt(-along)
        # With P = A Aᵀ, S = A⁻ᵀ A⁻¹.
        inverse = jnp.linalg.cholesky(-jax.jacfwd(slope)(flat)).T
        root = jax.scipy.linalg.solve_triangular(inverse, jnp.eye(len(flat)))
        return unravel(root @ (root.T @ slope(flat))), root

    def log_prior_of_others(self, theta: Theta) -> Array:
        """log p of the unconstrained latents that set the noise."""
        trace, total = self.model.trace_at(theta), jnp.zeros(())
        for name in self.others:
            jacobian = biject_to(trace[name]["fn"].support).log_abs_det_jacobian(theta[name], trace[name]["value"])
            total += log_density(trace[name]) + jnp.sum(jacobian)
        return total

    def example(self) -> Batch:
        """A row of zeros."""
        whole = self.model.example()
        return whole._replace(x=whole.x[:1], y=whole.y[:1])

    def _independent_blocks(self, theta: Theta) -> tuple[Block, ...]:
        touched = reached(lambda theta: self.whitened(theta, *self.example()[:2])[0][0], theta, self.weights)
        outputs = np.arange(touched.shape[1])
        if self.coupled or np.any(touched.sum(1) > 1):
            return (Block(tuple(outputs.tolist()), tuple(range(len(touched)))),)
        # A weight that enters no output stays with its prior, wherever it is counted.
        owner = touched.argmax(1)
        return tuple(Block((one,), tuple(np.flatnonzero(owner == one).tolist())) for one in outputs.tolist())

    def _noises(self, theta: Theta) -> tuple[tuple[int, ...], ...]:
        touched = reached(lambda theta: self.whitened(theta, *self.example()[:2])[1][0], theta, self.others)
        by_block = np.array([touched[:, list(one.outputs)].any(1) for one in self.blocks])
        check_noises(self.model, theta, self.others, touched, by_block)
        return tuple(tuple(np.flatnonzero(column).tolist()) for column in by_block.T)


def affine(model: Model) -> Affine:
    """The model as a linear regression; an error says what to use in place of a closed form that it has not."""
    if not isinstance(model, Believed):
        return _affine(model)
    found = _affine(model.original)
    if found.others:
        raise ValueError(
            f"ClosedForm: what was learned before correlates the weights with {', '.join(found.others)}, so the "
            "posterior of more data has no closed form; take a known noise, noise='tuned', or credo.NUTS()"
        )
    if not model.couples:
        return replace(found, model=model)
    outputs = sorted(output for block in found.blocks for output in block.outputs)
    entries = sorted(entry for block in found.blocks for entry in block.entries)
    return replace(found, model=model, coupled=True, blocks=(Block(tuple(outputs), tuple(entries)),))


# A program is looked at once, and not by each function that is compiled of it.
@lru_cache(maxsize=16)
def _affine(model: Model) -> Affine:
    theta = {
        name: np.zeros(leaf.shape, working_precision()) for name, leaf in (model.template | model.xi_template).items()
    }
    weights = affine_weights(model, theta)
    others = tuple(name for name in model.template if name not in weights)
    found = Affine(model, weights, others, bool(model.coupled_sites.intersection(weights)), (), ())
    found = replace(found, blocks=found._independent_blocks(theta))
    return replace(found, noises=found._noises(theta)) if others else found


def has_closed_form(model: Model) -> bool:
    """Whether `affine` takes the model, which is bound to the shape of its data."""
    try:
        affine(model)
    except ValueError:
        return False
    return True


def reached(function: Any, theta: Theta, names: Sequence[str]) -> np.ndarray:
    """Which outputs, (K,), each entry of the named arrays can change, (entries, K).

    A number that is not one (NaN) makes everything it enters another, whatever it is multiplied with.
    """
    some = {name: theta[name] for name in names}

    def of_entry(entry: Array) -> Array:
        flat, unravel = ravel_pytree(some)
        return jnp.isnan(function({**theta, **unravel(flat.at[entry].set(jnp.nan))}))

    num = sum(leaf.size for leaf in some.values())
    with jax.debug_nans(False):
        follow = jax.jit(lambda: jax.lax.map(of_entry, jnp.arange(num), batch_size=NUM_FOLLOWED))
        # Compiled first: then it runs at once, also while the function that asks is itself being traced.
        return np.asarray(follow.lower().compile()())
