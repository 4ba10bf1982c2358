"""The methods of the paperfold example, fitted and timed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import credo
from credo import random
from credo.examples import page
from credo.inference.method import Method

# A member whose log joint or ELBO is this far below the best has found neither fold but a local optimum: a plane, or a
# sheet folded across a corner. It could weigh e⁻¹⁰ at most.
NATS_BELOW_BEST = 10.0
# Figures of single steps are noisy: the last ones are averaged.
NUM_LAST_STEPS = 200
# Draws that the time of one is taken from.
NUM_TIMED = 1000


@dataclass(frozen=True)
class Sizes:
    """How much is computed: draws and chains of the samplers, steps and starts of the optimisers, points of a line."""

    num_samples: int = 1000
    num_warmup: int = 1000
    num_chains: int = 8
    num_tempered: int = 8000
    num_steps: int = 30_000
    num_starts: int = 20
    num_points: int = 61


QUICK = Sizes(50, 100, 2, 100, 300, 2, 11)


@dataclass(frozen=True)
class Fit:
    """A posterior, and what it cost.

    Arguments:
        seconds: of training, compilation included.
        seconds_per_sample: what one more draw costs; None where no more can be had.
        members: how many of the starts the posterior keeps, and how many there were; None where there is no choice.
    """

    posterior: Any
    seconds: float
    seconds_per_sample: float | None
    members: tuple[int, int] | None = None


def fit_all(model: credo.Model, data: credo.Data, sizes: Sizes, seed: int) -> dict[str, Fit]:
    """Every method by its name, the exact reference first."""

    def timed(name: str, method: Method) -> tuple[Any, float]:
        page.say(f"Fitting: {name} …")
        began = time.perf_counter()
        return credo.fit(model, data, method, seed=seed), time.perf_counter() - began

    fits = {}
    for name, sampler in (("tempering", _tempering(sizes)), ("NUTS", _nuts(sizes))):
        posterior, seconds = timed(name, sampler)
        fits[name] = Fit(posterior, seconds, seconds / (posterior.num_chains * posterior.num_draws))
    rate = credo.schedules.Cosine(0.2, sizes.num_steps)
    of_points, points_seconds = timed("ensemble", _ensemble(credo.MAP, sizes, rate))
    of_gaussians, seconds = timed("VI, and VI + ensemble", _ensemble(credo.BayesByBackprop, sizes, rate))
    of_vi, kept = best_gaussians(of_gaussians)
    one = max(of_gaussians.members, key=_last_elbo)
    return fits | {
        "VI": Fit(one, seconds, _seconds_per_sample(one), (1, sizes.num_starts)),
        "ensemble": Fit(*_points(of_points, points_seconds)),
        "VI + ensemble": Fit(of_vi, seconds, _seconds_per_sample(of_vi), (kept, sizes.num_starts)),
    }


def _tempering(sizes: Sizes) -> Method:
    # At β = 0.01 the noise is 1, as large as the difference of the folds: there is nothing left to cross.
    return credo.ParallelTempering(
        num_samples=sizes.num_tempered,
        num_warmup=sizes.num_warmup,
        num_chains=sizes.num_chains,
        min_beta=0.01,
        target_acceptance=0.65,
    )


def _nuts(sizes: Sizes) -> Method:
    # Chains start from draws of the prior, far apart: none of them switches folds.
    return credo.NUTS(num_samples=sizes.num_samples, num_warmup=sizes.num_warmup, num_chains=sizes.num_chains)


def _ensemble(kind: Any, sizes: Sizes, rate: Any) -> Method:
    return credo.DeepEnsemble(
        kind(num_steps=sizes.num_steps, learning_rate=rate, start="prior"), members=sizes.num_starts
    )


def _points(ensemble: credo.Draws, seconds: float) -> tuple[credo.Draws, float, None, tuple[int, int]]:
    """The fit of an ensemble of modes: those that are among the best."""
    rows = among_best(_last_steps(ensemble.trace, "log_joint"))
    theta, trace = (
        {name: leaf[rows] for name, leaf in (tree or {}).items()} for tree in (ensemble.theta, ensemble.trace)
    )
    return replace(ensemble, theta=theta, trace=trace), seconds, None, (len(rows), ensemble.num_chains)


def best_gaussians(mixture: credo.Mixture) -> tuple[credo.Mixture, int]:
    """The mixture of the members that are among the best, in equal parts, and their number."""
    rows = among_best([_last_elbo(member) for member in mixture.members])
    members = tuple(mixture.members[row] for row in rows)
    return credo.Mixture(members, mixture.provenance), len(members)


def among_best(figures: Sequence[float] | np.ndarray) -> np.ndarray:
    """Which log joints or ELBOs are within NATS_BELOW_BEST of the largest.

    >>> among_best([-60.0, -9.3, -14.5]).tolist()
    [1, 2]
    """
    return np.flatnonzero(np.asarray(figures) > np.max(figures) - NATS_BELOW_BEST)


def _last_steps(trace: dict[str, np.ndarray] | None, name: str) -> np.ndarray:
    return (trace or {})[name][:, -NUM_LAST_STEPS:].mean(axis=1)


def _last_elbo(member: Any) -> float:
    return float(_last_steps(member.trace, "elbo")[0])


def _seconds_per_sample(posterior: Any) -> float:
    """Of a draw of theta, once drawing has been compiled."""
    posterior.sample(random.key(0), NUM_TIMED)
    began = time.perf_counter()
    posterior.sample(random.key(1), NUM_TIMED)
    return (time.perf_counter() - began) / NUM_TIMED
