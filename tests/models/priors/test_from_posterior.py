"""Transfer: conjugate updating in two steps is updating in one, across methods and networks; refusals in words."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import credo
from credo.covariance import Blocks, Diagonal
from credo.covariance.layout import Layout
from credo.models.population import unflat
from credo.models.priors import JointNormal, Transferred, from_posterior
from credo.posterior import Provenance

NOISE = 0.2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 + NOISE * RNG.normal(size=40)
PROVENANCE = Provenance({"name": "exact"}, 0, 0.0, 0)


def exact(prior, rows) -> credo.Gaussian:
    """The posterior of a linear model, whose log joint density is a parabola: one Newton step from anywhere."""
    data = credo.Data(X[rows], Y[rows])
    model = credo.models.regression(credo.networks.MLP([], out=1), prior=prior, noise=NOISE).bind(data)
    with jax.enable_x64(True):
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), data.batch())
        slope = jax.grad(lambda vector: model.log_joint(unflat(vector, model.template), batch))
        slopes = np.asarray(jax.jit(jax.vmap(slope))(jnp.eye(1 + model.num_parameters)[:, 1:]))
    covariance = np.linalg.inv(slopes[0] - slopes[1:])
    mean = {name: np.asarray(leaf, np.float32) for name, leaf in unflat(covariance @ slopes[0], model.template).items()}
    root = Blocks({"all": np.linalg.cholesky(covariance)[None].astype(np.float32)}, Layout.together(model.template))
    return credo.Gaussian(model, mean, root, PROVENANCE)


@cache
def half() -> credo.Gaussian:
    return exact(None, slice(0, 20))


def covariance_of(posterior):
    root = posterior.root.roots["all"][0]
    return root @ root.T


def test_half_of_the_data_and_then_the_other_half_is_all_of_it():
    prior = from_posterior(half())
    assert prior.structure == "full"
    twice, once = exact(prior, slice(20, 40)), exact(None, slice(0, 40))
    for name in once.mean:
        np.testing.assert_allclose(twice.mean[name], once.mean[name], atol=1e-5)
    np.testing.assert_allclose(covariance_of(twice), covariance_of(once), atol=1e-5 * covariance_of(once).max())
    # Without the correlations it is not.
    rough = exact(from_posterior(half(), structure="diagonal"), slice(20, 40))
    assert np.abs(covariance_of(rough) - covariance_of(once)).max() > 1e-2 * covariance_of(once).max()


def test_the_density_is_that_of_a_joint_normal_whatever_the_order_of_drawing():
    names, flat = list(half().mean), np.concatenate([leaf.ravel() for leaf in half().mean.values()])
    prior = from_posterior(half(), inflate=3.0)
    model = credo.models.regression(credo.networks.MLP([], out=1), prior=prior, noise=NOISE).bind((X, Y))
    theta = {name: half().mean[name] + 0.1 for name in names}
    expected = stats.multivariate_normal(flat, 9 * covariance_of(half())).logpdf(flat + 0.1)
    np.testing.assert_allclose(float(model.log_prior(theta)), expected, rtol=1e-4)
    draws = jax.jit(lambda key: model.sample_prior(key, 4000))(credo.random.key(0))
    found = np.cov(np.concatenate([draws[name].reshape(4000, -1) for name in names], axis=1).T)
    # The error of a covariance entry has sd at most √2 · variance/√draws.
    np.testing.assert_allclose(found, 9 * covariance_of(half()), atol=5 * 9 * covariance_of(half()).max() / 40)


def test_draws_are_transferred_by_their_weighted_moments():
    model = half().model
    theta = {name: RNG.normal(size=(1, 60, *leaf.shape)).astype(np.float32) for name, leaf in half().mean.items()}
    weights = RNG.dirichlet(np.ones(60))[None]
    prior = from_posterior(credo.Draws(model, theta, PROVENANCE, weights), "head.bias", inflate=2.0)
    assert prior.shapes == {"head.bias": (1,)}
    values = theta["head.bias"].ravel().astype(float)
    mean = np.average(values, weights=weights[0])
    variance = np.average((values - mean) ** 2, weights=weights[0]) / (1 - np.sum(weights**2))
    np.testing.assert_allclose(prior.arrays["prior.head.bias.mean"], [mean], rtol=1e-5)
    np.testing.assert_allclose(1 / prior.arrays["prior.head.bias.root"], [[2 * np.sqrt(variance)]], rtol=1e-5)


def test_layers_and_noise_go_to_another_network_and_are_saved_with_it(tmp_path):
    first = credo.models.regression(credo.networks.MLP([4], out=1)).bind((X, Y))
    mean = {name: RNG.normal(size=leaf.shape).astype(np.float32) for name, leaf in first.template.items()}
    posterior = credo.Gaussian(first, mean, Diagonal({name: 0.1 + 0 * leaf for name, leaf in mean.items()}), PROVENANCE)
    prior = from_posterior(posterior, ["hidden.*", "noise"], others=credo.priors.normal(3.0))
    assert isinstance(prior.noise, dist.LogNormal)
    model = credo.models.classification(credo.networks.MLP([4], out=3), prior=prior).bind((X, (Y > 0).astype(int)))
    described = {site.name: site.prior for site in model.describe().sites}
    assert described["head.kernel"] == "Normal(loc=0, scale=3)"
    assert "JointNormal" in described["hidden.0.kernel"]
    theta = {name: RNG.normal(size=(1, 1, *leaf.shape)).astype(np.float32) for name, leaf in model.template.items()}
    credo.Draws(model, theta, PROVENANCE).save(tmp_path / "run")
    again = credo.load(tmp_path / "run").model
    one = {name: leaf[0, 0] for name, leaf in theta.items()}
    assert float(again.log_prior(one)) == float(model.log_prior(one))
    with pytest.raises(ValueError, match="make it again"):
        again.inputs.bound(credo.Data(X, Y))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_posterior(half(), "hidden.*"), r"'hidden\.\*' matches no parameter.*head.bias, head.kernel"),
        (lambda: from_posterior(half(), inflate=0.0), "inflate must be a positive number"),
        (lambda: from_posterior(half(), structure="block"), "structure must be 'full' or 'diagonal'"),
        (lambda: credo.priors.by_path({"head.*": from_posterior(half())}), "others="),
        (lambda: from_posterior(point()), "scale=0.1"),
        (lambda: from_posterior(point(), scale=0.1, structure="full"), "40 draws or more"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def point():
    return credo.Draws(half().model, {name: leaf[None, None] for name, leaf in half().mean.items()}, PROVENANCE)


@pytest.mark.parametrize(
    ("columns", "features", "words"),
    [(2, [], r"\(2, 1\) in this network and \(3, 1\)"), (3, [5], r"\(5, 1\) in this network")],
)
def test_networks_that_do_not_fit_are_refused(columns, features, words):
    model = credo.models.regression(credo.networks.MLP(features, out=1), prior=from_posterior(half()))
    with pytest.raises(ValueError, match=words):
        model.bind((X[:, :columns], Y))


def test_a_network_without_the_layers_is_refused():
    prior = Transferred.of({"trunk.kernel": np.zeros((3, 1))}, {"trunk.kernel": np.ones((3, 1))}, credo.priors.normal())
    with pytest.raises(ValueError, match=r"the network has no trunk\.kernel"):
        credo.models.regression(credo.networks.MLP([], out=1), prior=prior).bind((X, Y))


def test_laplace_takes_the_correlations_of_a_prior_with_its_full_structure_only():
    model = credo.models.regression(credo.networks.MLP([], out=1), prior=from_posterior(half()), noise=NOISE)
    with pytest.raises(ValueError, match="take structure='full'"):
        credo.fit(model, (X, Y), credo.Laplace(training=credo.MAP(num_steps=2)))
    law = JointNormal(jnp.zeros(2), jnp.array([[1.0, 0.0], [0.5, 2.0]]), jnp.zeros(2))
    np.testing.assert_allclose(law.log_prob(jnp.ones((3, 2))), np.full(3, law.log_prob(jnp.ones(2))), rtol=1e-6)
