"""`credo.simplify`: how simple can a posterior be? Paper, "Simplifying Bayesian neural networks".

The paper's ways to make a posterior cheap, each tried on one: a distribution over the last layer alone, a student that
answers in one pass, a few weighted draws, fewer bits. What each saves and loses is measured on rows it has not seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from credo import models
from credo._checks import require_one_of
from credo._progress import working
from credo.data import Data
from credo.evaluation.compare import cost_of
from credo.evaluation.detection import detect
from credo.inference.fit import fit
from credo.posterior import Draws, Posterior
from credo.predictive import Predictive
from credo.simplifying.budget import as_bytes
from credo.simplifying.compress import compress
from credo.simplifying.distill import distill
from credo.simplifying.reference import epistemic_sd_of
from credo.simplifying.trade_off import FULL, Option, TradeOff, epistemic_error

# Without a budget, few draws are a fiftieth of the posterior.
DEFAULT_BUDGET = "2%"
# Without a test set, this share of the data is set aside to judge on.
SHARE_JUDGED = 0.2
# Foreign inputs, where none are given: their AUROC is known to about 0.02.
NUM_OUTSIDE = 1000
# Rows that are predicted to see how long one takes: of fewer, what a call costs would count for more than the rows.
NUM_TIMED = 4096
# Networks of the posterior among which the one is that a last layer keeps.
NUM_NETWORKS = 50


def simplify(
    posterior: Posterior,
    data: Any,
    *,
    budget: Any = None,
    test: Any = None,
    outside: Any = None,
    ways: Sequence[str] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> TradeOff:
    """Every way to make a posterior cheaper, side by side, and which one to take.

    Arguments:
        posterior: of any method.
        data: what it was fitted to: a last layer is fitted to it again, a student is taught on its inputs.
        budget: the most that it may take in memory: "1%" of what it takes now, 0.01, a number of bytes, or "200 kB".
        test: rows with targets to judge on. Without them a fifth of `data` is set aside; the posterior has seen it, so
            log scores are too good then, but the differences between them tell.
        outside: inputs unlike the data, (rows, …), about which the posterior should know little; by default points
            spread evenly over twice the range of each input.
        ways: which to try, of "last layer", "student", "coreset" and "quantised"; all of them by default.
        seed: the same seed gives the same bits.
        progress: whether to show what is being tried; by default where stderr is a terminal.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([5], out=1))
    >>> method = credo.MCLMC(num_samples=50, num_warmup=50, num_chains=2)
    >>> posterior = credo.fit(model, credo.datasets.gap(), method, progress=False)
    >>> result = simplify(posterior, credo.datasets.gap(), budget="30%", ways=["coreset", "quantised"])
    >>> list(result.options)
    ['full', 'coreset', 'quantised']
    """
    chosen = list(WAYS if ways is None else ways)
    for way in chosen:
        require_one_of(WAYS, ways=way)
    suited = posterior.model.like_training
    known = suited(data)
    learn, rest = (known, suited(test)) if test is not None else known.split(SHARE_JUDGED, seed=seed)
    num_bytes = None if budget is None else as_bytes(budget, posterior.num_bytes)
    made: dict[str, Posterior] = {FULL: posterior}
    left_out: dict[str, str] = {}
    for name in chosen:
        with working(f"{name} …", show=progress):
            try:
                made[name] = WAYS[name](posterior, learn, to=budget or DEFAULT_BUDGET, seed=seed)
            except ValueError as reason:  # what cannot be had of this posterior; the table says why
                left_out[name] = str(reason)
    judge = Judge(posterior, rest.only_labelled(), spread_out(known.x, seed) if outside is None else outside)
    return TradeOff({name: judge(one) for name, one in made.items()}, made, left_out, num_bytes, judge.test.size)


@dataclass(frozen=True, eq=False)
class Judge:
    """Measures what a posterior costs and knows, beside the full one."""

    full: Posterior
    test: Data
    outside: Any

    @cached_property
    def _prediction(self) -> Predictive:
        return self.full.predict(self.test.x)

    def __call__(self, posterior: Any) -> Option:
        """One posterior on the test rows, and on foreign inputs."""
        prediction = posterior.predict(self.test.x)
        log_prob, best = (one.log_prob(self.test.outcomes) for one in (prediction, self._prediction))
        lost = best - log_prob
        cost = cost_of(posterior, np.resize(self.test.x, (max(NUM_TIMED, self.test.size), *self.test.x.shape[1:])))
        return Option(
            num_bytes=cost.num_bytes + sum(leaf.nbytes for leaf in posterior.model.frozen_xi.values()),
            microseconds_per_row=cost.microseconds_per_row,
            lpd=float(np.mean(log_prob)),
            lost=float(np.mean(lost)),
            lost_error=float(np.std(lost) / np.sqrt(len(lost))),
            epistemic_error=epistemic_error(epistemic_sd_of(prediction), epistemic_sd_of(self._prediction)),
            auroc=detect(prediction, posterior.predict(self.outside), by="epistemic").auroc,
        )


# -- the ways ----------------------------------------------------------------------------------------------


def last_layer_of(posterior: Posterior, data: Data, *, to: Any, seed: int) -> Posterior:
    """The network of the posterior with the highest density, with a distribution over its last layer alone."""
    model = models.last_layer(posterior.model, trained=best_network(posterior, data))
    return fit(model, data, seed=seed, progress=False)


def student_of(posterior: Posterior, data: Data, *, to: Any, seed: int) -> Posterior:
    """One network that answers as the posterior does."""
    return distill(posterior, inputs=data, seed=seed, progress=False)


def compressed(by: str, posterior: Posterior, data: Data, *, to: Any, seed: int) -> Posterior:
    """The posterior in fewer bytes."""
    return compress(posterior, to, inputs=data.x, by=by, seed=seed)


def in_fewer_bits(posterior: Posterior, data: Data, *, to: Any, seed: int) -> Posterior:
    """All draws in int8: a quarter of the bytes, and half of them at most where draws are few."""
    return compress(posterior, 0.5, inputs=data.x, by="int8", seed=seed)


WAYS: dict[str, Callable[..., Posterior]] = {
    "last layer": last_layer_of,
    "student": student_of,
    "coreset": partial(compressed, "coreset+int8"),
    "quantised": in_fewer_bits,
}


def best_network(posterior: Any, data: Data) -> Draws:
    """The mean of a Gaussian; of draws the one with the highest log joint density."""
    model, batch = posterior.model, data.with_scaling(posterior.scaling).batch()
    theta = getattr(posterior, "mean", None)
    if theta is None:
        draws, _ = posterior.weighted_draws(NUM_NETWORKS)
        chosen = np.unique(np.linspace(0, len(next(iter(draws.values()))) - 1, NUM_NETWORKS).round().astype(int))
        some = {name: leaf[chosen] for name, leaf in draws.items()}
        log_joint = jax.jit(lambda draws: jax.lax.map(lambda theta: model.log_joint(theta, batch), draws))(some)
        theta = {name: leaf[int(np.argmax(log_joint))] for name, leaf in some.items()}
    return Draws(model, {name: np.asarray(leaf)[None, None] for name, leaf in theta.items()}, posterior.provenance)


def spread_out(x: np.ndarray, seed: int) -> np.ndarray:
    """Inputs unlike the data: uniform over twice the range of each input, around its middle."""
    low, high = x.min(axis=0), x.max(axis=0)
    places = np.random.default_rng(seed).uniform(-0.5, 1.5, (NUM_OUTSIDE, *x.shape[1:]))
    return low + places * (high - low)
