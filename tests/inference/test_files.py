"""Fits to rows in files: as good as from memory, the same bits after a stop, refused where all rows are needed."""

import sys
from pathlib import Path

import numpy as np
import pytest

import credo
from credo.data import shuffled
from credo.inference.engine import feed
from tests.kills import fit_through_kills, write_at_every_chunk

RNG = np.random.default_rng(1)
X = RNG.normal(size=(600, 2)).astype(np.float32)
Y = (X @ np.array([1.0, -0.5]) + 0.1 * RNG.normal(size=600)).astype(np.float32)
MODEL = credo.models.regression(credo.networks.MLP([4], out=1), noise=0.1)
ENSEMBLE = credo.DeepEnsemble(credo.MAP(num_steps=30, batch_size=50), members=3)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> credo.data.FileData:
    # Several blocks, windows and chunks.
    monkeypatch.setattr(shuffled, "BYTES_PER_BLOCK", 300)
    monkeypatch.setattr(credo.data.file_data, "BYTES_PER_BLOCK", 300)
    monkeypatch.setattr(credo.data.file_data, "BYTES_PER_WINDOW", 3000)
    monkeypatch.setattr(feed, "BYTES_AHEAD", 40_000)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    return credo.Data.open((tmp_path / "x.npy", tmp_path / "y.npy"))


@pytest.mark.parametrize(
    "method",
    [
        credo.SGLD(num_samples=5, num_warmup=10, thin=3, num_chains=2, batch_size=50),
        credo.BayesByBackprop(num_steps=30, batch_size=50),
        credo.SWAG(num_steps=40, num_warmup=20, collect_every=5, batch_size=50),
        ENSEMBLE,
    ],
    ids=lambda one: type(one).__name__,
)
def test_methods_of_minibatches_take_rows_in_files(
    files: credo.data.FileData, method: credo.inference.method.Method
) -> None:
    posterior = credo.fit(MODEL, files, method, progress=False)
    assert posterior.provenance.num_data == 600
    assert np.array_equal(posterior.scaling.x_mean, files.scaling.x_mean)
    again = credo.fit(MODEL, files, method, progress=False)
    assert np.array_equal(posterior.predict(X).mean, again.predict(X).mean)


def test_one_batch_of_all_rows_is_a_fit_from_memory(files: credo.data.FileData) -> None:
    # Then only the order of the sum differs.
    method = credo.MAP(num_steps=20, batch_size=600)
    found, held = (
        credo.fit(MODEL, data, method, progress=False) for data in (files, credo.Data(X, Y, standardise=True))
    )
    for name, leaf in held.theta.items():
        np.testing.assert_allclose(found.theta[name], leaf, rtol=1e-3, atol=1e-4)


def test_a_fit_that_is_killed_again_and_again_ends_with_the_same_bits(
    files: credo.data.FileData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = credo.SGLD(num_samples=20, num_warmup=10, thin=2, num_chains=2, batch_size=50)

    def fit(**options: object) -> credo.Posterior:
        return credo.fit(MODEL, files, method, seed=3, progress=False, **options)

    whole = fit()
    write_at_every_chunk(monkeypatch)
    found, num_kills = fit_through_kills(monkeypatch, tmp_path / "run", fit, every=3)
    assert num_kills > 2
    for name, leaf in whole.theta.items():
        assert np.array_equal(found.theta[name], leaf)


def test_other_rows_are_not_gone_on_with(files: credo.data.FileData, tmp_path: Path) -> None:
    method = credo.MAP(num_steps=5, batch_size=50)
    credo.fit(MODEL, files, method, checkpoint=tmp_path / "run", progress=False)
    np.save(tmp_path / "x.npy", X + 1)
    other = credo.Data.open((tmp_path / "x.npy", tmp_path / "y.npy"))
    with pytest.raises(ValueError, match="its data differ"):
        credo.fit(MODEL, other, method, checkpoint=tmp_path / "run", resume=True, progress=False)


def test_predictions_go_over_the_files_and_are_those_from_memory(files: credo.data.FileData) -> None:
    posterior = credo.fit(MODEL, files, ENSEMBLE, progress=False)
    streamed, held = posterior.predict(files), posterior.predict(X)
    assert np.array_equal(streamed.mean, held.mean)
    assert np.array_equal(streamed.std, held.std)
    assert np.array_equal(streamed.log_prob(Y), held.log_prob(Y))
    assert np.array_equal(streamed.interval(0.9), held.interval(0.9))
    with pytest.raises(ValueError, match="whose rows are in files"):
        streamed[[1, 2]]


def test_scores_go_over_the_files(files: credo.data.FileData, monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = credo.fit(MODEL, files, ENSEMBLE, progress=False)
    held = credo.evaluate(posterior, (X, Y), num_resamples=0)
    # In one part they are the same, and have the same standard errors.
    assert credo.evaluate(posterior, files, num_resamples=0)["rmse"].value == pytest.approx(held["rmse"].value)
    monkeypatch.setattr(sys.modules["credo.evaluation.evaluate"], "ROWS_PER_PART", 100)
    found = credo.evaluate(posterior, files)
    assert found.num_rows == 600
    for name in ("rmse", "mae", "lpd", "coverage_95"):  # means over rows
        assert found[name].value == pytest.approx(held[name].value, rel=1e-4), name
    errors = np.abs(posterior.predict(X).mean - Y)
    assert found["mae"].standard_error == pytest.approx(errors.std() / np.sqrt(600), rel=1.0)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (credo.NUTS(), "NUTS takes all rows in each step"),
        (credo.MAP(), "MAP takes all rows in each step"),
        (credo.Laplace(training=credo.MAP(batch_size=50)), "Laplace looks at all rows at once"),
        (credo.DeepEnsemble(credo.MAP(batch_size=50), bagging=True), "rows of its own"),
        (credo.SGNHT(batch_size=50), "with replacement"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_methods_that_need_all_rows_name_those_that_do_not(
    files: credo.data.FileData, method: credo.inference.method.Method, words: str
) -> None:
    with pytest.raises(ValueError, match=rf"{words}.* credo\.SGLD"):
        credo.fit(MODEL, files, method, progress=False)


def test_what_takes_rows_in_memory_says_how_to_get_some(files: credo.data.FileData) -> None:
    with pytest.raises(ValueError, match=r"data\.read\(0, 10_000\)"):
        credo.data.as_data(files)
    with pytest.raises(ValueError, match="looks at all rows before it starts"):
        credo.fit(credo.models.counts(credo.networks.MLP([4], out=1)), files, ENSEMBLE, progress=False)
    with pytest.raises(ValueError, match="share of rows in files"):
        credo.fit(MODEL, files, credo.MAP(num_steps=5, batch_size=50), validation=0.1, progress=False)


def test_auto_takes_a_method_of_minibatches(files: credo.data.FileData) -> None:
    choice = credo.choose(MODEL, files)
    assert choice.method.plan().batch_size
    assert "600 rows in files" in choice.why
