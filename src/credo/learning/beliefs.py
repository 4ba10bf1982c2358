"""What a posterior knows, as a density of theta: the prior of what comes next.

Paper, "Online learning": p(theta | D₁, D₂) ∝ p(D₂ | theta) p(theta | D₁). A Gaussian is such a density as it is; draws
become one through a Gaussian, or a flow, that is fitted to them. A flow from variational inference goes on as draws too
unless it is asked for: where no draw has been, its density is anything.
"""

from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo._checks import require_one_of
from credo._precision import working_precision
from credo.covariance import Blocks, Diagonal, Root
from credo.covariance.layout import Layout
from credo.covariance.warp import Warp
from credo.inference.variational.families import FlowFamily
from credo.learning.going_on import NothingToGoOnFrom
from credo.models.priors.from_posterior import DRAWS_PER_NUMBER, MAX_FULL, Known, of_draws
from credo.posterior import Draws, Flow, Gaussian, Generator, Quantised
from credo.posterior.belief import Belief
from credo.typing import Array, Theta

Density = Literal["gaussian", "diagonal", "flow", "weights"]

# Draws of a posterior that can make any number of them.
NUM_DRAWS = 2000
# Fewer draws than this say nothing about a spread.
LEAST_DRAWS = 10
# Of the flow that is fitted to draws, from the Gaussian that has their moments; one draw in so many is held out, and
# says which step was the best: with few draws a flow learns them by heart.
NUM_FLOW_STEPS, FLOW_RATE, HELD_OUT_EVERY = 500, 5e-3, 5


def belief_of(posterior: Any, density: Density = "gaussian") -> Belief:
    """The density that a posterior is, or that its draws are fitted by.

    Arguments:
        posterior: a Gaussian, a flow or draws; of a mixture, ask its members.
        density: of draws, and of a flow by its draws: "gaussian", with all covariances where there are ten draws for
            each of up to 2,000 numbers and with the variances alone otherwise; "diagonal"; or "flow", for up to 2,000.
    """
    require_one_of(get_args(Density), density=density)
    if isinstance(posterior, Gaussian):
        certain = sorted(posterior.mean.keys() - posterior.root.shapes().keys())
        if certain:
            raise NothingToGoOnFrom(
                f"the posterior holds {', '.join(certain)} for certain, so there is no density to go on from",
                "make all of theta uncertain (subset='all'), or those arrays constants of the model, "
                "credo.models.last_layer(…)",
            )
        return _made(posterior.mean, posterior.root)
    if isinstance(posterior, Flow) and density == "flow":
        return _made(posterior.location, posterior.warp)
    if isinstance(posterior, Draws | Flow | Quantised | Generator):
        return _of_draws(*posterior.weighted_draws(NUM_DRAWS), density)
    raise NothingToGoOnFrom(
        f"a {type(posterior).__name__} has no density over theta that could be the prior of what comes next",
        "use a method that leaves a Gaussian, a flow or draws, such as credo.Laplace() or credo.NUTS()",
    )


def _of_draws(theta: Theta, weights: np.ndarray, density: Density) -> Belief:
    known = of_draws(theta, weights)
    if len(weights) < LEAST_DRAWS or not all(np.all(value > 0) for value in known.variance.values()):
        raise NothingToGoOnFrom(
            f"the posterior has {len(weights)} draw(s), which say too little about the spread of theta to go on from",
            "use a method that leaves a distribution, such as credo.Laplace() or credo.BayesByBackprop(), or an "
            "ensemble of those",
        )
    num = sum(value.size for value in known.mean.values())
    if density == "flow":
        return _flow(known, theta, weights)
    if density == "diagonal" or num > MAX_FULL or len(weights) < DRAWS_PER_NUMBER * num:
        return _made(known.mean, Diagonal({name: np.sqrt(value) for name, value in known.variance.items()}))
    return _made(known.mean, _full_root(known))


def _made(centre: Theta, spread: Root | Warp) -> Belief:
    return Belief(*jax.tree.map(lambda leaf: jnp.asarray(leaf, working_precision()), (centre, spread)))


def _full_root(known: Known) -> Blocks:
    return Blocks({"all": np.linalg.cholesky(known.covariance())[None]}, Layout.together(known.mean))


def _flow(known: Known, theta: Theta, weights: np.ndarray) -> Belief:
    """The flow that gives the draws the largest density, its √Σ being that of the draws."""
    family, template = FlowFamily(), {name: jnp.asarray(value) for name, value in known.mean.items()}
    gaussian = _made(known.mean, _full_root(known))
    start = family.root(family.init(template, 1.0), template).layers
    offsets = {name: jnp.asarray(leaf) - gaussian.centre[name] for name, leaf in theta.items()}
    layers = _climbed(gaussian.spread, start, offsets, jnp.asarray(weights, working_precision()))
    return Belief(gaussian.centre, Warp(gaussian.spread, layers))  # type: ignore[arg-type]


@jax.jit
def _climbed(root: Any, start: Theta, offsets: Theta, weights: Array) -> Theta:
    """The layers of a flow after a climb of Σ wᵢ log q(thetaᵢ), where that of the draws held out is largest."""
    optimizer = optax.adam(optax.cosine_decay_schedule(FLOW_RATE, NUM_FLOW_STEPS))
    held_out = jnp.arange(len(weights)) % HELD_OUT_EVERY == 0

    def scores(layers: Theta) -> tuple[Array, Array]:
        terms = weights * jax.vmap(Warp(root, layers).log_density)(offsets)
        return jnp.sum(jnp.where(held_out, 0.0, terms)), jnp.sum(jnp.where(held_out, terms, 0.0))

    def step(carry: tuple[Theta, Any, Theta, Array], _: None) -> tuple[tuple[Theta, Any, Theta, Array], None]:
        layers, state, best, most = carry
        (_, score), slope = jax.value_and_grad(scores, has_aux=True)(layers)
        best = jax.tree.map(lambda new, old: jnp.where(score > most, new, old), layers, best)
        updates, state = optimizer.update(jax.tree.map(jnp.negative, slope), state)
        return (optax.apply_updates(layers, updates), state, best, jnp.maximum(score, most)), None

    carry = (start, optimizer.init(start), start, jnp.array(-jnp.inf, weights.dtype))
    return jax.lax.scan(step, carry, None, NUM_FLOW_STEPS)[0][2]
