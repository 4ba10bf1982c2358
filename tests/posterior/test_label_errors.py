"""Label errors against Bayes' rule by hand, of every kind of posterior; what is found on digits."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import credo
from credo.inference.registry import METHODS
from credo.networks import MLP
from tests.contract.test_methods import TINY
from tests.models.test_noisy_labels import LABELS, SEVERAL, X
from tests.models.test_outliers import Y
from tests.models.test_outliers import by_hand as outliers_by_hand

MISSING = np.where(np.arange(7) == 2, np.nan, LABELS)


def fitted(model, y, method=None):
    return credo.fit(model, (X[: len(y)], y), method or credo.MAP(num_steps=2), progress=False)


@pytest.mark.parametrize("labels", [pytest.param(MISSING, marks=pytest.mark.full, id="one"), SEVERAL])
def test_they_are_by_bayes_rule_and_survive_saving(labels, tmp_path):
    settings = {} if labels.ndim == 1 else {"annotators": 2}
    posterior = fitted(credo.models.noisy_labels(MLP([3], 3, inputs=2), "nar", **settings), labels)
    draw = posterior.draw(0)
    given, confusion = labels.reshape(7, -1), draw["confusion"].reshape(-1, 3, 3)
    terms = posterior.predict(X).probs.astype(np.float64)
    for annotator, matrix in enumerate(confusion):
        for row, label in enumerate(given[:, annotator]):
            terms[row] *= 1 if np.isnan(label) else matrix[:, int(label)]
    clean = terms / terms.sum(1, keepdims=True)
    expected = [
        [np.nan if np.isnan(label) else 1 - clean[row, int(label)] for label in own] for row, own in enumerate(given)
    ]
    found = posterior.label_errors((X, labels))
    np.testing.assert_allclose(found, np.reshape(expected, labels.shape), atol=1e-5)
    posterior.save(tmp_path / "run")
    np.testing.assert_array_equal(credo.load(tmp_path / "run").label_errors((X, labels)), found)


@pytest.mark.full
def test_of_numbers_they_are_those_of_the_wide_component():
    net = MLP([3], 2, inputs=2)
    posterior = fitted(credo.models.outliers(net, "nar", noise=[0.3, 0.5]), Y)
    expected = outliers_by_hand("nar", net, posterior.draw(0), Y, {"noise": [0.3, 0.5]})[1]
    np.testing.assert_allclose(posterior.label_errors((X[:6], Y)), expected, atol=1e-4)


@pytest.mark.full
def test_several_draws_are_averaged():
    posterior = fitted(
        credo.models.noisy_labels(MLP([3], 1, inputs=2), "ncar"), LABELS % 2, credo.SGLD(num_samples=2, num_warmup=2)
    )
    single = [
        credo.Draws(
            posterior.model, {name: leaf[:, [n]] for name, leaf in posterior.theta.items()}, posterior.provenance
        )
        for n in range(posterior.num_draws)
    ]
    data = (X, LABELS % 2)
    np.testing.assert_allclose(
        posterior.label_errors(data), np.mean([one.label_errors(data) for one in single], axis=0), atol=1e-6
    )


def test_a_model_that_takes_labels_for_the_truth_has_none():
    posterior = fitted(credo.models.classification(MLP([3], 3)), LABELS)
    with pytest.raises(ValueError, match=r"takes y for the truth; fit credo.models.noisy_labels\(net, 'nar'\)"):
        posterior.label_errors((X, LABELS))


def test_labels_of_several_annotators_have_no_law_of_one():
    posterior = fitted(credo.models.noisy_labels(MLP([3], 3), "nar", annotators=2), SEVERAL)
    with pytest.raises(ValueError, match=r"several labels in each row.*without of='y'"):
        posterior.predict(X, of="y")


@pytest.mark.full
def test_laplace_says_what_to_do_about_outliers():
    with pytest.raises(ValueError, match=r"MixtureSameFamily.*curvature='fisher'"):
        fitted(credo.models.outliers(MLP([3], 2)), Y, credo.Laplace(training=credo.MAP(num_steps=2)))


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"closed_form"}))  # which is for regression
def test_every_method_fits_them(name, tmp_path):
    model = credo.models.noisy_labels(MLP([4], 3, inputs=2), "nnar")
    posterior = fitted(model, LABELS, METHODS[name](**TINY[name]))
    errors = posterior.label_errors((X, LABELS))
    assert ((errors >= 0) & (errors <= 1)).all()
    assert posterior.predict(X, of="y").probs.shape == (7, 3)
    posterior.save(tmp_path / "run")
    np.testing.assert_array_equal(credo.load(tmp_path / "run").label_errors((X, LABELS)), errors)
    credo.evaluate(posterior, (X, LABELS), num_resamples=2)


@pytest.mark.full
def test_wrong_digits_are_found_and_half_of_what_they_cost_is_won_back(seed):
    """Four in ten digits are called by the next: one network and method, with clean labels, plain, and with NAR."""
    train, test = credo.datasets.load("digits", standardise=True).split(0.25, seed=seed, stratify=True)
    wrong = np.random.default_rng(seed).uniform(size=train.size) < 0.4
    noisy = credo.Data(train.x, np.where(wrong, (train.y + 1) % 10, train.y)).with_scaling(train.scaling)
    net, method = MLP([50], 10), credo.BayesByBackprop(num_steps=3000)
    plain, nar = credo.models.classification(net), credo.models.noisy_labels(net, "nar")
    fits = [
        credo.fit(*one, method, seed=seed, progress=False) for one in ((plain, train), (plain, noisy), (nar, noisy))
    ]
    clean, lost, won = (float(np.mean(fit.predict(test.x).label == test.y)) for fit in fits)
    assert won - lost >= 0.5 * (clean - lost) > 0
    assert roc_auc_score(wrong, fits[-1].label_errors(noisy)) >= 0.9
