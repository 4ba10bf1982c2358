"""Acquisitions against closed forms, and joint ones against brute force over all answers."""

import itertools
import subprocess
import sys
from functools import partial

import numpy as np
import numpyro.distributions as dist
import pytest

from credo.data import Scaling
from credo.learning import acquisitions, batch_bald, functions
from credo.learning.acquisitions import as_acquisition
from credo.learning.batch_bald import BatchBALD
from credo.learning.epig import EPIG, epig
from credo.predictive import ClassPredictive, RegressionPredictive

DRAWS, ROWS, CLASSES = 4, 6, 3
RNG = np.random.default_rng(5)
PROBS = RNG.dirichlet(np.full(CLASSES, 0.5), (DRAWS, ROWS))
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
X = np.arange(float(ROWS))[:, None]
ALL = np.full(ROWS, True)


def of_table(table, x):
    """What a draw says of row number x."""
    return table["rows"][x[:, 0].astype(int)]


def classes(theta, x):
    return dist.Categorical(probs=of_table(theta, x))


def numbers(noise, theta, x):
    """Means of each draw, with independent noise of one scale."""
    law = dist.Normal(of_table(theta, x), noise)
    return law.to_event(1) if theta["rows"].ndim > 1 else law


class Tabulated:
    """A posterior of a few draws, each a table of what it says of every row."""

    def __init__(self, table, weights=WEIGHTS, law=classes, kind=ClassPredictive):
        self.table, self.weights, self.law, self.kind = table, weights, law, kind

    def predict(self, x, *, num_draws=None):
        draws = {"rows": self.table.astype(np.float32)}
        return self.kind(self.law, draws, np.asarray(x, np.float32), weights=self.weights, scaling=Scaling())


def regression(table, noise=0.5):
    weights = np.full(len(table), 1 / len(table))
    return Tabulated(table, weights, partial(numbers, noise), RegressionPredictive)


def entropy_of(probs):
    probs = probs[probs > 0]
    return -np.sum(probs * np.log(probs))


def information(rows):
    """I[y_rows; theta] by enumeration of all answers."""
    joint = [
        np.sum(WEIGHTS * np.prod([PROBS[:, row, label] for row, label in zip(rows, labels, strict=True)], axis=0))
        for labels in itertools.product(range(CLASSES), repeat=len(rows))
    ]
    noise = sum(weight * entropy_of(PROBS[draw, row]) for draw, weight in enumerate(WEIGHTS) for row in rows)
    return entropy_of(np.array(joint)) - noise


def choose(acquisition, posterior, num, *, x=X, allowed=ALL, seed=0):
    return acquisition.choose(posterior, x, num, allowed=allowed, rng=np.random.default_rng(seed))


# -- scores ---------------------------------------------------------------------------------------------------------


def test_scores_of_classes_by_hand():
    predictive, mean = Tabulated(PROBS).predict(X), np.einsum("s,snc->nc", WEIGHTS, PROBS)
    top = np.sort(mean, axis=1)
    np.testing.assert_allclose(acquisitions.entropy(predictive), [entropy_of(row) for row in mean], rtol=1e-5)
    np.testing.assert_allclose(acquisitions.variation_ratios(predictive), 1 - top[:, -1], rtol=1e-5)
    np.testing.assert_allclose(acquisitions.margin(predictive), top[:, -2] - top[:, -1], rtol=1e-4)
    np.testing.assert_allclose(acquisitions.bald(predictive), [information([row]) for row in range(ROWS)], rtol=1e-4)
    assert np.all(acquisitions.bald(predictive) <= acquisitions.entropy(predictive))
    spread = np.einsum("s,snc->n", WEIGHTS, (PROBS - mean) ** 2) / (1 - np.sum(WEIGHTS**2))
    np.testing.assert_allclose(acquisitions.variance(predictive), spread, rtol=1e-4)


