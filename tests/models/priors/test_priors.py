"""Priors against scipy's densities; descriptions that survive JSON; refusals in words."""

import json

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

from credo.models import priors
from credo.models.priors import Parameter

VALUES = np.array([[0.3, -1.2, 0.01], [2.0, -0.4, 0.7]], np.float32)
KERNEL = Parameter("hidden.0.kernel", (2, 3), 2)
BIAS = Parameter("hidden.0.bias", (3,), 2)


def mixture_log_density(w):
    return np.log(0.25 * stats.norm.pdf(w, scale=2.0) + 0.75 * stats.norm.pdf(w, scale=0.1))


CASES = [
    (None, stats.norm(scale=1.0).logpdf),
    (priors.normal(2.0), stats.norm(scale=2.0).logpdf),
    (priors.fan_in(3.0), stats.norm(scale=3.0 / np.sqrt(2)).logpdf),
    (priors.laplace(0.5), stats.laplace(scale=0.5).logpdf),
    (priors.scale_mixture(0.25, 2.0, 0.1), mixture_log_density),
    (priors.learned(0.5), stats.norm(scale=0.5).logpdf),
    (priors.learned(0.5, per="input"), stats.norm(scale=0.5).logpdf),
    (dist.StudentT(3.0, 0.5, 2.0), stats.t(3, 0.5, 2.0).logpdf),
    (dist.Normal(0.5, 2.0).expand([1]), stats.norm(0.5, 2.0).logpdf),
    (dist.Normal(jnp.arange(6.0).reshape(2, 3), 1.0), stats.norm(np.arange(6.0).reshape(2, 3), 1.0).logpdf),
    (dist.TruncatedNormal(0.0, 1.0, low=-2.5, high=2.5), stats.truncnorm(-2.5, 2.5).logpdf),
]


@pytest.mark.parametrize(("prior", "log_density"), CASES)
def test_density_is_scipys_summed_over_the_array_and_survives_json(prior, log_density):
    prior = priors.as_prior(prior)
    distribution = prior(KERNEL)
    assert distribution.event_shape == KERNEL.shape
    expected = np.sum(log_density(VALUES))
    np.testing.assert_allclose(distribution.log_prob(VALUES), expected, rtol=1e-5)
    again = priors.from_config(json.loads(json.dumps(prior.to_config())))
    np.testing.assert_allclose(again(KERNEL).log_prob(VALUES), expected, rtol=1e-5)


def test_a_correlated_distribution_of_the_parameters_own_shape_survives_json():
    covariance = 0.5 * np.eye(3) + 0.5
    prior = priors.as_prior(dist.MultivariateNormal(jnp.ones(3), covariance))
    expected = stats.multivariate_normal(np.ones(3), covariance).logpdf(VALUES[0])
    np.testing.assert_allclose(prior(BIAS).log_prob(VALUES[0]), expected, rtol=1e-5)
    again = priors.from_config(json.loads(json.dumps(prior.to_config())))
    np.testing.assert_allclose(again(BIAS).log_prob(VALUES[0]), expected, rtol=1e-5)


def test_fan_in_scales_kernels_by_their_inputs_and_vectors_by_bias_scale():
    prior = priors.fan_in(2.0, bias_scale=5.0)
    wide = prior(Parameter("head.kernel", (100, 1), 100))
    np.testing.assert_allclose(wide.variance, 0.04, rtol=1e-6)
    # A bias has a fan-in too, and it must not count.
    np.testing.assert_allclose(prior(Parameter("head.bias", (4,), 100)).variance, 25.0)


@pytest.mark.parametrize(
    "prior",
    [
        priors.half_cauchy(0.5, per="layer", centred=True),
        priors.relevance(2.0),
        priors.horseshoe(0.3, slab=1.0),
        priors.ordered(2.0),
        priors.unit_norm(3.0),
        priors.givens(0.5),
        priors.group_lasso(2.0),
        priors.point(),
        priors.point(priors.laplace(0.1)),
        priors.point(priors.few(2.0, strength=10.0)),
    ],
    ids=lambda prior: prior.to_config()["name"],
)
def test_priors_survive_json_alone_and_by_path(prior):
    assert priors.from_config(json.loads(json.dumps(prior.to_config()))) == prior
    by_path = priors.by_path({"head.*": prior})
    assert priors.from_config(json.loads(json.dumps(by_path.to_config()))) == by_path


def scale_of(prior, path):
    distribution = prior(Parameter(path, (3,)))
    return np.sqrt(np.unique(np.asarray(distribution.variance))).item()


def test_by_path_the_first_pattern_that_matches_decides():
    prior = priors.by_path(
        {"head.bias": priors.normal(2.0), "*.bias": priors.normal(3.0), "head.*": priors.normal(4.0)},
        default=priors.normal(5.0),
    )
    scales = [scale_of(prior, path) for path in ("head.bias", "hidden.0.bias", "head.kernel", "hidden.0.kernel")]
    assert scales == [2.0, 3.0, 4.0, 5.0]
    again = priors.from_config(json.loads(json.dumps(prior.to_config())))
    assert again == prior


def test_a_dict_is_a_prior_by_path_with_a_standard_normal_elsewhere():
    prior = priors.as_prior({"*.bias": dist.Normal(0.0, 7.0)})
    assert [scale_of(prior, path) for path in ("head.bias", "head.kernel")] == [7.0, 1.0]


def test_a_pattern_that_matches_nothing_is_refused_with_the_nearest_path():
    prior = priors.as_prior({"hidden.0.kernl": priors.normal()})
    with pytest.raises(ValueError, match=r"'hidden.0.kernl' matches no parameter; did you mean 'hidden.0.kernel'"):
        prior.check(["head.bias", "hidden.0.kernel"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: priors.normal(0.0), "scale must be a positive number, got 0.0"),
        (lambda: priors.laplace(float("nan")), "scale must be a positive number"),
        (lambda: priors.fan_in(1.0, bias_scale=-1.0), "bias_scale must be a positive number, got -1.0"),
        (lambda: priors.learned(-1.0), "scale must be a positive number, got -1.0"),
        (lambda: priors.scale_mixture(weight=1.0), "weight must be between 0 and 1, got 1.0"),
        (lambda: priors.as_prior(3.0), "3.0 is not a prior; pass one of credo.priors"),
        (lambda: priors.as_prior(dist.Normal(jnp.zeros(4), 1.0))(KERNEL), r"shape \(4,\), but the parameter"),
        (lambda: priors.from_config({"name": "norml"}), "prior must be one of .*, got 'norml'; did you mean 'normal'"),
    ],
)
def test_bad_priors_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_only_numpyros_own_distributions_are_made_from_a_description():
    for name in ("biject_to", "os", "no_such"):
        with pytest.raises(ValueError, match="not one of NumPyro's distributions"):
            priors.distribution_from_config({"distribution": name, "arguments": {}})


def test_a_distribution_that_holds_code_says_that_it_cannot_be_rebuilt():
    config = priors.distribution_to_config(
        dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.transforms.ExpTransform())
    )
    with pytest.raises(ValueError, match="TransformedDistribution cannot be rebuilt"):
        priors.distribution_from_config(json.loads(json.dumps(config)))
