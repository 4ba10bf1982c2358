"""What an online learner hears of a stream before it learns it, and classes that come on the way."""

import numpy as np
import pytest

import credo
from credo.learning import judgement
from credo.learning.new_classes import with_new_classes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
SLOPES = np.array([1.0, -2.0])
VI = credo.BayesByBackprop(num_steps=150, initial_scale=0.1)


def linear():
    return credo.online(credo.models.regression(credo.networks.MLP([], out=1), noise=0.3), credo.ClosedForm())


def targets(x, seed, slopes=SLOPES):
    return x @ slopes + 0.3 * np.random.default_rng(seed).normal(size=len(x))


def classifier(outputs):
    return credo.models.classification(credo.networks.MLP([3], outputs))


def labels(num_classes):
    """Two classes by the sign of the first column, or three by both."""
    found = (X[:, 0] > 0).astype(np.int32)
    return found if num_classes == 2 else found + (X[:, 1] > 0).astype(np.int32)


@pytest.fixture(scope="module")
def binary():
    return credo.fit(classifier(1), (X, labels(2)), VI, progress=False)


def test_a_batch_is_judged_before_it_is_learned():
    learner = linear()
    learner.update((X, targets(X, 0)))
    assert learner.judgement.log_score is None
    assert learner.drift.num_rows == 0
    before, y = learner.posterior, targets(X, 1)
    learner.update((X, y))
    assert learner.judgement.num_rows == learner.drift.num_rows == 80
    np.testing.assert_allclose(learner.judgement.log_score, before.predict(X).log_prob(y).mean(), rtol=1e-6)


def test_the_alarm_rings_after_a_change_of_the_world_and_goes_on_from_disk(tmp_path):
    """The slopes change sign, of a model that knows them within a hundredth: the first rows tell."""
    learner = linear()
    for seed in range(5):
        learner.update((X, targets(X, seed)))
    assert str(learner.drift) == "no change seen in 320 rows"
    learner.save(tmp_path / "learner")
    again = credo.Online.load(tmp_path / "learner")
    for one in (learner, again):
        one.update((X, targets(X, 9, -SLOPES)))
    assert again.drift == learner.drift
    assert again.judgement == learner.judgement
    assert learner.drift.rings[0].row in range(321, 341)


def test_large_batches_are_judged_by_some_of_their_rows(monkeypatch):
    monkeypatch.setattr(judgement, "MAX_JUDGED", 10)
    learner = linear()
    for seed in range(2):
        learner.update((X, targets(X, seed)))
    assert learner.judgement.num_rows == 10


def test_unlabelled_rows_are_not_judged():
    learner = linear()
    learner.update((X, targets(X, 0)))
    y = targets(X, 1)
    y[:30] = np.nan
    learner.update((X, y))
    assert learner.judgement.num_rows == 50


def test_weights_of_draws_are_bayes_rule():
    """In sequence as at once, wᵢ ∝ p(D | thetaᵢ); and a batch that leaves too few draws is refused."""
    model = credo.models.regression(credo.networks.MLP([], out=1), noise=1.0)
    y = targets(X, 0)
    first = credo.fit(model, (X[:40], y[:40]), credo.NUTS(num_samples=200, num_warmup=200), progress=False)
    learner = credo.online(first, "nuts", density="weights")
    for rows in (slice(40, 60), slice(60, 80)):
        posterior = learner.update((X[rows], y[rows]))
    log_weights = first.predict(X[40:]).log_prob_by_draw(y[40:]).sum(axis=1)
    expected = np.exp(log_weights - log_weights.max())
    np.testing.assert_allclose(posterior.weights.ravel(), expected / expected.sum(), rtol=2e-3)
    with pytest.raises(ValueError, match=r"leave 1.0 of 800 draws with any weight.*fit again with all rows"):
        learner.update((X, 5 - y))
    assert learner.num_updates == 3


def test_only_draws_have_weights(binary):
    with pytest.raises(ValueError, match="weighs draws, and the posterior is a Gaussian"):
        credo.online(binary, VI, density="weights").update((X, labels(2)))


# -- new classes -------------------------------------------------------------------------------------------------

NEW = credo.Data(X[:4], np.array([0, 1, 3, 3], np.int32))