def test_scores_of_several_numbers_by_hand():
    table = RNG.normal(size=(50, ROWS, 2))
    predictive = regression(table).predict(X)
    epistemic = np.stack([np.cov(table[:, row].T) for row in range(ROWS)])
    whole = epistemic + 0.25 * np.eye(2)
    np.testing.assert_allclose(acquisitions.variance(predictive), np.trace(whole, axis1=1, axis2=2), rtol=1e-4)
    np.testing.assert_allclose(acquisitions.largest_eigenvalue(predictive), np.linalg.eigvalsh(whole)[:, -1], rtol=1e-4)
    np.testing.assert_allclose(acquisitions.log_det(predictive), np.linalg.slogdet(whole)[1], rtol=1e-3, atol=1e-4)
    gain = 0.5 * np.linalg.slogdet(np.eye(2) + epistemic / 0.25)[1]
    np.testing.assert_allclose(acquisitions.bald(predictive), gain, rtol=1e-3)


def test_a_kind_of_target_that_a_score_does_not_suit_is_refused():
    with pytest.raises(ValueError, match="'margin' is for classes"):
        acquisitions.margin(regression(RNG.normal(size=(5, ROWS))).predict(X))
    with pytest.raises(ValueError, match="'log_det' is for numbers"):
        acquisitions.log_det(Tabulated(PROBS).predict(X))


# -- choosing -------------------------------------------------------------------------------------------------------


def test_rows_of_the_highest_scores_that_are_allowed():
    allowed = np.array([True, True, False, True, True, True])
    chosen = choose(as_acquisition(lambda predictive: predictive.x[:, 0] % 4), Tabulated(PROBS), 2, allowed=allowed)
    assert chosen.rows.tolist() == [3, 1] or chosen.rows.tolist() == [3, 5]


def test_ties_are_broken_by_the_seed_and_a_small_pool_gives_what_it_has():
    equal = as_acquisition(lambda predictive: np.zeros(len(predictive)))
    orders = [tuple(choose(equal, Tabulated(PROBS), 10, seed=seed).rows.tolist()) for seed in (0, 0, 1, 2)]
    assert orders[0] == orders[1]
    assert len(set(orders)) > 1
    assert all(sorted(order) == list(range(ROWS)) for order in orders)


@pytest.mark.parametrize("name", ["bald", "batch_bald", "epig", "random"])
def test_no_batch_asks_the_same_thing_twice(name):
    x = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])[:, None]
    chosen = choose(as_acquisition(name), Tabulated(PROBS), 6, x=x)
    assert sorted(x[chosen.rows, 0].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("scores", [np.zeros(ROWS - 1), np.full(ROWS, np.nan), np.full(ROWS, "a")])
def test_scores_that_are_none_are_refused(scores):
    with pytest.raises(ValueError, match=r"acquisition '<lambda>' gave .*a finite number for each of the 6 rows"):
        choose(as_acquisition(lambda predictive: scores), Tabulated(PROBS), 2)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"acquisition is 'blad'.*bald"):
        as_acquisition("blad")


# -- batches --------------------------------------------------------------------------------------------------------


def greedy(num):
    rows = []
    for _ in range(num):
        gains = {row: information([*rows, row]) for row in range(ROWS) if row not in rows}
        rows.append(max(gains, key=gains.get))
    return rows


def test_batch_bald_is_the_greedy_choice_by_enumeration():
    assert choose(BatchBALD(), Tabulated(PROBS), 4).rows.tolist() == greedy(4)


def test_batch_of_one_is_bald():
    one = choose(BatchBALD(), Tabulated(PROBS), 1)
    assert one.rows[0] == np.argmax(one.scores)
    np.testing.assert_allclose(one.scores, [information([row]) for row in range(ROWS)], rtol=1e-4)


def test_gains_of_exact_and_of_sampled_answers(seed):
    """Entropies lie within [0, log 3]: the mean of 500 sampled ones has a standard error of at most log 3 / 2√500."""
    rng, rows = np.random.default_rng(seed), [0, 1, 2]
    probs = np.moveaxis(PROBS, 0, 1).astype(np.float32)
    expected = [information([*rows, row]) - information(rows) for row in range(ROWS)]
    for num in (27, 100):
        judge = batch_bald._Classes(probs, WEIGHTS, num, rng)
        given, shares = batch_bald.answers(probs[rows], WEIGHTS, num, rng)
        np.testing.assert_allclose(judge.gains(np.arange(ROWS), given, shares), expected, atol=1e-4)
    many = [*rows, *rows]
    given, shares = batch_bald.answers(probs[many], WEIGHTS, 500, rng)
    exact, exact_shares = batch_bald.answers(probs[many], WEIGHTS, 3**6, rng)
    sampled, known = (judge.gains(np.arange(ROWS), *pair) for pair in ((given, shares), (exact, exact_shares)))
    np.testing.assert_allclose(sampled, known, atol=5 * np.log(3) / 2 / np.sqrt(500))


