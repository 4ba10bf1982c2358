"""Every plot draws on the axes it is given or on its own, says what its axes are, and can be saved."""

import numpy as np
import pytest
from matplotlib import pyplot

from credo import plot
from tests.plot.cases import CASES, CHAINS, CLASSES, CURVE, EVENTS, EXPLAINED, GRID, LINE, ONE, PLANE, RISK, ROC, TWO


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("name", CASES)
def test_it_draws_on_given_axes_and_on_new_ones(name):
    figure, (given, other) = pyplot.subplots(1, 2)
    assert CASES[name](given) is given
    assert not other.has_data()
    new = CASES[name](None)
    assert new.figure is not figure
    assert np.allclose(new.figure.get_size_inches()[0], 6.4, atol=1.1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CASES)
def test_it_is_saved_and_let_go(name, tmp_path):
    plot.save(CASES[name](None), tmp_path / "figure.png")
    assert pyplot.imread(tmp_path / "figure.png").std() > 0
    assert not pyplot.get_fignums()


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("bands", "dose (mg)", "response (s)"),
        ("class_map", "water (kg)", "age (d)"),
        ("maps mean", "water (kg)", "age (d)"),
        ("calibration of classes", "predicted probability p̂", "observed probability p̌"),
        ("fan", "class", "probability"),
        ("risk_coverage", "coverage: share of inputs answered", "error rate"),
        ("roc", "false positive rate", "true positive rate"),
        ("objective", "step", "ELBO"),
        ("objective of chains", "step", "log joint"),
        ("confusion", "predicted class", "true class"),
        ("learning_curve", "number of labels", "accuracy on test rows"),
        ("importance", "fall of R² when it is shuffled, ±2 standard errors", ""),
        ("dependence", "b", "f (m)"),
        ("dependence of classes on levels", "x1", "probability"),
        ("label_errors", "probability that it is wrong", "most suspicious first"),
    ],
)
def test_axes_are_labelled_with_units(name, x, y):
    ax = CASES[name](None)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (x, y)


@pytest.mark.parametrize(
    ("show", "label"),
    [("mean", "mean of f (MPa)"), ("std", "sd of f (MPa)"), ("epistemic", "epistemic variance of f (MPa²)")],
)
def test_a_map_says_what_its_colours_are(show, label):
    ax = plot.maps(PLANE, GRID, show=show, data=TWO)
    mesh = ax.collections[0]
    np.testing.assert_allclose(np.ravel(mesh.get_array()), getattr(PLANE, show), rtol=1e-6)
    assert mesh.colorbar.ax.get_ylabel() == label


WRONG = {
    "rows of x": (lambda: plot.bands(CURVE, LINE[:3]), "one input and one output"),
    "bands of classes": (lambda: plot.bands(CLASSES, LINE), "regression"),
    "data of two inputs": (lambda: plot.bands(CURVE, LINE, data=TWO), r"rows of shape \(2,\)"),
    "map of a line": (lambda: plot.maps(CURVE, GRID), "one output for each"),
    "map of nothing known": (lambda: plot.maps(PLANE, GRID, show="entropy"), "'mean'"),
    "map of classes": (lambda: plot.maps(CLASSES, GRID), "class_map"),
    "class map of numbers": (lambda: plot.class_map(PLANE, GRID), "use maps"),
    "points of one input": (lambda: plot.maps(PLANE, GRID, data=ONE), r"rows of shape \(1,\)"),
    "calibration of numbers": (lambda: plot.calibration(LINE), "CalibrationCurve"),
    "no curve": (lambda: plot.calibration({}), "empty"),
    "names of the fan": (lambda: plot.fan(CLASSES, names=["a", "b"]), "3 classes"),
    "fan of a regression": (lambda: plot.fan(CURVE), "the prediction of a classifier"),
    "two kinds of risk": (
        lambda: plot.risk_coverage({"a": RISK, "b": type(RISK)(**vars(RISK) | {"risk_name": "mse"})}),
        "error rate, mse",
    ),
    "risk of another length": (lambda: plot.risk_coverage(type(RISK)(**vars(RISK) | {"risk": LINE})), "one length"),
    "roc of a table": (lambda: plot.roc(type(ROC)(**vars(ROC) | {"false_positive_rate": CHAINS})), "one length"),
    "objective of a number": (lambda: plot.objective(np.zeros((2, 3, 4))), r"\(chains, steps\)"),
    "objective of nothing": (lambda: plot.objective(np.full(3, np.nan)), "no finite"),
    "window": (lambda: plot.objective(LINE, window=8), "7 steps"),
    "traces of one chain": (lambda: plot.traces(LINE), r"\(chains, draws\)"),
    "confusion of a table": (lambda: plot.confusion(np.ones((2, 3))), r"\(classes, classes\)"),
    "confusion of shares": (lambda: plot.confusion(np.full((2, 2), 0.5)), "counts"),
    "importance of scores": (lambda: plot.importance(RISK), "credo.explain"),
    "dependence on nothing known": (lambda: plot.dependence(EXPLAINED, "c"), "there are curves of"),
    "a row by its number": (lambda: plot.unsure(3), "credo.explain"),
    "graph of a model": (lambda: plot.graph("model"), "model.graph"),
    "pairs of a line": (lambda: plot.pairs(LINE), r"\(draws, variables\)"),
    "pairs of one": (lambda: plot.pairs({"a": LINE}), "two variables"),
    "pairs of a matrix": (lambda: plot.pairs({"a": LINE, "w": np.zeros((7, 2, 2))}), "w must be scalars"),
    "methods that differ": (lambda: plot.pairs({"A": {"a": LINE, "b": LINE}, "B": {"a": LINE}}), "same variables"),
    "methods and variables": (lambda: plot.pairs({"A": {"a": LINE}, "b": LINE}), "mixes"),
    "names of the columns": (lambda: plot.pairs(CHAINS.T, names=["a"]), "for 1 names"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_drawn_is_refused_in_words(name):
    draw, words = WRONG[name]
    with pytest.raises((ValueError, TypeError), match=words):
        draw()


def test_events_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="for each event"):
        plot.calibration(type(EVENTS)(**vars(EVENTS) | {"observed": EVENTS.observed[:-1]}))
