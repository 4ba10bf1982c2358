"""Learning curves of several runs."""

import numpy as np
import pytest

import credo
from credo.learning.curve import LearningCurve

RUNS = [{10: 0.5, 20: 0.9, 30: 0.96}, {10: 0.6, 20: 0.97}]


def test_points_that_all_runs_have():
    curve = LearningCurve.of(RUNS)
    assert curve.num_labels.tolist() == [10, 20]
    np.testing.assert_array_equal(curve.values, [[0.5, 0.9], [0.6, 0.97]])
    assert curve.labels_to_reach(0.95) == [None, 20]


def test_runs_of_nothing_in_common_are_refused():
    with pytest.raises(ValueError, match="no number of labels that all of them have"):
        LearningCurve.of([{10: 0.5}, {20: 0.5}])


def test_rounds_without_a_test_set_are_refused():
    x = np.linspace(-1, 1, 8)
    model = credo.models.regression(credo.networks.MLP([2], out=1, inputs=1))
    rounds = list(credo.active(model, x, x, credo.MAP(num_steps=2), batch=2, stop=2))
    with pytest.raises(ValueError, match="round 1 has no 'rmse' on a test set"):
        LearningCurve.of([rounds], by="rmse")


def test_the_plot_shows_medians_and_the_level():
    ax = credo.plot.learning_curve({"bald": RUNS, "random": RUNS[:1]}, level=0.95)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.55, 0.935])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["bald", "random"]
    assert len(ax.collections) == 1
