"""A new task from few points: the population that other tasks have taught is its prior.

Where the weights that vary are a linear head and the noise is normal, the posterior given ξ is normal in closed form.
With f(x) = o + Φ h, h = m + A z, z ~ N(0, I), and r = y − o − Φ m,

    z | y ~ N(Λ⁻¹ BᵀN⁻¹ r, Λ⁻¹),    B = Φ A,    Λ = I + Bᵀ N⁻¹ B,    p(y | ξ) = N(r; 0, B Bᵀ + N),    N = diag(noise²)

and draws of ξ and of the shared weights are weighted by that evidence. Paper, "Meta-learning, …".
"""

import time
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo._checks import require_at_least
from credo._precision import working_precision
from credo.covariance import Blocks
from credo.covariance.layout import Layout
from credo.data import Data, as_data
from credo.diagnostics.laplace import LaplaceEvidence
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.models.population import OfTasks, Population, flat, is_linear, linear_features, unflat
from credo.models.priors import Transferred, point
from credo.models.priors.from_posterior import of_draws
from credo.models.program import Model
from credo.models.rows import RowShapes
from credo.networks import functional
from credo.posterior import Gaussian, Mixture, Posterior, Provenance
from credo.typing import Array, Theta

# Draws of ξ: each is a member of the answer, with a weight of its own.
NUM_DRAWS = 50
# Added to the covariance of a head, relative to its mean variance, so that it has a root.
JITTER = 1e-8


def adapt(
    posterior: Any, data: Any, method: Method | str | None = None, *, seed: int = 0, num_draws: int = NUM_DRAWS
) -> Posterior:
    """The posterior of a new task, from its few points and from what other tasks have taught about all of them.

        p(theta_new | D_new, D) ∝ p(D_new | theta_new) ∫ p(theta_new | ξ) p(ξ | D) dξ

    It is an ordinary posterior of an ordinary model: it predicts plain rows without a task column, and is saved, judged
    and drawn like any other.

    Arguments:
        posterior: of `credo.models.tasks` or `credo.models.task_heads`.
        data: of the new task, `Data` or (x, y), in the user's units and without a task column.
        method: None for the closed form, exact given ξ, where weights vary in a linear head alone and the noise is
            normal. Else any method, which starts from the population as a normal prior with the same moments.
        num_draws: of ξ and the shared weights, in the closed form.

    >>> import credo
    >>> rng = np.random.default_rng(0)
    >>> sets = [(x, slope * x[:, 0]) for x, slope in zip(rng.normal(size=(8, 5, 1)), rng.normal(size=8))]
    >>> model = credo.models.task_heads(credo.networks.MLP([4], out=1), noise=0.1)
    >>> population = credo.fit(model, credo.packed_tasks(sets), credo.MAP(num_steps=2))
    >>> adapt(population, ([[1.0], [2.0]], [0.5, 1.0])).predict([[3.0]]).mean.shape
    (1,)
    """
    require_at_least(1, num_draws=num_draws)
    program = posterior.model.program
    if not hasattr(program, "population"):
        raise ValueError(
            "posterior is not of a model of tasks, so it knows of no population; fit credo.models.tasks or "
            "credo.models.task_heads, or hand one posterior over with credo.priors.from_posterior"
        )
    known = _populations(posterior, num_draws)
    own = _like_tasks(as_data(data), posterior.model).with_scaling(program.plain_scaling(posterior.scaling))
    if method is None and not known.is_closed(own):
        raise ValueError(
            "method: there is no closed form where other weights than those of a linear head vary, or the noise is not "
            "normal with one scale; pass a method, such as credo.Laplace() or credo.NUTS()"
        )
    if method is None:
        return _conditioned(known, own, seed)
    return fit(known.bound(own), own, method, seed=seed)


@dataclass(frozen=True, eq=False)
class _Populations:
    """Draws of ξ and of the shared weights, each leaf with a leading axis, and their weights."""

    program: OfTasks
    draws: Population
    weights: np.ndarray
    models: dict[tuple[RowShapes, tuple[str, ...] | None], Model] = field(default_factory=dict)

    def bound(self, data: Data) -> Model:
        """The model of a single task, with shared weights that are points as constants.

        It is the same object for all new tasks with rows alike, so that they share what is compiled.
        """
        rows = (RowShapes.of(data.batch(), data), data.names)
        if rows not in self.models:
            model = self.program.plain(self.prior(), self.noise()).bind(data)
            points = {name: self.draws.shared[name] for name in model.xi_template}
            fixed = {name: np.average(leaf, axis=0, weights=self.weights) for name, leaf in points.items()}
            self.models[rows] = model.freeze(fixed) if fixed else model
        return self.models[rows]

    @property
    def is_single(self) -> bool:
        """Whether shared weights and ξ are points."""
        return len(self.weights) == 1

    def is_closed(self, data: Data) -> bool:
        """Whether a head has a normal posterior."""
        if self.draws.noise is None:
            return False
        return _is_linear(cast(Any, self.program), tuple(self.draws.mean), data.x.shape[1:])

    def prior(self) -> Transferred:
        """p(theta_new) with the moments of the population: law of total covariance over ξ."""
        heads = of_draws(self.draws.mean, self.weights)
        roots = np.asarray(self.draws.root, np.float64)
        covariance = np.einsum("d,dij,dkj->ik", self.weights, roots, roots)
        if not self.is_single:
            covariance += heads.covariance()
        covariance += JITTER * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        shared = of_draws(self.draws.shared, self.weights)
        scales = {path: np.sqrt(value) for path, value in shared.variance.items()}
        if any(not np.all(scale > 0) for scale in scales.values()):
            return Transferred.of(heads.mean, covariance, point())
        return Transferred.of(heads.mean, covariance, Transferred.of(shared.mean, scales, point()))

    def noise(self) -> Any:
        """What is known of the noise: a number, a law, or the model's own where it depends on x."""
        scales = self.draws.noise
        if scales is None:
            return self.program.noise
        known = of_draws({"noise": np.log(scales)}, self.weights)
        if np.all(known.variance["noise"] > 0) and not known.mean["noise"].shape:
            return dist.LogNormal(float(known.mean["noise"]), float(np.sqrt(known.variance["noise"])))
        return np.exp(known.mean["noise"])


