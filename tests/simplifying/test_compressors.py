"""Each compressor alone: known answers, and storage."""

from pathlib import Path

import jax
import numpy as np
import pytest

import credo
from credo import random
from credo.covariance.diagonal import Diagonal
from credo.posterior import Generator, Quantised
from credo.simplifying.compressors import COMPRESSORS
from credo.simplifying.coreset import Features, best_weights, coreset
from credo.simplifying.generator import generator
from credo.simplifying.mixtures import moments
from credo.simplifying.stein import herded, stein_kernel, stein_thinned
from tests.simplifying.cases import DATA, INPUTS, UNSEEN, draws


@pytest.fixture(scope="module")
def full() -> credo.Draws:
    return draws()


# --- fewer bits


@pytest.mark.parametrize(("kind", "share"), [("int8", 1 / 4), ("bf16", 1 / 2)])
def test_quantised_draws(full, kind, share, tmp_path: Path):
    small = Quantised.of(full, kind)
    assert small.num_bytes <= 1.02 * share * full.num_bytes + full.num_bytes / full.num_draws
    theta, weights = small.weighted_draws(0)
    for name, leaf in full.theta.items():
        off = np.abs(theta[name] - leaf[0])
        # Half a step of a whole number; half of the last of eight bits, and the rounding of the sum.
        largest = small.scale[name] / 2 if kind == "int8" else np.abs(leaf[0] - small.centre[name]) * 2.0**-8
        assert np.all(off <= largest * (1 + 1e-4) + 1e-6)
    own, exact = small.predict(UNSEEN), small.to_draws().predict(UNSEEN)
    np.testing.assert_allclose(own.mean, exact.mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(own.std, exact.std, rtol=1e-4)
    small.save(tmp_path / kind)
    again = credo.load(tmp_path / kind)
    assert all(again.codes[name].dtype == small.codes[name].dtype for name in small.codes)
    np.testing.assert_array_equal(again.predict(UNSEEN).mean, own.mean)
    assert small.predict(UNSEEN, num_draws=7).num_draws == 7
    assert small.sample(random.key(0), 5)["head.bias"].shape == (5, 1)
    assert weights.sum() == pytest.approx(1)


def test_coarser_codes_lose_more(full):
    """A negative control of the step: with 15 in the place of 255 levels, functions are far off."""
    small = Quantised.of(full, "int8")
    coarse = {
        name: (np.round(codes / 16.0) * 16).clip(-112, 112).astype(np.int8) for name, codes in small.codes.items()
    }
    worse = Quantised(full.model, coarse, small.centre, small.scale, full.provenance, scaling=full.scaling)
    exact = full.predict(UNSEEN).functions
    errors = [np.std(one.predict(UNSEEN).functions - exact) for one in (small, worse)]
    assert errors[1] > 5 * errors[0]


# --- coresets and Stein thinning


def test_weights_solve_the_quadratic_programme(seed):
    root = np.random.default_rng(seed).standard_normal((12, 30))
    weights = best_weights(root @ root.T)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    along = root @ root.T @ weights
    # Karush-Kuhn-Tucker: no draw has less of a slope than those that are used.
    assert along.min() == pytest.approx(weights @ along, rel=1e-3)


def test_more_draws_match_better(seed):
    features = Features(np.random.default_rng(seed).standard_normal((200, 60)), np.ones((200, 1)))
    left = []
    for num in (5, 20, 60):
        rows, weights = coreset(features, num)
        assert len(set(rows)) == len(rows) <= num
        left.append(float(np.sum((weights @ features.centred[rows]) ** 2)))
    assert left[0] > 2 * left[1] > 4 * left[2]


def test_the_stein_kernel_averages_to_nothing_under_its_target(seed):
    """E k(a, ·) = 0 for every a, by Stein's identity; of draws from a wider normal it is not."""
    rng = np.random.default_rng(seed)
    for scale, is_target in ((1.0, True), (1.5, False)):
        theta = scale * rng.standard_normal((2000, 2))
        kernel = stein_kernel(theta, -theta)
        z = kernel.mean(axis=1) / (kernel.std(axis=1) / np.sqrt(len(theta)))
        assert (np.mean(np.abs(z) < 5) > 0.99) == is_target


def test_stein_thinning_leaves_out_draws_that_are_not_of_the_posterior(seed):
    """A linear model: its posterior is normal, and a fifth of the draws are from far away."""
    data = credo.datasets.linear(60, inputs=2, noise=0.5, seed=seed)
    model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.5).bind(data)
    x = np.column_stack([data.x, np.ones(data.size)])
    precision = x.T @ x / 0.25 + np.eye(3)
    mean = np.linalg.solve(precision, x.T @ data.y / 0.25)
    noise = np.random.default_rng(seed).standard_normal((200, 3))
    exact = mean + noise @ np.linalg.cholesky(np.linalg.inv(precision)).T
    exact[:40] += 3.0
    theta = {"head.kernel": exact[:, :2, None].astype(np.float32), "head.bias": exact[:, 2:].astype(np.float32)}
    rows, weights = stein_thinned(model, theta, data.batch(), 20)
    assert rows.min() >= 40
    assert weights.sum() == pytest.approx(1)


