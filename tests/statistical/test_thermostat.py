"""Floor 2 for SGNHT: a posterior that is known, with exact gradients and with the noise of small minibatches."""

from dataclasses import dataclass

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from tests.statistical.moments import assert_moments, passes
from tests.statistical.targets import Target, linear_regression

NUM_DATA, NUM_PARAMETERS, BATCH_SIZE, FRICTION = 1000, 8, 10, 0.1
# ελ, for the precision λ of the posterior. The noise of batches of n rows multiplies the variance of SGHMC by about
# 1 + ελ N/(4nα): here 2, and the friction of the thermostat by as much.
STIFFNESS = 0.004
# Of the steps' finite size, as a share of the sd: under ελ/8 for exact gradients; of the thermostat, measured.
BIAS = 0.01
RUN = {"num_samples": 2000, "num_warmup": 4000, "thin": 100, "num_chains": 4}


def location() -> Target:
    """The mean of normal rows, all of whose parameters have the same gradient noise: N(Σy/(N + 1), 1/(N + 1))."""
    y = np.random.default_rng(0).normal(size=(NUM_DATA, NUM_PARAMETERS))

    def program(x, y=None):
        mean = numpyro.sample("w", dist.Normal(0, 1).expand([NUM_PARAMETERS]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(mean, 1.0).to_event(1).expand([x.shape[0]]), obs=y)

    precision = NUM_DATA + 1
    sd = np.full(NUM_PARAMETERS, precision**-0.5)
    return Target(credo.Model(program), credo.Data(np.zeros((NUM_DATA, 1)), y), y.sum(0) / precision, sd)


@dataclass(frozen=True, kw_only=True)
class Stuck(credo.SGNHT):
    """The thermostat's reading is lost on the way: SGHMC again."""

    def move(self, theta, drift, scale, noise, aux):
        theta, moved = super().move(theta, drift, scale, noise, aux)
        return theta, moved._replace(friction=aux.friction)


def draws_of(target: Target, method: credo.SGNHT, seed: int) -> np.ndarray:
    return target.draws(credo.fit(target.model, target.data, method, seed=seed))


def test_exact_gradients_give_the_posterior(seed):
    target = linear_regression()
    draws = draws_of(target, credo.SGNHT(**RUN | {"thin": 20}, step_size=0.02, friction=0.05), seed)
    assert_moments(draws, target.mean, target.sd, bias=BIAS)


@pytest.mark.parametrize(("kind", "is_right"), [(credo.SGNHT, True), (Stuck, False)])
def test_the_thermostat_absorbs_the_noise_of_minibatches(kind, is_right, seed):
    target = location()
    method = kind(**RUN, batch_size=BATCH_SIZE, step_size=STIFFNESS, friction=FRICTION)
    draws = draws_of(target, method, seed)
    if is_right:
        assert_moments(draws, target.mean, target.sd, bias=BIAS)
    else:
        assert not passes(draws, target.mean, target.sd, bias=BIAS)