def test_batches_of_numbers_by_conditioning_normals():
    """½ log det of the whole covariance over that of the noise, with row after row, by linear algebra."""
    table = RNG.normal(size=(40, ROWS, 2)) * np.linspace(1, 2, ROWS)[:, None]
    flat = np.moveaxis(table, 1, 0).reshape(ROWS, 40, 2)
    covariance = np.cov(np.moveaxis(flat, 1, 0).reshape(40, -1).T)

    def gain(rows):
        entries = [2 * row + output for row in rows for output in range(2)]
        return 0.5 * np.linalg.slogdet(np.eye(len(entries)) + covariance[np.ix_(entries, entries)] / 0.25)[1]

    rows = []
    for _ in range(4):
        rows.append(max((row for row in range(ROWS) if row not in rows), key=lambda row: gain([*rows, row])))
    assert choose(BatchBALD(), regression(table), 4).rows.tolist() == rows


def test_a_batch_of_numbers_avoids_near_copies():
    slope = RNG.normal(size=100)
    other = 0.5 * RNG.normal(size=100)
    table = np.stack([slope, 1.001 * slope, other, 0.1 * other, 0.1 * slope, 0.1 * slope], axis=1)
    assert set(choose(BatchBALD(), regression(table), 2).rows.tolist()) == {1, 2}


# -- EPIG -----------------------------------------------------------------------------------------------------------


def test_epig_of_classes_by_enumeration():
    target = [1, 4]
    predictive = Tabulated(PROBS)
    found = epig(predictive.predict(X), predictive.predict(X[target]))

    def mutual(row, other):
        joint = np.einsum("s,sc,sd->cd", WEIGHTS, PROBS[:, row], PROBS[:, other])
        return entropy_of(joint.sum(1)) + entropy_of(joint.sum(0)) - entropy_of(joint.ravel())

    expected = [np.mean([mutual(row, other) for other in target]) for row in range(ROWS)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_epig_of_numbers_is_that_of_normals():
    table = RNG.normal(size=(200, ROWS))
    predictive = regression(table)
    found = epig(predictive.predict(X), predictive.predict(X[:2]))
    covariance = np.cov(table.T) + 0.0
    noisy = np.diag(covariance) + 0.25
    square = covariance[:, :2] ** 2 / (noisy[:, None] * noisy[:2])
    np.testing.assert_allclose(found, np.mean(-0.5 * np.log1p(-square), axis=1), rtol=1e-4)


def test_epig_asks_about_what_matters_to_its_target():
    """Two functions that vary apart from each other: only the first matters where the model is for."""
    here, there = RNG.normal(size=(2, 50))
    table = np.stack([here, here, 3 * there, 3 * there, 3 * there, 3 * there], axis=1)
    asked = choose(EPIG(target=X[:1]), regression(table), 1).rows
    assert asked.tolist() in ([0], [1])
    assert choose(as_acquisition("bald"), regression(table), 1).rows[0] >= 2


def test_blocks_do_not_change_scores(monkeypatch):
    whole = choose(EPIG(target=X), Tabulated(PROBS), 2).scores
    monkeypatch.setattr(functions, "BYTES_PER_BLOCK", 4 * DRAWS * CLASSES * 4)
    np.testing.assert_allclose(choose(EPIG(target=X), Tabulated(PROBS), 2).scores, whole, rtol=1e-6)


def test_they_can_be_had_from_the_package_in_a_new_process():
    lines = "import credo; print(credo.acquisitions.BatchBALD().num_answers)"
    found = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "1000"