@pytest.mark.parametrize(
    ("outputs", "method"),
    [
        (1, credo.SGLD(num_samples=20, num_warmup=20)),
        (3, credo.SGLD(num_samples=20, num_warmup=20)),
        (1, VI),
        pytest.param(3, VI, marks=pytest.mark.full),
        pytest.param(1, credo.Laplace("full"), marks=pytest.mark.full),
        (3, credo.Laplace()),
        pytest.param(3, credo.Laplace("full"), marks=pytest.mark.full),
    ],
)
def test_the_odds_of_the_old_classes_are_what_they_were(outputs, method):
    """Draw by draw for draws; of a Gaussian, mean and sd of the logit at 2,000 draws of each: within six errors."""
    num = max(outputs, 2)
    posterior = credo.fit(classifier(outputs), (X, labels(num)), method, progress=False)
    grown = with_new_classes(posterior, NEW)
    before, after = (log_odds(one, 2000) for one in (posterior, grown))
    assert grown.predict(X).probs.shape == (80, 4)
    if isinstance(posterior, credo.Draws):
        np.testing.assert_allclose(after, before, atol=1e-3)
        return
    sd = before.std(axis=0)
    assert (np.abs(after.mean(axis=0) - before.mean(axis=0)) < 6 * sd * np.sqrt(2 / 2000)).all()
    # The standard error of an sd is sd/√(2n) for a normal, and twice that for tails that are not.
    assert (np.abs(after.std(axis=0) / sd - 1) < 6 * 2 * np.sqrt(1 / 2000)).all()


def log_odds(posterior, num):
    probs = np.asarray(posterior.predict(X[:10], num_draws=num).functions, np.float64)
    return np.log(np.maximum(probs[..., 1], 1e-12)) - np.log(np.maximum(probs[..., 0], 1e-12))


def test_a_class_on_the_way_is_learned(binary):
    """Points far from all others, of a class that nobody had seen; what was known is still known."""
    learner = credo.online(binary, VI)
    far = np.column_stack([RNG.normal(size=40), 6 + RNG.normal(size=40)])
    rows, y = np.concatenate([X, far]), np.concatenate([labels(2), np.full(40, 2, np.int32)])
    posterior = learner.update((rows, y))
    assert learner.judgement.new_classes == (2,)
    assert learner.judgement.num_rows == 80
    assert (posterior.predict(far).label == 2).mean() > 0.8
    assert (posterior.predict(X).label == labels(2)).mean() > 0.8
    learner.update((X, labels(2)))
    assert learner.judgement.new_classes == ()


def test_members_of_a_mixture_grow_by_themselves():
    method = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=20), members=2)
    mixture = credo.fit(classifier(3), (X, labels(3)), method, progress=False)
    grown = with_new_classes(mixture, NEW)
    assert [one.model.template["head.bias"].shape for one in grown.members] == [(4,), (4,)]
    assert np.isfinite(grown.predict(X).probs).all()


def test_networks_that_cannot_grow_say_so():
    outputs = credo.networks.MLP([3], 2, inputs=2)
    noisy = credo.models.noisy_labels(outputs)
    posterior = credo.fit(noisy, (X, labels(2)), VI, progress=False)
    with pytest.raises(ValueError, match=r"only models of credo.models.classification .* give the network 4 outputs"):
        with_new_classes(posterior, NEW)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((X[:, :1], labels(2)), r"batch: rows of x have shape \(1,\), and those of the batches before \(2,\)"),
        ((X, labels(2) + 0.5), "labels"),
        ((X[:0], labels(2)[:0]), "empty|no rows"),
        ((np.where(X > 1, np.nan, X), labels(2)), "x holds NaN|NaN|finite"),
        ((X, labels(2) - 1), "label"),
        ((X, np.array(["a"] * 80)), "y|label|number"),
    ],
    ids=["columns", "fractions", "empty", "nan", "negative", "text"],
)
def test_batches_that_are_not_like_those_before(binary, batch, message):
    learner = credo.online(binary, VI)
    with pytest.raises(ValueError, match=message):
        learner.update(batch)
    assert learner.num_updates == 1
    assert learner.drift.num_rows == 0