def test_herding_takes_the_least_pair_by_pair():
    kernel = np.array([[2.0, -1.5, 0.0], [-1.5, 2.1, 0.0], [0.0, 0.0, 2.2]])
    np.testing.assert_array_equal(herded(kernel, 2), [0, 1])


def test_stein_by_name(full):
    small = credo.compress(full, to="10%", by="stein+int8", data=DATA)
    assert isinstance(small, Quantised)
    assert small.num_bytes <= 0.1 * full.num_bytes


# --- models of the weights


def test_moments_of_draws(seed):
    rng = np.random.default_rng(seed)
    theta = {"a": rng.standard_normal((400, 3, 2)) * 2 + 1, "b": rng.standard_normal((400,))}
    theta["a"][:, 0, 0] = 5 * theta["b"]
    mean, root = moments(theta, np.full(400, 1 / 400), 1)
    np.testing.assert_allclose(mean["a"], theta["a"].mean(axis=0), rtol=1e-4, atol=1e-5)
    for name, variance in root.variance().items():
        np.testing.assert_allclose(variance, theta[name].var(axis=0), rtol=0.05)
    drawn = jax.vmap(root.draw)(jax.random.split(random.key(seed), 2000))
    assert np.corrcoef(drawn["a"][:, 0, 0], drawn["b"])[0, 1] > 0.8  # which a diagonal has not
    assert isinstance(moments(theta, np.full(400, 1 / 400), 0)[1], Diagonal)


@pytest.mark.full
def test_a_mixture_by_name(full, tmp_path: Path):
    small = credo.compress(full, to="5%", inputs=INPUTS, by="mixture")
    assert small.num_bytes <= 0.05 * full.num_bytes
    small.save(tmp_path / "mixture")
    again = credo.load(tmp_path / "mixture")
    assert again.diagnostics == small.diagnostics
    np.testing.assert_array_equal(again.predict(UNSEEN).mean, small.predict(UNSEEN).mean)


def test_a_generator_finds_the_spread_of_the_weights(full, tmp_path: Path):
    """Of 20 numbers whose means are 2 more than those of the prior."""
    shifted = {name: leaf + 2 for name, leaf in full.theta.items()}
    trained = generator(
        credo.Draws(full.model, shifted, full.provenance, scaling=full.scaling), 4, seed=0, num_steps=200
    )
    drawn = trained.sample(random.key(1), 2000)
    for name, leaf in shifted.items():
        sd = leaf.std()
        assert abs(drawn[name].mean() - leaf.mean()) < 0.5 * sd
        assert 0.5 * sd < drawn[name].std() < 1.5 * sd
    trained.save(tmp_path / "generator")
    again = credo.load(tmp_path / "generator")
    assert isinstance(again, Generator)
    np.testing.assert_array_equal(again.predict(UNSEEN).mean, trained.predict(UNSEEN).mean)
    assert again.diagnostics.verdict


def test_a_generator_that_does_not_fit_says_what_it_takes(full):
    with pytest.raises(ValueError, match="a generator with one unit takes"):
        credo.compress(full, to=8 * 20, inputs=INPUTS, by="generator")


def test_all_compressors_are_told_of():
    for name in COMPRESSORS:
        assert f'"{name}"' in (credo.compress.__doc__ or "")
