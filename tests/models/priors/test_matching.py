"""Function-space elicitation: a network's prior functions against the Gaussian process that they should resemble."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF

import credo
from credo.models import priors
from credo.models.priors.matching import sliced_distance

POINTS = np.linspace(-2, 2, 16)[:, None]
NET = credo.networks.MLP([50], 1, activation="tanh")


def test_prior_functions_are_as_wide_as_the_gaussian_process(seed):
    kernel = 4.0 * RBF(1.0)
    prior = priors.matching(NET, kernel, POINTS, seed=seed)
    assert prior.distance_before > 3 * prior.distance_after
    model = credo.models.regression(NET, prior=prior, noise=0.01)
    sd = np.sqrt(model.prior_predict(POINTS, num_draws=2000, seed=seed).epistemic)
    # 2000 draws tell an sd to 1.6%.
    np.testing.assert_allclose(sd, 2.0, rtol=0.15)
    again = priors.from_config(prior.to_config())
    assert again.patterns == prior.patterns
    assert {path for path, _ in prior.patterns} == {"hidden.0.kernel", "hidden.0.bias", "head.kernel", "head.bias"}


def test_curves_are_matched_as_well(seed):
    # Lines through zero, of slope N(0, 0.5²): the linear network of one weight has exactly these.
    slopes = 0.5 * np.random.default_rng(seed).normal(size=(2000, 1))
    net = (lambda params, x: x @ params["w"], {"w": np.ones((1, 1), np.float32)})
    prior = priors.matching(net, slopes @ POINTS.T, POINTS, num_steps=200, seed=seed)
    # The mean of 200 steps' samples knows the scale well; the finite sample of each pulls it down by 1%.
    np.testing.assert_allclose(prior.patterns[0][1].scale, 0.5, rtol=0.08)


def test_the_sliced_distance_of_one_dimension_is_scipys(seed):
    first, second = np.random.default_rng(seed).normal(size=(2, 100, 1)).astype(np.float32)
    # Shifting all of a sample by c moves it by c; sorting is what the optimal plan does.
    np.testing.assert_allclose(sliced_distance(first, first[::-1] + 3.0, jnp.ones((1, 1))), 9.0, rtol=1e-5)
    root = float(jnp.sqrt(sliced_distance(first, second, jnp.ones((1, 1)))))
    assert root >= stats.wasserstein_distance(first[:, 0], second[:, 0]) * (1 - 1e-5)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (np.zeros((10, 7)), r"like: an array of shape \(10, 7\); .* \(draws, 16\)"),
        (np.full((10, 16), np.nan), "of finite values"),
        (lambda x, other: np.zeros((3, 3)), r"the kernel gives an array of shape \(3, 3\) for 16 points"),
        (lambda x, other: -np.eye(16), "no covariance: not symmetric, or not positive"),
    ],
)
def test_what_is_no_target_is_refused(like, message):
    with pytest.raises(ValueError, match=message):
        priors.matching(NET, like, POINTS)


def test_other_bad_input():
    with pytest.raises(ValueError, match="functions with one output"):
        priors.matching(credo.networks.MLP([4], 2), RBF(), POINTS)
    with pytest.raises(ValueError, match="num_steps must be a whole number of at least 1, got 0"):
        priors.matching(NET, RBF(), POINTS, num_steps=0)
