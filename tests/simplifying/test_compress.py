"""`credo.compress`: what it keeps, what it says, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

import credo
from credo.posterior import Quantised
from credo.simplifying.budget import as_bytes
from credo.simplifying.reference import Reference
from tests.simplifying.cases import DATA, INPUTS, UNSEEN, draws

SMALL = ("int8", "coreset", "coreset+int8")


@pytest.fixture(scope="module")
def full() -> credo.Draws:
    return draws()


@pytest.fixture(scope="module")
def small(full):
    return credo.compress(full, to="5%", inputs=INPUTS, by=SMALL)


# --- what it keeps


def test_the_best_of_those_that_fit_is_chosen(full, small):
    record = small.provenance.compression
    losses = {trial.by: trial.loss.total for trial in record.trials if trial.loss}
    assert record.by == min(losses, key=losses.get)
    assert {trial.by for trial in record.trials} == set(SMALL)
    assert "all draws take" in next(trial.why for trial in record.trials if trial.by == "int8")
    assert small.num_bytes <= 0.05 * full.num_bytes
    assert record.bytes_before == full.num_bytes
    assert record.bytes_after == small.num_bytes


def test_a_coreset_keeps_what_its_first_and_random_draws_lose(seed):
    """In one dimension 40 weights match all moments; 40 random draws are off by 1/√(2·40) = 11% in every sd."""
    full = draws(seed=seed)
    reference = Reference(full, UNSEEN, seed)
    kept = credo.compress(full, to=40 * 30 * 4, inputs=INPUTS, by="coreset", seed=seed)
    assert reference.loss(kept).is_small
    random_rows = np.random.default_rng(seed).permutation(full.num_draws)[: kept.num_draws]
    for rows in (np.arange(kept.num_draws), random_rows):
        control = full.chosen(rows, np.full(len(rows), 1 / len(rows)))
        assert control.num_bytes >= kept.num_bytes
        assert reference.loss(control).total > 4 * reference.loss(kept).total


def test_a_coreset_of_a_classifier(seed):
    data = credo.datasets.moons(80, seed=seed)
    full = draws(400, seed, net=credo.networks.MLP([5], out=2), data=data)
    grid = np.random.default_rng(seed).uniform(-2, 2, (300, 2))
    kept = credo.compress(full, to="10%", inputs=grid[:200], by="coreset", seed=seed)
    reference = Reference(full, grid[200:], seed)
    control = full.chosen(np.arange(kept.num_draws), np.full(kept.num_draws, 1 / kept.num_draws))
    assert reference.loss(control).total > 4 * reference.loss(kept).total


def test_the_loss_of_the_posterior_itself_is_nothing(full):
    itself = Reference(full, UNSEEN, 0).loss(full)
    assert itself.total == pytest.approx(0, abs=1e-9)
    assert itself.mean == pytest.approx(0, abs=1e-6)


def test_the_loss_is_the_divergence_between_two_normals():
    """Of one draw each, KL(N(m, s²) ‖ N(m + s/2, s²)) = 1/8 nats, and the mean is half an sd off."""
    one = draws(1)
    noise = float(one.predict(UNSEEN).std[0])
    theta = {**one.theta, "head.bias": one.theta["head.bias"] + np.float32(noise / 2)}
    moved = credo.Draws(one.model, theta, one.provenance, scaling=one.scaling)
    lost = Reference(one, UNSEEN, 0).loss(moved)
    # r − 1 − log r of 8 × 97 values of y has a standard deviation of about 0.25.
    assert lost.nats == pytest.approx(1 / 8, abs=4 * 0.25 / np.sqrt(8 * len(UNSEEN)))
    assert lost.mean == pytest.approx(0.5, rel=1e-3)


# --- what it says, and how it is used


def test_it_is_an_ordinary_posterior(full, small, tmp_path: Path):
    small.save(tmp_path / "small")
    again = credo.load(tmp_path / "small")
    assert again.provenance == small.provenance
    assert again.describe() == small.describe()
    np.testing.assert_array_equal(again.predict(UNSEEN).mean, small.predict(UNSEEN).mean)
    assert again.num_bytes == small.num_bytes
    assert np.isfinite(credo.evaluate(small, DATA)["lpd"].value)
    assert "full" in str(credo.compare({"small": small, "full": full}, DATA))


def test_what_was_saved_and_lost_is_told(small):
    text = small.describe()
    for words in ("kB →", "-fold) by coreset", "nats per row", "rows of the inputs, set aside", "int8: left out"):
        assert words in text
    assert small.diagnostics is small.provenance.compression
    assert "compressed" in repr(small)


def test_a_loss_that_shows_is_advised_on(full):
    poor = credo.compress(full, to=6 * 30 * 4, inputs=INPUTS, by="coreset")
    assert poor.diagnostics.verdict.startswith("Something was lost")


def test_without_inputs_those_that_the_posterior_keeps_are_used(full):
    small = credo.compress(full, to="5%", by="coreset")
    assert "since none were passed" in small.describe()


def test_draws_of_a_gaussian_can_be_compressed():
    gaussian = credo.fit(draws(2).model, DATA, credo.BayesByBackprop(num_steps=5), progress=False)
    with pytest.raises(ValueError, match="small already; pass num_draws"):
        credo.compress(gaussian, to="50%", inputs=INPUTS)
    with pytest.raises(ValueError, match="nothing fits into"):
        credo.compress(gaussian, to="50%", inputs=INPUTS, num_draws=100, by="coreset")


# --- what it refuses


@pytest.mark.parametrize("to", ["200%", 1.0e9, "3 GB", 10**9])
def test_what_would_be_no_smaller_is_refused_with_numbers(full, to):
    with pytest.raises(ValueError, match=r"the posterior takes 48 kB: that would be no compression"):
        credo.compress(full, to=to, inputs=INPUTS)


@pytest.mark.parametrize("to", ["small", "1 %%", "5 furlongs", 0, -1, float("nan"), None, True, "-3 kB"])
def test_sizes_of_no_meaning_are_refused(to):
    with pytest.raises(ValueError, match="to must be a share"):
        as_bytes(to, 10_000)


def test_other_mistakes_are_refused(full):
    with pytest.raises(ValueError, match="did you mean 'coreset'"):
        credo.compress(full, by="corset")
    with pytest.raises(ValueError, match="inputs has 3 rows"):
        credo.compress(full, inputs=INPUTS[:3])
    with pytest.raises(ValueError, match=r"nothing fits into to=100.*4 draws take"):
        credo.compress(full, to=100, inputs=INPUTS, by="coreset")
    with pytest.raises(ValueError, match=r"pass data="):
        credo.compress(full, to="5%", inputs=INPUTS, by="stein")
    with pytest.raises(ValueError, match="only draws can be compressed"):
        credo.compress(credo.Mixture((Quantised.of(full, "int8"),), full.provenance))  # type: ignore[arg-type]
