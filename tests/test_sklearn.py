"""The scikit-learn estimators: scikit-learn's own checks, and what they have beyond its contract."""

import pickle

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibrationDisplay
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import credo
from credo.sklearn import EXPECTED_FAILED_CHECKS, BayesianClassifier, BayesianRegressor, _seed_of
from credo.tables.features import Features

# Of scikit-learn's checks, those that tell much; the others are heavy, because each compiles for shapes of its own.
TELLING = {
    "check_classifiers_one_label",
    "check_classifiers_train",
    "check_estimator_cloneable",
    "check_estimators_unfitted",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_no_attributes_set_in_init",
    "check_regressors_train",
}


def checks():
    """All of scikit-learn's, those that are excused in single precision too."""
    for kind in (BayesianRegressor, BayesianClassifier):
        small = kind(method=credo.MAP(num_steps=200), network="mlp:8", random_state=0)
        for estimator, check in estimator_checks_generator(small, mark="skip"):
            name = getattr(check, "func", check).__name__
            marks = () if name in TELLING else pytest.mark.full
            yield pytest.param(estimator, check, marks=marks, id=f"{kind.__name__}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_accepts_it(estimator, check):
    with jax.enable_x64(getattr(check, "func", check).__name__ in EXPECTED_FAILED_CHECKS):
        check(estimator)


# -- beyond the contract -----------------------------------------------------------------------------------------

ENSEMBLE = credo.DeepEnsemble(credo.MAP(num_steps=100), members=2)
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["age", "dose"])
NUMBERS = 100 + 20 * FRAME["age"]
CLASSES = np.where(FRAME["dose"] > 0, "yes", "no")


@pytest.fixture(scope="module")
def regressor() -> BayesianRegressor:
    return BayesianRegressor(method=ENSEMBLE, network="mlp:4", random_state=0).fit(FRAME, NUMBERS)


@pytest.fixture(scope="module")
def classifier() -> BayesianClassifier:
    return BayesianClassifier(method=ENSEMBLE, network="mlp:4", random_state=0).fit(FRAME, CLASSES)


def test_a_regressor_tells_what_it_does_not_know(regressor):
    mean, std = regressor.predict(FRAME, return_std=True)
    assert mean.shape == std.shape == (40,)
    np.testing.assert_array_equal(mean, regressor.predict(FRAME))
    predictive = regressor.predictive(FRAME)
    np.testing.assert_allclose(mean, predictive.mean, rtol=1e-5)
    np.testing.assert_allclose(std**2, predictive.epistemic + predictive.aleatoric, rtol=1e-4)
    assert regressor.score(FRAME, NUMBERS) > 0.5


def test_quantiles_have_rows_first(regressor):
    both = regressor.predict_quantiles(FRAME, [0.1, 0.9])
    assert both.shape == (40, 2)
    assert (both[:, 0] < both[:, 1]).all()
    np.testing.assert_array_equal(regressor.predict_quantiles(FRAME, 0.9), both[:, 1])


def test_samples_follow_the_marginal(regressor, classifier):
    drawn = regressor.sample_y(FRAME[:5], 400, random_state=1)
    assert drawn.shape == (5, 400)
    mean, std = regressor.predict(FRAME[:5], return_std=True)
    # Six standard errors of 400 draws.
    assert (np.abs(drawn.mean(axis=1) - mean) < 6 * std / 20).all()
    np.testing.assert_array_equal(drawn, regressor.sample_y(FRAME[:5], 400, random_state=1))
    assert set(classifier.sample_y(FRAME, 3).ravel()) == {"no", "yes"}


def test_a_classifier_keeps_its_classes(classifier):
    assert classifier.classes_.tolist() == ["no", "yes"]
    probs = classifier.predict_proba(FRAME)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(classifier.predict(FRAME), classifier.classes_[probs.argmax(axis=1)])
    assert classifier.score(FRAME, CLASSES) > 0.8
    assert np.isfinite(log_loss(CLASSES, probs))
    assert (classifier.predictive(FRAME).mutual_information >= 0).all()


def test_frames_bring_their_names(regressor):
    assert regressor.feature_names_in_.tolist() == ["age", "dose"]
    ours = regressor.predict(FRAME)
    np.testing.assert_array_equal(regressor.predict(pl.from_pandas(FRAME)), ours)
    with pytest.raises(ValueError, match="feature names"):
        regressor.predict(FRAME[["dose", "age"]])
    with pytest.raises(ValueError, match="now missing"):
        regressor.predict(FRAME[["age"]])


def test_polars_in(regressor):
    other = clone(regressor).fit(pl.from_pandas(FRAME), pl.Series("y", NUMBERS))
    assert other.feature_names_in_.tolist() == ["age", "dose"]
    np.testing.assert_array_equal(other.predict(FRAME), regressor.predict(FRAME))


