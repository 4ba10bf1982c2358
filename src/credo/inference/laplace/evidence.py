"""The evidence p(D | xi) of a Laplace approximation, and the prior parameters xi that make it largest.

With H the curvature of the log likelihood at theta*, P that of the log prior, and n the number of parameters,

    log p(D | xi) ≈ log p(D | theta*, xi) + log p(theta* | xi) + n/2 log 2π − ½ log det(H + P)

Paper, "Learning the prior". It is a differentiable function of xi: prior scales enter by P, a noise scale by H. The
evidence is high where the data are fitted by weights that need not be tuned finely: it weighs fit against complexity,
and compares architectures without held-out data. A prior with factors is known up to a constant; so is its evidence.

MacKay, "A practical Bayesian framework for backpropagation networks" (1992); Immer et al., "Scalable marginal
likelihood estimation for model selection in deep learning" (2021).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from credo._mesh import of_shares
from credo._precision import working_precision
from credo.covariance import Root
from credo.inference.laplace.curvature import Curvature, Structure, curvature_of
from credo.inference.laplace.row_sums import Problem, log_likelihood
from credo.models.outputs import NormalOutputs, depends_on
from credo.models.program import Model
from credo.typing import Array, Batch, Theta

# Adam on the logarithms of scales: in so many steps they can move by a factor of forty.
NUM_STEPS, LEARNING_RATE = 50, 0.15
# The least precision of a prior that is flat, or curved the wrong way, at the mode: a standard deviation of 100.
LEAST_PRECISION = 1e-4


@partial(jax.jit, static_argnums=2)
def prior_precision(model: Model, theta: Theta, names: tuple[str, ...]) -> Theta:
    """P = −∂² log p(theta) / ∂theta² of each entry, without the prior's factors: 1/scale² for a normal prior."""
    some = {name: jnp.asarray(theta[name], working_precision()) for name in names}
    gradient = jax.grad(lambda some: log_prior_of_latents(model, {**theta, **some}))
    # The entries are independent of each other, so that the product of the Hessian with ones is its diagonal.
    _, along = jax.jvp(gradient, (some,), (jax.tree.map(jnp.ones_like, some),))
    return {name: jnp.maximum(-leaf, LEAST_PRECISION) for name, leaf in along.items()}


def log_prior_of_latents(model: Model, theta: Theta) -> Array:
    """log p(theta) without its factors."""
    return model.log_prior(theta) - model.log_factors(theta) if model.factors else model.log_prior(theta)


@jax.jit
def log_evidence(problem: Problem, theta: Theta, data: Batch, curvature: Curvature) -> Array:
    """log p(D | xi) of the Laplace approximation at theta, which may hold xi as well.

    Arguments:
        curvature: of the log likelihood at theta, over the uncertain arrays.
    """
    precision = prior_precision(problem.model, theta, problem.names)
    return log_evidence_of(problem, theta, data, curvature.root(precision).half_log_det())


@of_shares
@jax.jit
def log_evidence_of(problem: Problem, theta: Theta, data: Batch, half_log_det: Array) -> Array:
    """The same, where ½ log det Σ is known."""
    num = sum(math.prod(problem.model.template[name].shape) for name in problem.names)
    log_joint = problem.model.log_prior(theta) + log_likelihood(problem, theta, data)
    return log_joint + 0.5 * num * math.log(2 * math.pi) + half_log_det


@jax.custom_vjp
def _half_log_det(curvature: Curvature, factor: Array, precision: Theta) -> Array:
    """−½ log det(factor · H + P) of an H that is constant; its gradients in P and in the factor need Σ alone:

    −½ dP · diag(Σ)    and    −½ tr(Σ H) = −½ (n − tr(Σ P)) / factor,

    a third of the work of differentiating the decomposition.
    """
    return _scaled_root(curvature, factor, precision).half_log_det()


def _scaled_root(curvature: Curvature, factor: Array, precision: Theta) -> Root:
    return curvature.times(factor).damped_root(precision)[0]


def _half_log_det_forward(curvature: Curvature, factor: Array, precision: Theta) -> tuple[Array, Any]:
    root = _scaled_root(curvature, factor, precision)
    return root.half_log_det(), (curvature, factor, precision, root.variance())


def _half_log_det_backward(known: Any, cotangent: Array) -> tuple[Any, Array, Theta]:
    curvature, factor, precision, variance = known
    explained = sum(jnp.sum(1 - variance[name] * leaf) for name, leaf in precision.items())
    in_precision = {name: -0.5 * cotangent * variance[name] for name in precision}
    return jax.tree.map(jnp.zeros_like, curvature), -0.5 * cotangent * explained / factor, in_precision


_half_log_det.defvjp(_half_log_det_forward, _half_log_det_backward)


def tuned_xi(problem: Problem, theta: Theta, xi: Theta, data: Batch, structure: Structure, *, rank: int = 50) -> Theta:
    """The unconstrained xi that climbing the evidence leads to, at a theta that stays where it is."""
    if problem.kind == "hessian" and _likelihood_depends_on(problem, theta, xi):
        raise ValueError(
            "curvature='hessian' cannot be differentiated in the noise that the model leaves to be tuned; take "
            "curvature='ggn', or a noise with a prior (noise='learned')"
        )
    start = curvature_of(problem, {**theta, **xi}, data, structure, rank=rank)
    return _climb(problem, structure, rank, start, theta, xi, data)


@of_shares
@partial(jax.jit, static_argnums=(1, 2))
def _climb(
    problem: Problem, structure: Structure, rank: int, start: Curvature, theta: Theta, xi: Theta, data: Batch
) -> Theta:
    """Gradient ascent from xi, where the curvature is `start`."""
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, NUM_STEPS))
    again = _likelihood_depends_on(problem, theta, xi)
    noise = _common_noise(problem, theta, xi)

    def evidence(now: Theta) -> Array:
        both = {**theta, **now}
        if again and noise is None:
            return log_evidence(problem, both, data, curvature_of(problem, both, data, structure, rank=rank))
        factor = (noise(xi) / noise(now)) ** 2 if again and noise is not None else jnp.ones(())
        half_log_det = _half_log_det(start, factor, prior_precision(problem.model, both, problem.names))
        return log_evidence_of(problem, both, data, half_log_det)

    def loss(now: Theta) -> Array:
        return -evidence(now) / data.num_rows

    def step(carry: tuple[Theta, Any], _: None) -> tuple[tuple[Theta, Any], None]:
        now, state = carry
        updates, state = optimizer.update(jax.grad(loss)(now), state)
        return (optax.apply_updates(now, updates), state), None

    return jax.lax.scan(step, (xi, optimizer.init(xi)), None, NUM_STEPS)[0][0]


def _likelihood_depends_on(problem: Problem, theta: Theta, xi: Theta) -> bool:
    example = problem.model.example()
    return depends_on(lambda xi: problem.model.log_likelihood({**theta, **xi}, example), xi)


def _common_noise(problem: Problem, theta: Theta, xi: Theta) -> Callable[[Theta], Array] | None:
    """The noise as a function of xi, where all rows and targets have one that theta does not enter: H ∝ 1/noise²."""
    kind = problem.outputs
    # What a prior's factors add to H does not change with the noise.
    if not isinstance(kind, NormalOutputs) or kind.num_targets > 1 or problem.model.factors:
        return None
    x = problem.model.example().x

    def noise(both: Theta) -> Array:
        return kind.noise(problem.model.predictive(both, x))[0, 0]

    return None if depends_on(lambda theta: noise({**theta, **xi}), theta) else lambda xi: noise({**theta, **xi})
