"""Targets of other kinds, simulated from their own models: what was put in comes out, as often as it says.

theta ~ p(theta), y ~ p(y | x, theta): a 90% interval of the posterior then holds each number of theta 9 times in 10,
and one of the prediction each new target. The 21 numbers and more of each of 20 simulations have a binomial error of
1.5% if they are independent, 2,000 new targets of 0.7%: 85–95% are more than three errors.
"""

import numpy as np
import pytest

import credo
from credo import random
from credo.evaluation.coverage import levels_of, placed
from credo.networks import MLP
from credo.predictive.conditional import sample_of

NUM_SIMULATIONS, NUM_ROWS, NUM_NEW, NUM_INPUTS = 20, 150, 100, 20
LINE, PRIOR = MLP([], out=1), credo.priors.normal(0.3)
MODELS = {
    "poisson": credo.models.counts(LINE, "poisson", prior=PRIOR, base=3.0),
    "counts": credo.models.counts(LINE, prior=PRIOR, base=3.0),
    "positive": credo.models.positive(LINE, prior=PRIOR),
    "shares": credo.models.shares(LINE, prior=PRIOR),
    "ordinal": credo.models.ordinal(LINE, 4, prior=PRIOR),
    "censored": credo.models.positive(LINE, prior=PRIOR),
    "censored numbers": credo.models.regression(MLP([], out=2), prior=PRIOR, noise="heavy_tailed"),
}
METHOD = credo.NUTS(num_samples=300, num_warmup=300, num_chains=2)


def simulated(name, model, seed):
    """theta, data and new rows, all from the model itself; nothing is scaled."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(NUM_ROWS + NUM_NEW, NUM_INPUTS)).astype(np.float32)
    first = credo.Data(
        x[:2], np.array([1, 2]) if name == "ordinal" else np.array([0.5, 0.25]) if name == "shares" else np.ones(2)
    )
    bound = model.bind(first)
    theta = {key: leaf[0] for key, leaf in bound.sample_prior(random.key(seed), 1).items()}
    y = np.asarray(sample_of(bound.predictive(theta, x), random.key(seed + 1000)))
    if name == "shares":  # in single precision some are 0 or 1
        y = np.clip(y, 1e-6, 1 - 1e-6)
    if not name.startswith("censored"):
        return theta, credo.Data(x[:NUM_ROWS], y[:NUM_ROWS]), credo.Data(x[NUM_ROWS:], y[NUM_ROWS:])
    bounds = rng.normal(0.5, 1.3, len(y))
    bounds = np.exp(bounds) if name == "censored" else bounds
    seen, censored = np.minimum(y, bounds), bounds < y
    return theta, *(
        credo.Data(x[rows], seen[rows], censored=censored[rows]) for rows in (slice(NUM_ROWS), slice(NUM_ROWS, None))
    )


def held(posterior, theta):
    """Whether the 90% interval of each number of theta holds it."""
    draws = posterior.sample(random.key(0), 600)
    ends = {name: np.quantile(np.asarray(leaf), [0.05, 0.95], axis=0) for name, leaf in draws.items()}
    inside = [(ends[name][0] <= leaf) & (leaf <= ends[name][1]) for name, leaf in theta.items()]
    return np.concatenate([np.ravel(one) for one in inside])


def levels(prediction, data):
    """How far up in its law each new target lies: of classes in an order too."""
    if data.y.dtype.kind == "f" or not hasattr(prediction, "probs"):
        return levels_of(prediction, data.outcomes)
    above = np.cumsum(np.column_stack([np.zeros(data.size), prediction.probs]), axis=1)
    rows = np.arange(data.size)
    return placed(above[rows, data.y + 1], above[rows, data.y], None)


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_what_was_simulated_is_recovered(name, seed):
    inside, new = [], []
    for number in range(NUM_SIMULATIONS):
        theta, data, fresh = simulated(name, MODELS[name], 100 * seed + number)
        posterior = credo.fit(MODELS[name], data, METHOD, seed=seed)
        inside.append(held(posterior, theta))
        new.append(np.abs(2 * levels(posterior.predict(fresh.x), fresh) - 1) <= 0.9)
    of_theta, of_new = np.concatenate(inside), np.concatenate(new)
    print(f"{name}: 90% intervals hold {of_theta.mean():.1%} of theta, {of_new.mean():.1%} of new targets")
    assert 0.85 <= of_theta.mean() <= 0.95
    assert 0.85 <= of_new.mean() <= 0.95
