"""Every method as it comes, with no setting changed, on a posterior that is known: it reaches what its guide says.

Linear regression in six weights: five features tanh(x) of 300 rows, given (so that dropout has units to drop), and a
bias. Functions at 50 inputs are compared, the worst of them. Bounds are the methods' own, `Guide.reaches`, so that page
and test cannot drift apart. They leave room for other seeds: about twice the largest error of four seeds for
stochastic-gradient MCMC, and of exact samplers, whose errors in means and sds are 1/√ESS and half that, with an ESS of
over a thousand. Those of q are the errors of the draws that predictions are made of, 1.6% of an sd and 1.1%, and of q
itself (see tests/statistical/test_variational_defaults.py).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import credo
from credo.inference.registry import METHODS

NOISE, NUM_ROWS, NUM_INPUTS = 0.5, 300, 50
# Of a posterior that can be drawn from without end: errors of 1.6% of an sd in means, 1.1% in sds.
NUM_DRAWS = 4000


class Problem(NamedTuple):
    model: credo.Model
    data: credo.Data
    inputs: np.ndarray
    mean: np.ndarray
    sds: dict[str, np.ndarray]


@cache
def problem() -> Problem:
    """The model, and exact means and sds of its functions: of the posterior, and of the best diagonal Gaussian."""
    rng = np.random.default_rng(0)
    mixing = np.eye(5) + 0.3 * np.eye(5, k=1)
    x, inputs = rng.normal(size=(NUM_ROWS, 5)), rng.normal(size=(NUM_INPUTS, 5))
    rows, places = (np.column_stack([np.tanh(values @ mixing), np.ones(len(values))]) for values in (x, inputs))
    y = rows @ rng.normal(size=6) + NOISE * rng.normal(size=NUM_ROWS)
    precision = np.eye(6) + rows.T @ rows / NOISE**2
    covariance = np.linalg.inv(precision)
    net = credo.networks.MLP([5], out=1, activation="tanh")
    features = {"hidden.0.kernel": mixing, "hidden.0.bias": np.zeros(5)}
    model = credo.models.last_layer(credo.models.regression(net, noise=NOISE), trained=features)
    sds = {
        "posterior": np.sqrt(np.einsum("ij,jk,ik->i", places, covariance, places)),
        "diagonal": np.sqrt(places**2 @ (1 / np.diag(precision))),
    }
    return Problem(model, credo.Data(x, y), inputs, places @ covariance @ rows.T @ y / NOISE**2, sds)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_reaches_at_its_defaults_what_its_guide_says(name: str, seed: int) -> None:
    given, reach = problem(), METHODS[name].guide.reaches
    assert reach is not None, f"{name} does not say what it reaches; measure it, and write it into its guide"
    posterior = credo.fit(given.model, given.data, METHODS[name](), seed=seed)
    draws = {} if isinstance(posterior, credo.Draws) else {"num_draws": NUM_DRAWS}
    predictive = posterior.predict(given.inputs, **draws)
    means = np.abs(predictive.mean.ravel() - given.mean) / given.sds["posterior"]
    sds = np.sqrt(np.maximum(predictive.epistemic.ravel(), 0.0)) / given.sds[reach.beside]
    assert means.max() <= reach.means
    assert reach.sds[0] <= sds.min()
    assert sds.max() <= reach.sds[1]
