"""Every noise model against scipy; the network's values and the user's network; refusals."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from flax import nnx
from scipy import stats

from credo import random
from credo.data import Data
from credo.models import from_config, likelihoods, priors, regression
from credo.networks import MLP, functional
from credo.typing import Batch

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 2)).astype(np.float32)
Y = RNG.normal(size=(7, 4)).astype(np.float32)
NETS = {out: MLP(features=[3], out=out) for out in (1, 2, 4)}
COVARIANCE = np.array([[0.5, 0.2], [0.2, 0.3]])


def bound(noise, num_targets, outputs=None, **options):
    """A model, its data, some theta, what the network says there, and the constrained theta."""
    net = NETS[outputs or num_targets]
    y = Y[:, 0] if num_targets == 1 else Y[:, :num_targets]
    model = regression(net, noise=noise, **options).bind((X, y))
    rng = np.random.default_rng(5)
    theta = {name: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32) for name, leaf in model.template.items()}
    network = functional(net, jnp.asarray(X))
    said = np.asarray(network.apply({name: theta[name] for name in network.params}, jnp.asarray(X)))
    return model, y, theta, said, jax.jit(model.constrain)(theta)


def softplus(value):
    return 1e-3 + np.log1p(np.exp(value))


def multivariate(y, said, covariance):
    return sum(stats.multivariate_normal(mean, covariance).logpdf(row) for mean, row in zip(said, y, strict=True))


def full(y, said, values):
    root = np.asarray(values["noise"])[:, None] * np.asarray(values["noise_correlation"])
    return multivariate(y, said, root @ root.T)


# noise, targets, network outputs, log likelihood from (y, what the network says, constrained theta)
CASES = {
    "fixed": (0.3, 1, 1, lambda y, f, v: stats.norm.logpdf(y, f[:, 0], 0.3).sum()),
    "fixed, many outputs": (0.3, 2, 2, lambda y, f, v: stats.norm.logpdf(y, f, 0.3).sum()),
    "fixed per output": ([0.3, 2.0], 2, 2, lambda y, f, v: stats.norm.logpdf(y, f, [0.3, 2.0]).sum()),
    "fixed covariance": (COVARIANCE, 2, 2, lambda y, f, v: multivariate(y, f, COVARIANCE)),
    "fixed 1 × 1 covariance": ([[0.25]], 1, 1, lambda y, f, v: stats.norm.logpdf(y, f[:, 0], 0.5).sum()),
    "learned": (None, 1, 1, lambda y, f, v: stats.norm.logpdf(y, f[:, 0], v["noise"]).sum()),
    "learned per output": ("learned", 2, 2, lambda y, f, v: stats.norm.logpdf(y, f, v["noise"]).sum()),
    "learned, other prior": (
        dist.TruncatedNormal(0.5, 1.0, low=0.0), 1, 1, lambda y, f, v: stats.norm.logpdf(y, f[:, 0], v["noise"]).sum(),
    ),
    "heteroscedastic": (
        "heteroscedastic", 1, 2, lambda y, f, v: stats.norm.logpdf(y, f[:, 0], softplus(f[:, 1])).sum(),
    ),
    "heteroscedastic, many outputs": (
        "heteroscedastic", 2, 4, lambda y, f, v: stats.norm.logpdf(y, f[:, :2], softplus(f[:, 2:])).sum(),
    ),
    "full": ("full", 2, 2, full),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_likelihood_is_scipys_and_the_model_survives_json(case):
    noise, num_targets, outputs, log_likelihood = CASES[case]
    model, y, theta, said, values = bound(noise, num_targets, outputs)
    batch = Batch(jnp.asarray(X), jnp.asarray(y), 7)
    log_prior, found = jax.jit(model.log_parts)(theta, batch)
    np.testing.assert_allclose(found, log_likelihood(y, said, values), rtol=2e-4)
    again = from_config(json.loads(json.dumps(model.config)), NETS[outputs]).bind((X, y))
    np.testing.assert_allclose(jax.jit(again.log_joint)(theta, batch), log_prior + found, rtol=1e-5)


def test_log_prior_counts_every_weight_and_the_jacobian_of_the_positive_noise():
    model, _, theta, _, values = bound(dist.Gamma(2.0, 3.0), 1, prior={"*.bias": priors.laplace(2.0)})
    weights = {name: np.asarray(leaf) for name, leaf in theta.items() if name != "noise"}
    expected = sum(
        (stats.laplace(scale=2.0) if name.endswith("bias") else stats.norm).logpdf(leaf).sum()
        for name, leaf in weights.items()
    )
    noise = float(values["noise"])
    # noise = exp(u): the density of u is that of the noise times exp(u).
    expected += stats.gamma.logpdf(noise, 2.0, scale=1 / 3) + np.log(noise)
    np.testing.assert_allclose(jax.jit(model.log_prior)(theta), expected, rtol=1e-5)


def test_fan_in_prior_reads_the_networks_widths():
    text = str(regression(MLP(features=[4], out=1), prior=priors.fan_in()).bind((X, Y[:, 0])).describe())
    scales = {line.split()[0]: line for line in text.splitlines()}
    assert "scale=0.5)" in scales["head.kernel"]
    assert "scale=0.7071)" in scales["hidden.0.kernel"]
    assert "scale=1)" in scales["head.bias"]


def test_the_start_is_the_networks_own_values():
    net = NETS[1]
    own = functional(net, jnp.asarray(X)).params
    theta = jax.jit(regression(net).bind((X, Y[:, 0])).initial_theta)(random.key(0))
    assert set(theta) == {*own, "noise"}
    for name, value in own.items():
        np.testing.assert_array_equal(theta[name], value)


def test_the_start_respects_a_constrained_prior_of_a_weight():
    def apply(params, x):
        return params["gain"] * (x @ params["slope"])

    net = (apply, {"gain": jnp.array([3.0]), "slope": jnp.array([[1.0], [-1.0]])})
    model = regression(net, prior=dist.HalfNormal(1.0), noise=0.1).bind((X, Y[:, 0]))
    values = model.constrain(jax.jit(model.initial_theta)(random.key(0)))
    np.testing.assert_allclose(values["gain"], 3.0, rtol=1e-6)
    # A negative slope has no density under a half-normal: a draw from the prior stands in.
    assert np.all(np.asarray(values["slope"]) > 0)


def test_the_users_network_is_left_as_it_was():
    net = MLP(features=[3], out=1, inputs=2)
    before = jax.tree.map(lambda leaf: np.array(leaf), nnx.state(net, nnx.Param))
    model = regression(net).bind((X, Y[:, 0]))
    batch = Batch(jnp.asarray(X), jnp.asarray(Y[:, 0]), 7)
    theta = jax.jit(model.initial_theta)(random.key(0))
    jax.jit(jax.grad(model.log_joint))(theta, batch)
    model.predictive(theta, batch.x)
    after = nnx.state(net, nnx.Param)
    jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(lambda leaf: np.array(leaf), after))


def test_integer_targets_are_numbers_for_a_regression():
    model = regression(NETS[1], noise=1.0).bind((X, np.arange(7)))
    batch = Data(X, np.arange(7)).batch()
    theta = functional(NETS[1], batch.x).params
    said = np.asarray(model.predictive(theta, batch.x).mean)
    expected = stats.norm.logpdf(np.arange(7), said).sum()
    np.testing.assert_allclose(jax.jit(model.log_likelihood)(theta, batch), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ("heteroskedastic", "noise must be one of learned, .*, got 'heteroskedastic'; did you mean 'heteroscedastic'"),
        (-0.1, "scales must be positive numbers, got -0.1"),
        ([[-0.1]], "scales must be positive numbers, got -0.1"),
        (float("nan"), "expected a positive number"),
        ([0.1, 0.0], "scales must be positive numbers"),
        ([[1.0, 2.0], [2.0, 1.0]], "not positive definite"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric square matrix"),
        (dist.Normal(0.0, 1.0), "scalar distribution on positive numbers, got Normal"),
        (dist.HalfNormal(jnp.ones(2)), r"scalar distribution on positive numbers.*\(2,\)"),
    ],
)
def test_bad_noise_is_refused(noise, message):
    with pytest.raises(ValueError, match=message):
        regression(NETS[1], noise=noise)


@pytest.mark.parametrize(
    ("outputs", "noise", "num_targets", "message"),
    [
        (2, 0.1, 1, r"gives 2 outputs per row, but 1 target\(s\) with Fixed noise need 1"),
        (1, "heteroscedastic", 1, r"gives 1 outputs.*Heteroscedastic noise need 2; set the network's output size to 2"),
        (4, 0.1, 2, r"gives 4 outputs per row, but 2 target\(s\)"),
        (1, [0.1, 0.2], 1, r"it is for 2 target\(s\), but y has 1"),
        (4, COVARIANCE, 4, r"it is for 2 target\(s\), but y has 4"),
        (1, "full", 1, "'full' needs at least two targets"),
    ],
)
def test_a_network_or_noise_of_another_size_is_refused(outputs, noise, num_targets, message):
    with pytest.raises(ValueError, match=message):
        regression(NETS[outputs], noise=noise).bind((X, Y[:, 0] if num_targets == 1 else Y[:, :num_targets]))


def test_other_refusals():
    with pytest.raises(ValueError, match=r"'\*\.kernl' matches no parameter.*the parameters are head.bias"):
        regression(NETS[1], prior={"*.kernl": priors.normal()}).bind((X, Y[:, 0]))
    with pytest.raises(ValueError, match="a parameter named 'noise', which is a site of the model; rename it"):
        regression((lambda p, x: x @ p["noise"], {"noise": jnp.ones((2, 1))})).bind((X, Y[:, 0]))
    with pytest.raises(ValueError, match=r"to \(7, 1, 1\); expected \(7, number of outputs\)"):
        regression((lambda p, x: (x @ p["w"])[..., None], {"w": jnp.ones((2, 1))})).bind((X, Y[:, 0]))
    with pytest.raises(ValueError, match=r"noise must be one of .*, got 'fll'; did you mean 'full'"):
        likelihoods.from_config({"name": "fll"})
    with pytest.raises(ValueError, match=r"model must be one of .*, got 'regresion'; did you mean 'regression'"):
        from_config({"model": "regresion"}, NETS[1])
