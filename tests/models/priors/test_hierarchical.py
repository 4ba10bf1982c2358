"""Scales that are drawn: marginal laws by quadrature, what shares a scale, and inference with them."""

import jax
import numpy as np
import pytest
from numpyro import handlers
from scipy import stats

import credo
from credo import random
from credo.models import priors
from credo.models.priors import Parameter
from tests.statistical.moments import sigmas

BOUNDS = np.array([0.02, 0.2, 1.0, 5.0])
# Midpoints of equal shares of a half-Cauchy variable, tan(πu/2): 1/1000 of the mass each.
SHARES = np.tan(np.pi / 2 * (np.arange(1000) + 0.5) / 1000)


def within(scales):
    """P(|w| < bound) of N(0, scale²), averaged over the scales, for each bound."""
    return np.array([np.mean(2 * stats.norm.cdf(bound / scales) - 1) for bound in BOUNDS])


def horseshoe_scales(tau, slab):
    product = tau * SHARES[:, None] * SHARES
    return product * slab / np.sqrt(slab**2 + product**2)


EXACT = {
    "half_cauchy": (lambda centred: priors.half_cauchy(0.5, centred=centred), within(0.5 * SHARES)),
    "horseshoe": (lambda centred: priors.horseshoe(0.5, slab=1.5, centred=centred), within(horseshoe_scales(0.5, 1.5))),
}


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("name", EXACT)
def test_the_marginal_law_is_exact(name, centred, seed):
    make, expected = EXACT[name]

    def one(key):
        with handlers.seed(rng_seed=key):
            return priors.draw(make(centred), Parameter("w", (1,)), {})

    num = 40_000
    draws = np.abs(jax.jit(jax.vmap(one))(jax.random.split(random.key(seed), num)))
    share = np.mean(draws < BOUNDS, axis=0)
    error = np.sqrt(expected * (1 - expected) / num)
    # The midpoints leave an error of less than a share.
    assert np.all(np.abs(share - expected) < sigmas(len(BOUNDS)) * error + 1e-3)


ARRAYS = ["hidden.0.kernel.scale", "hidden.0.bias.scale", "head.kernel.scale", "head.bias.scale"]


def bound(prior, num_inputs=3):
    data = np.zeros((5, num_inputs)), np.zeros(5)
    return credo.models.regression(credo.networks.MLP([4], 1), prior=prior, noise=0.1).bind(data)


@pytest.mark.parametrize(
    ("per", "scales"),
    [
        ("network", {"prior.scale": ()}),
        ("layer", {"hidden.0.scale": (), "head.scale": ()}),
        ("array", dict.fromkeys(ARRAYS, ())),
        ("input", dict(zip(ARRAYS, [(3, 1), (), (4, 1), ()], strict=True))),
        ("weight", dict(zip(ARRAYS, [(3, 4), (4,), (4, 1), (1,)], strict=True))),
    ],
)
@pytest.mark.parametrize("centred", [True, False])
def test_what_shares_a_scale(per, scales, centred):
    template = bound(priors.half_cauchy(per=per, centred=centred)).template
    assert {name: leaf.shape for name, leaf in template.items() if name.endswith(".scale")} == scales
    weights = {name for name in template if not name.endswith(".scale")}
    paths = {"hidden.0.kernel", "hidden.0.bias", "head.kernel", "head.bias"}
    assert weights == (paths if centred else {f"{path}.z" for path in paths})


def test_two_priors_cannot_share_a_scale():
    prior = {"hidden.*": priors.half_cauchy(1.0, per="network"), "*": priors.half_cauchy(2.0, per="network")}
    with pytest.raises(ValueError, match=r"'prior.scale' is shared by weights with two priors, .*scale=2.0.*scale=1.0"):
        bound(prior)
    with pytest.raises(ValueError, match="both a `param` and a `sample` site"):
        bound({"hidden.*": priors.learned(per="network"), "*": priors.half_cauchy(per="network")})


@pytest.mark.parametrize("prior", [priors.half_cauchy(0.5, per="layer"), priors.horseshoe(0.1)])
def test_nuts_runs_and_the_posterior_survives_the_disk(prior, tmp_path):
    x = np.linspace(-1, 1, 15, dtype=np.float32)[:, None]
    model = credo.models.regression(credo.networks.MLP([3], 1), prior=prior, noise=0.2)
    method = credo.NUTS(num_samples=20, num_warmup=40, num_chains=1, max_depth=6)
    posterior = credo.fit(model, (x, np.sin(3 * x[:, 0])), method)
    posterior.save(tmp_path / "run")
    expected = posterior.predict(x).mean
    assert np.all(np.isfinite(expected))
    np.testing.assert_array_equal(credo.load(tmp_path / "run").predict(x).mean, expected)


def test_relevance_switches_off_inputs_that_do_not_matter(seed):
    """Two of five inputs matter, for three targets: each input has one scale for its three weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 5)).astype(np.float32)
    y = (x[:, :2] @ [[1.0, -1.0, 0.5], [-0.5, 1.0, 1.0]] + 0.3 * rng.normal(size=(80, 3))).astype(np.float32)
    prior = {"head.kernel": priors.relevance(0.3)}
    model = credo.models.regression(credo.networks.MLP([], 3), prior=prior, noise=0.3)
    posterior = credo.fit(model, (x, y), credo.NUTS(num_samples=200, num_warmup=200, num_chains=2), seed=seed)
    scale = np.exp(np.median(np.asarray(posterior.theta["head.kernel.scale"]), axis=(0, 1)))[:, 0]
    assert scale[:2].min() > 3 * scale[2:].max(), scale


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: priors.half_cauchy(0.0), "scale must be a positive number, got 0.0"),
        (lambda: priors.half_cauchy(per="unit"), "per must be one of .*, got 'unit'"),
        (lambda: priors.half_cauchy(centred="no"), "centred must be True or False, got 'no'"),
        (lambda: priors.horseshoe(slab=-2.0), "slab must be a positive number, got -2.0"),
        (lambda: priors.relevance(float("inf")), "scale must be a positive number, got inf"),
        (lambda: priors.horseshoe()(Parameter("w", (3,))), "horseshoe makes 'w' from other sites"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