def test_a_seed_is_that_of_fit(regressor):
    data = credo.Data(FRAME, NUMBERS, standardise=True)
    ours = credo.fit(regressor._model(data), data, ENSEMBLE, seed=0).theta
    for name, leaf in regressor.posterior_.theta.items():
        assert leaf.tobytes() == ours[name].tobytes()


def test_a_fitted_estimator_pickles(regressor, classifier):
    for fitted in (regressor, classifier):
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.predict(FRAME), fitted.predict(FRAME))
        assert again.posterior_.provenance == fitted.posterior_.provenance


def test_any_network_and_noise():
    """A network of one's own pickles too, and heteroscedastic noise takes two outputs."""
    net = credo.networks.MLP([3], out=2, inputs=2)
    fitted = BayesianRegressor(method=credo.MAP(num_steps=20), network=net, noise="heteroscedastic", random_state=0)
    fitted = clone(fitted).fit(FRAME, NUMBERS)
    _, std = pickle.loads(pickle.dumps(fitted)).predict(FRAME, return_std=True)
    assert len(np.unique(std)) > 1


def test_in_a_pipeline_and_a_grid():
    """Methods and networks are parameters like any others."""
    pipe = make_pipeline(StandardScaler(), BayesianRegressor(random_state=0))
    settings = [(credo.MAP(num_steps=1), "linear"), (credo.MAP(num_steps=100), "mlp:4")]
    grid = [
        {"bayesianregressor__method": [method], "bayesianregressor__network": [network]} for method, network in settings
    ]
    search = GridSearchCV(pipe, grid, cv=2, refit=False, error_score="raise").fit(FRAME.to_numpy(), NUMBERS.to_numpy())
    assert search.best_params_["bayesianregressor__network"] == "mlp:4"
    assert search.best_score_ > 0.5


def test_calibration_display(classifier):
    display = CalibrationDisplay.from_estimator(classifier, FRAME, CLASSES, n_bins=3)
    assert len(display.prob_true) > 0


@pytest.mark.parametrize("monotone", [{"dose": "+"}, [0, 1]], ids=["names", "numbers"])
def test_a_monotone_classifier(monotone):
    """Labels that contradict it: what the user knows wins over 40 rows, and is pickled."""
    contrary = np.where(FRAME["dose"] > 0, "no", "yes")
    method = credo.MAP(num_steps=200)
    free = BayesianClassifier(method=method, network="mlp:4", random_state=0)
    bound = clone(free).set_params(monotone=monotone)
    low, high = FRAME.assign(dose=-1.0), FRAME.assign(dose=1.0)

    def rises(fitted):
        return fitted.predict_proba(high)[:, 1] - fitted.predict_proba(low)[:, 1]

    assert (rises(free.fit(FRAME, contrary)) < -0.5).all()
    assert (rises(pickle.loads(pickle.dumps(bound.fit(FRAME, contrary)))) > -0.05).all()


@pytest.mark.parametrize(
    ("estimator", "targets", "monotone", "message"),
    [
        (BayesianRegressor, NUMBERS, {"doze": "+"}, "no column 'doze'; did you mean 'dose'"),
        (BayesianRegressor, NUMBERS, {"dose": "up"}, "a sign is '.' or '-'"),
        (BayesianRegressor, NUMBERS, [1], r"a number for each of 2 columns, got shape \(1,\)"),
        (BayesianRegressor, FRAME, [0, 1], "one target or two classes, and there are 2"),
        (BayesianClassifier, np.arange(40) % 3, [0, 1], "one target or two classes, and there are 3"),
    ],
)
def test_monotone_that_does_not_fit(estimator, targets, monotone, message):
    with pytest.raises(ValueError, match=message):
        estimator(monotone=monotone).fit(FRAME, targets)


@pytest.mark.full
def test_processes_side_by_side(regressor):
    scores = cross_val_score(clone(regressor), FRAME, NUMBERS, cv=2, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(clone(regressor), FRAME, NUMBERS, cv=2))


def test_seeds_are_scikit_learns():
    assert _seed_of(np.int64(3)) == 3
    assert _seed_of(np.random.RandomState(3)) == _seed_of(np.random.RandomState(3))
    assert _seed_of(None) != _seed_of(None)


def test_equal_texts_share_one_compiled_model():
    one, other = (BayesianRegressor(network="mlp:4", prior=credo.priors.fan_in()) for _ in range(2))
    one.n_outputs_ = other.n_outputs_ = 1
    assert one._model(None) is other._model(None)
    # A dictionary has no hash, and a network of one's own may hold values of its own.
    for settings in ({"prior": {"*": credo.priors.normal(1.0)}}, {"network": credo.networks.MLP([4], out=1)}):
        one.set_params(**settings)
        assert one._model(None) is not one._model(None)