def _like_tasks(data: Data, model: Model) -> Data:
    """The rows of a new task with columns in the order of the tasks before, whose last may be that of the task."""
    columns = model.rows.columns if model.rows else None
    return data if columns is None else data.arranged(columns[: data.x.shape[1]])


# Learning a new task takes milliseconds, if this is not done again for each.
@lru_cache(maxsize=4)
def _populations(posterior: Any, num: int) -> _Populations:
    theta, weights = posterior.weighted_draws(num)
    chosen = np.linspace(0, len(weights) - 1, min(num, len(weights))).round().astype(int)
    theta, weights = {name: leaf[chosen] for name, leaf in theta.items()}, weights[chosen]
    model, program = posterior.model, posterior.model.program
    draws = jax.jit(lambda theta: jax.lax.map(lambda one: program.population(model, one), theta))(theta)
    return _Populations(program, jax.tree.map(np.asarray, draws), weights / weights.sum())


@lru_cache(maxsize=16)
def _is_linear(program: Any, varying: tuple[str, ...], row: tuple[int, ...]) -> bool:
    return is_linear(functional(program.net, jax.ShapeDtypeStruct((1, *row), working_precision())), varying, row)


@partial(jax.jit, static_argnums=0)
def _features(program: Any, one: Population, x: Array) -> tuple[Array, Array]:
    return linear_features(functional(program.net, x), one.shared, one.mean, x)


def _conditioned(known: _Populations, data: Data, seed: int) -> Posterior:
    """The exact posterior given each draw of ξ: a Gaussian, or a mixture of Gaussians weighted by their evidence."""
    began = time.perf_counter()
    batch, model = data.batch(), known.bound(data)
    members, log_evidences = [], []
    for index in range(len(known.weights)):
        one: Population = jax.tree.map(itemgetter(index), known.draws)
        offset, features = (np.asarray(part, np.float64) for part in _features(known.program, one, batch.x))
        mean, root, log_evidence = _head(one, offset, features, np.asarray(batch.y, np.float64))
        members.append(
            _gaussian(model, one, mean, root, LaplaceEvidence(float(log_evidence), newton_gain=0.0, damping=0.0), seed)
        )
        log_evidences.append(log_evidence)
    seconds = time.perf_counter() - began
    done = [cast(Any, replace(one, provenance=replace(one.provenance, seconds=seconds))) for one in members]
    if known.is_single:
        return done[0].placed(data)
    weights = known.weights * np.exp(np.array(log_evidences) - max(log_evidences))
    return Mixture(tuple(done), done[0].provenance, weights / weights.sum()).placed(data)


def _head(
    one: Population, offset: np.ndarray, features: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and covariance root of the head given one draw of ξ, and the evidence of that draw."""
    mean, root = np.asarray(flat(one.mean), np.float64), np.asarray(one.root, np.float64)
    targets = y.reshape(offset.shape)
    seen = np.isfinite(targets).ravel()
    noise = np.broadcast_to(np.asarray(one.noise, np.float64), offset.shape).ravel()[seen]
    phi = features.reshape(-1, len(mean))[seen]
    white = (targets - offset).ravel()[seen] - phi @ mean
    white, columns = white / noise, (phi @ root) / noise[:, None]
    precision = np.eye(root.shape[1]) + columns.T @ columns
    lower = np.linalg.cholesky(precision)
    along = np.linalg.solve(lower, columns.T @ white)
    centre = np.linalg.solve(lower.T, along)
    log_evidence = 0.5 * (along @ along - white @ white) - np.sum(np.log(np.diag(lower))) - np.sum(np.log(noise))
    return mean + root @ centre, root @ np.linalg.inv(lower.T), log_evidence - 0.5 * len(white) * np.log(2 * np.pi)


def _gaussian(
    model: Model, one: Population, mean: np.ndarray, root: np.ndarray, evidence: LaplaceEvidence, seed: int
) -> Gaussian:
    """N(mean, root rootᵀ) over the head; the shared weights and the noise are known for certain."""
    head = {path: np.asarray(leaf, working_precision()) for path, leaf in unflat(jnp.asarray(mean), one.mean).items()}
    theta: Theta = {**one.shared, **head}
    if "noise" in model.template:
        theta["noise"] = np.log(np.asarray(one.noise))
    # The triangular root of the same covariance: R of a QR decomposition, transposed.
    lower = np.asarray(np.linalg.qr(root.T, mode="r")).T
    lower = lower * np.where(np.diag(lower) < 0, -1.0, 1.0)
    layout = Layout.together({path: head[path] for path in head})
    return Gaussian(
        model,
        {name: np.asarray(theta[name], working_precision()) for name in model.template},
        Blocks({"all": lower[None].astype(working_precision())}, layout),
        Provenance({"name": "Adapted"}, seed, 0.0, 0),
        evidence=evidence,
        prediction="linear",
    )
