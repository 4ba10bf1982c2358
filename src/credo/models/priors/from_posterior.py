"""Transfer: what one posterior knows, as the prior of another model. Paper, "Meta-learning, transfer learning, …"."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, get_args

import jax
import numpy as np
import numpyro.distributions as dist

from credo._checks import require_one_of, require_positive
from credo._precision import working_precision
from credo._text import nearest
from credo.models.priors.by_path import as_prior
from credo.models.priors.transferred import Transferred, TransferStructure
from credo.typing import Array, Theta

# A full covariance of so many numbers takes 16 MB, and a product with its root little beside a gradient.
MAX_FULL = 2000
# Draws for each number of a covariance: with ten, its eigenvalues are within a third of the true ones.
DRAWS_PER_NUMBER = 10
# Draws of a posterior that does not know its moments.
NUM_DRAWS = 1000
NOISE = "noise"


def from_posterior(
    posterior: Any,
    select: str | Sequence[str] = "*",
    *,
    inflate: float = 1.0,
    structure: TransferStructure | None = None,
    others: Any = None,
    scale: float | None = None,
) -> Transferred:
    """The posterior of one fit as the prior of the next: N(E[theta | D], inflate² Cov[theta | D]) of what is selected.

        p(theta | ξ) = N((sel(ξ), 0), Σ)      paper, "Meta-learning, transfer learning, and self-supervised learning"

    With inflate=1 and a full covariance this is Bayesian updating: a linear model that has seen half of the data, and
    then the other half with this prior, knows what one knows that has seen all. A larger `inflate` allows for a shift
    between the domains. The posterior may be of any method, and the new network any that has the selected arrays, by
    path and shape. Of a model of tasks (`credo.models.tasks`) it is that of a new task: the population.

    Weights are in the units of the model: where the layers that are handed over see or give the data themselves, keep
    the scaling, `new_data.with_scaling(posterior.scaling)`.

    Arguments:
        posterior: whose model has a network, of whatever kind.
        select: paths with `*` wildcards, one or several: what is handed over. "noise" is the noise scale, and goes into
            the new model by `noise=prior.noise`.
        inflate: multiplies the standard deviations.
        structure: "full" or "diagonal"; full by default for up to 2,000 numbers whose covariance is known: of a
            Gaussian, or of ten times as many draws.
        others: the prior of all other weights, anything that `prior=` takes; N(0, 1) by default.
        scale: σ for what the posterior holds as points, such as that of `credo.MAP`: the paper's N(sel(ξ), σ²).

    >>> import credo
    >>> net = credo.networks.MLP([5], out=1)
    >>> first = credo.fit(credo.models.regression(net, noise=0.1), credo.datasets.gap(), credo.MAP(num_steps=10))
    >>> prior = from_posterior(first, "hidden.*", scale=0.1)
    >>> prior.structure, list(prior.shapes)
    ('diagonal', ['hidden.0.bias', 'hidden.0.kernel'])
    >>> second = credo.models.regression(credo.networks.MLP([5], out=1), prior=prior)
    """
    require_positive(inflate=inflate)
    if structure is not None:
        require_one_of(get_args(TransferStructure), structure=structure)
    if scale is not None:
        require_positive(scale=scale)
    patterns = (select,) if isinstance(select, str) else tuple(select)
    model = posterior.model
    selected = _selected(patterns, [*model.weight_names, *([NOISE] if NOISE in model.template else [])])
    chosen, takes_noise = [path for path in selected if path != NOISE], NOISE in selected
    if not chosen:
        raise ValueError(f"select: {select!r} picks no weight; there are {', '.join(model.weight_names)}")
    known = _known(posterior, chosen)
    num = sum(value.size for value in known.mean.values())
    enough = known.num_draws is None or known.num_draws >= DRAWS_PER_NUMBER * num
    if structure == "full" and not enough:
        raise ValueError(
            f"structure='full' has {num:,} numbers, and {known.num_draws:,} draws say too little about their "
            f"covariance; keep {DRAWS_PER_NUMBER * num:,} draws or more, or take structure='diagonal'"
        )
    variance = _filled(known.variance, scale)
    if structure == "diagonal" or not enough or (structure is None and num > MAX_FULL):
        spread: Any = {path: inflate * np.sqrt(value) for path, value in variance.items()}
    else:
        spread = known.covariance()
        np.fill_diagonal(spread, np.concatenate([np.ravel(value) for value in variance.values()]))
        spread *= inflate**2
    noise = _noise(posterior, inflate, scale) if takes_noise else None
    return Transferred.of(known.mean, spread, as_prior(others), noise=noise)


@dataclass(frozen=True, eq=False)
class Known:
    """What a posterior knows of some arrays: moments by path, and the covariance of all entries in that order.

    `num_draws` is how many draws the moments come from; None where they are exact.
    """

    mean: dict[str, np.ndarray]
    variance: dict[str, np.ndarray]
    covariance: Callable[[], np.ndarray]
    num_draws: int | None = None


def _known(posterior: Any, paths: Sequence[str]) -> Known:
    model = posterior.model
    if hasattr(posterior, "root") and model.real_sites.issuperset(paths):
        return _of_gaussian(posterior, paths)
    theta, weights = posterior.weighted_draws(NUM_DRAWS)
    if model.real_sites.issuperset(paths):
        drawn = {path: np.asarray(theta[path], np.float64) for path in paths}
    else:
        drawn = jax.jit(lambda theta: jax.lax.map(partial(_chosen, model, tuple(paths)), theta))(theta)
    return of_draws({path: drawn[path] for path in paths}, weights)


def of_draws(draws: Theta, weights: np.ndarray) -> Known:
    """Weighted moments of draws, each leaf (draws, …)."""
    # With one draw there is no spread, and nothing to correct.
    unbiased = 1 / max(1 - np.sum(weights**2), np.finfo(float).eps)
    mean = {path: np.tensordot(weights, np.asarray(leaf, np.float64), 1) for path, leaf in draws.items()}
    offsets = {path: np.asarray(leaf, np.float64) - mean[path] for path, leaf in draws.items()}
    variance = {path: unbiased * np.tensordot(weights, offset**2, 1) for path, offset in offsets.items()}

    def covariance() -> np.ndarray:
        flat = np.concatenate([offset.reshape(len(weights), -1) for offset in offsets.values()], axis=1)
        return unbiased * (flat.T * weights) @ flat

    return Known(mean, variance, covariance, len(weights))


def _of_gaussian(posterior: Any, paths: Sequence[str]) -> Known:
    """Σ = F Fᵀ with the rows of F = √Σ that belong to these arrays; what the root leaves out is known for certain."""
    mean, variance = posterior.moments()

    def covariance() -> np.ndarray:
        sizes = [np.size(mean[path]) for path in paths]
        covered = posterior.root.names

        def row(entry: Array) -> Array:
            parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
            pick = {
                path: (part == entry).astype(working_precision()).reshape(np.shape(mean[path]))
                for path, part in zip(paths, parts, strict=True)
            }
            zeros = {name: np.zeros(shape, working_precision()) for name, shape in posterior.root.shapes().items()}
            noise = posterior.root.transposed(zeros | {path: one for path, one in pick.items() if path in covered})
            return jax.numpy.concatenate([jax.numpy.ravel(leaf) for leaf in noise.values()])

        rows = np.asarray(jax.lax.map(row, jax.numpy.arange(sum(sizes))), np.float64)
        return rows @ rows.T

    return Known(
        {path: np.asarray(mean[path], np.float64) for path in paths},
        {path: np.asarray(variance[path], np.float64) for path in paths},
        covariance,
    )


def _chosen(model: Any, paths: tuple[str, ...], theta: Theta) -> Theta:
    weights = model.weights(theta)
    return {path: weights[path] for path in paths}


def _filled(variance: dict[str, np.ndarray], scale: float | None) -> dict[str, np.ndarray]:
    """Variances, with that of points given."""
    points = [path for path, value in variance.items() if not np.all(value > 0)]
    if points and scale is None:
        raise ValueError(
            f"the posterior holds {', '.join(points)} as points, without any spread; say how far the new ones may be "
            "from there, scale=0.1, or select others"
        )
    filling = 0.0 if scale is None else scale**2
    return {path: np.where(value > 0, value, filling) for path, value in variance.items()}


def _noise(posterior: Any, inflate: float, scale: float | None) -> dist.Distribution:
    """The noise scale as a log-normal: theta holds its logarithm."""
    theta, weights = posterior.weighted_draws(NUM_DRAWS)
    known = of_draws({NOISE: theta[NOISE]}, weights)
    if known.mean[NOISE].shape:
        raise ValueError("select: the noise has one scale for each target, which noise=… cannot take; leave it out")
    spread = inflate * np.sqrt(_filled(known.variance, scale)[NOISE])
    return dist.LogNormal(float(known.mean[NOISE]), float(spread))


def _selected(patterns: Sequence[str], paths: Sequence[str]) -> list[str]:
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in paths):
            raise ValueError(
                f"select: {pattern!r} matches no parameter{nearest(pattern, paths)}; there are {', '.join(paths)}"
            )
    return [path for path in paths if any(fnmatchcase(path, pattern) for pattern in patterns)]