def test_errors_come_before_the_fit():
    with pytest.raises(ValueError, match="sample_weight"):
        BayesianRegressor().fit(FRAME, NUMBERS, sample_weight=np.ones(39))
    with pytest.raises(ValueError, match=r"network='mpl:4'.*did you mean 'mlp'"):
        BayesianRegressor(network="mpl:4").fit(FRAME, NUMBERS)
    with pytest.raises(ValueError, match="unknown method 'nutz'"):
        BayesianRegressor(method="nutz").fit(FRAME, NUMBERS)
    with pytest.raises(ValueError, match="one class only, 'no'"):
        BayesianClassifier().fit(FRAME, np.full(40, "no"))
    with pytest.raises(NotFittedError):
        BayesianClassifier().predict(FRAME)


# -- more rows, later on -----------------------------------------------------------------------------------------


def test_parts_in_sequence_are_the_whole():
    """A linear regression has a formula, and "auto" takes it: halves one after another are all rows at once."""
    regressor = BayesianRegressor(network="linear", noise=1.0, standardise=False, random_state=0)
    whole = clone(regressor).set_params(method=credo.ClosedForm()).fit(FRAME, NUMBERS)
    for half in (slice(20), slice(20, 40)):
        regressor.partial_fit(FRAME[half], NUMBERS[half])
    np.testing.assert_allclose(regressor.predict(FRAME), whole.predict(FRAME), rtol=1e-4)
    assert regressor.learner_.num_data == 40
    again = pickle.loads(pickle.dumps(regressor)).partial_fit(FRAME[:5], NUMBERS[:5])
    assert again.learner_.num_data == 45
    assert not hasattr(regressor.fit(FRAME, NUMBERS), "learner_")


def test_classes_come_at_first_or_on_the_way():
    method = credo.BayesByBackprop(num_steps=50)
    classifier = BayesianClassifier(method=method, network="mlp:3", random_state=0)
    classifier.partial_fit(FRAME[:20], np.full(20, "no"), classes=["yes", "no"])
    assert classifier.classes_.tolist() == ["no", "yes"]
    classifier.partial_fit(FRAME, CLASSES)
    classifier.partial_fit(FRAME, np.where(FRAME["age"] > 1, "maybe", CLASSES))
    assert classifier.classes_.tolist() == ["no", "yes", "maybe"]
    assert classifier.predict_proba(FRAME).shape == (40, 3)
    assert classifier._labels(np.array(["maybe", "no"])).tolist() == [2, 0]
    for arguments, message in (
        ((FRAME[["age"]], CLASSES), "feature"),
        ((FRAME, CLASSES, ["no", "never"]), "at the first call there were"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier.partial_fit(*arguments)
    with pytest.raises(ValueError, match="one class only, 'no'; name all classes at the first call"):
        clone(classifier).partial_fit(FRAME, np.full(40, "no"))
    with pytest.raises(ValueError, match=r"the class 'yes', which is not in classes=\['maybe' 'no'\]"):
        clone(classifier).partial_fit(FRAME, CLASSES, classes=["no", "maybe"])


def test_points_are_nothing_to_go_on_from():
    estimator = BayesianRegressor(method=credo.MAP())
    assert not hasattr(estimator, "partial_fit")
    with pytest.raises(AttributeError):
        estimator.partial_fit(FRAME, NUMBERS)


def test_a_classifier_for_noisy_labels_finds_them_and_pickles():
    noisy = BayesianClassifier(noise="nar", method=credo.MAP(num_steps=50), network="mlp:4", random_state=0)
    noisy.fit(FRAME, CLASSES)
    errors = noisy.label_errors(FRAME, CLASSES)
    assert errors.shape == (40,)
    assert ((errors >= 0) & (errors <= 1)).all()
    # What contradicts the prediction is more suspicious than what agrees with it.
    turned = noisy.label_errors(FRAME, np.where(CLASSES == "yes", "no", "yes"))
    assert turned.mean() > errors.mean()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(noisy)).label_errors(FRAME, CLASSES), errors)
    with pytest.raises(ValueError, match="y has the class 'maybe'"):
        noisy.label_errors(FRAME, np.full(40, "maybe"))
    with pytest.raises(ValueError, match="kind must be one of ncar, nar, nnar"):
        BayesianClassifier(noise="rna").fit(FRAME, CLASSES)


def test_a_regressor_finds_counts_and_takes_durations_that_have_not_ended():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 1))
    quick = {"method": credo.MAP(num_steps=30), "network": "table:2"}
    visits = BayesianRegressor(**quick, likelihood="auto").fit(x, rng.poisson(np.exp(x[:, 0])))
    assert visits.posterior_.model.config["model"] == "counts"
    assert visits.predict_quantiles(x, 0.05).min() >= 0
    days = np.exp(1 + x[:, 0])
    lives = BayesianRegressor(**quick, likelihood="positive").fit(x, np.minimum(days, 4), censored=days > 4)
    assert lives.posterior_.model.rows.censored
    with pytest.raises(ValueError, match="likelihood is 'counts', which the network 'table' has"):
        BayesianRegressor(method="map", network="linear", likelihood="counts").fit(x, days)


# -- data frames, and rows seen several times ---------------------------------------------------------------------

MESSY = pd.DataFrame(
    {
        "city": ["Bern", "Rome", None, "Ulm"] * 15,
        "size": np.where(np.arange(60) % 7 == 0, np.nan, np.sin(np.arange(60))),
        "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(60), "D"),
    }
)
PRICES = np.nan_to_num(MESSY["size"]) + (MESSY["city"] == "Bern")
SMALL = {"method": credo.MAP(num_steps=50), "network": "mlp:4", "random_state": 0}


def test_messy_frames_become_what_tables_make_of_them():
    regressor = BayesianRegressor(**SMALL).fit(MESSY, PRICES)
    data = credo.tables.read(MESSY.assign(y=PRICES), target="y")
    assert regressor.features_.names == data.names
    np.testing.assert_array_equal(regressor.features_.rows(MESSY), data.x)
    np.testing.assert_array_equal(regressor.predict(MESSY), regressor.posterior_.predict(data.x).mean)
    with pytest.raises(ValueError, match="'city' is categorical, and holds 'Oslo'"):
        regressor.predict(MESSY.assign(city="Oslo"))
    assert np.isfinite(regressor.set_params(unknown="missing").predict(MESSY.assign(city="Oslo"))).all()
    again = pickle.loads(pickle.dumps(regressor))
    np.testing.assert_array_equal(again.predict(MESSY), regressor.predict(MESSY))


def test_arrays_of_objects_and_gaps_are_tables_too():
    classifier = BayesianClassifier(**SMALL).fit(MESSY[["city", "size"]].to_numpy(object), PRICES > 0.5)
    assert classifier.features_.names[-1] == "x1 is missing"
    assert not hasattr(classifier, "feature_names_in_")
    gaps = np.array([[np.nan, 1.0], [2.0, 3.0]] * 10)
    assert np.isfinite(BayesianRegressor(**SMALL).fit(gaps, np.arange(20.0)).predict(gaps)).all()


def test_directions_are_those_of_columns():
    features = Features.learn(MESSY)
    place = features.names.index("size")
    assert features.signs({"size": "+"}) == {place: "+"}
    assert features.signs([0, -1, 0]) == {place: -1}
    with pytest.raises(ValueError, match="column 'city' has no direction"):
        features.signs({"city": 1})


def test_sample_weights_are_how_often_rows_were_seen():
    counts = np.arange(40) % 3
    rows = np.repeat(np.arange(40), counts)
    regressor = BayesianRegressor(method=credo.ClosedForm(), network="linear", noise=0.5, random_state=0)
    weighted = clone(regressor).fit(FRAME, NUMBERS, sample_weight=counts).predict(FRAME)
    written_out = clone(regressor).fit(FRAME.iloc[rows], NUMBERS.iloc[rows]).predict(FRAME)
    np.testing.assert_allclose(weighted, written_out, rtol=1e-4)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        clone(regressor).fit(FRAME, NUMBERS, sample_weight=-counts)


def test_precisions_are_of_the_noise_and_no_counts():
    w = np.where(np.arange(40) % 2 == 0, 0.25, 4.0)
    regressor = BayesianRegressor(method=credo.ClosedForm(), network="linear", noise=0.5, random_state=0)
    counted = clone(regressor).fit(FRAME, NUMBERS, sample_weight=w)
    precise = clone(regressor).fit(FRAME, NUMBERS, precisions=w)
    # Where the noise is known both say the same of the weights, up to how counts scale the columns.
    np.testing.assert_allclose(precise.predict(FRAME), counted.predict(FRAME), rtol=2e-3)
    plain = precise.predictive(FRAME)
    np.testing.assert_allclose(plain.with_precisions(w).aleatoric, plain.aleatoric / w, rtol=1e-4)
    with pytest.raises(ValueError, match="precisions is -1 in row 0"):
        clone(regressor).fit(FRAME, NUMBERS, precisions=-np.ones(40))
