"""What is drawn is what was given: the artists hold the values."""

import numpy as np
import pytest
from matplotlib import pyplot

from credo import plot
from credo.data import Data
from credo.evaluation.classes import class_summary
from credo.predictive.tabulated import from_probs
from tests.plot.cases import CHAINS, CLASSES, CURVE, EVENTS, GRID, LINE, ONE, PLANE, RESIDUALS, RISK, ROC, TWO


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def lines(ax):
    return {line.get_label(): line.get_xydata().T for line in ax.lines}


def test_bands_hold_mean_and_data():
    ax = plot.bands(CURVE, LINE[::-1], data=ONE)
    np.testing.assert_allclose(lines(ax)["mean"], [LINE, CURVE.mean[::-1]])
    np.testing.assert_allclose(lines(ax)["data"], [ONE.x[:, 0], ONE.y])
    reach = ax.collections[0].get_datalim(ax.transData).height
    assert reach == pytest.approx(np.ptp(np.concatenate([CURVE.mean - 2 * CURVE.std, CURVE.mean + 2 * CURVE.std])))


def test_events_are_marked_by_their_number_of_points():
    ax = plot.calibration(EVENTS)
    np.testing.assert_array_equal(lines(ax)["this model"], [EVENTS.predicted, EVENTS.observed])
    sizes = ax.collections[-1].get_sizes()
    assert np.array_equal(np.argsort(sizes, kind="stable"), np.argsort(EVENTS.counts, kind="stable"))


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    x, y = lines(plot.calibration(RESIDUALS, label="NUTS"))["NUTS"]
    assert len(x) <= 500
    assert np.isin(x, RESIDUALS.predicted).all()
    assert (x[0], x[-1], y[-1]) == (RESIDUALS.predicted[0], RESIDUALS.predicted[-1], RESIDUALS.observed[-1])


def test_the_histogram_lies_below_the_curve_and_the_text_sums_it_up():
    ax = plot.calibration(EVENTS)
    tops = np.array([bar.get_y() + bar.get_height() for bar in ax.patches])
    heights = np.array([bar.get_height() for bar in ax.patches])
    assert tops.max() < 0
    np.testing.assert_allclose(heights / heights.max(), EVENTS.histogram / EVENTS.histogram.max())
    said = ax.get_legend().get_title().get_text()
    assert f"AUC {EVENTS.auc:.3f}" in said
    assert f"distance {EVENTS.distance:.3f}" in said
    assert EVENTS.direction in said


def test_a_fan_shows_the_summary():
    summary = class_summary(CLASSES)
    shown = [[bar.get_height() for bar in bars] for bars in plot.fan(CLASSES).containers]
    np.testing.assert_allclose(shown, summary)


def test_the_summary_is_that_of_the_table():
    table = np.random.default_rng(1).dirichlet(np.ones(4), size=(6, 10))
    summary = class_summary(from_probs(table))
    np.testing.assert_allclose(summary.mean, table.mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(summary.within, np.sqrt(table.var(0, ddof=1).mean(0)), rtol=1e-5)
    np.testing.assert_allclose(summary.across, table.mean(0).std(0), rtol=1e-4)
    assert np.all(class_summary(from_probs(table[:, :1])).across == 0)


def test_risks_and_rates_are_drawn_as_given():
    drawn = plot.risk_coverage(RISK).lines
    np.testing.assert_array_equal(drawn[0].get_xydata().T, [RISK.coverage, RISK.risk])
    np.testing.assert_array_equal(drawn[1].get_xydata().T, [RISK.coverage, RISK.oracle])
    (curve,) = (line for label, line in lines(plot.roc(ROC)).items() if label.startswith(ROC.by))
    np.testing.assert_array_equal(curve, [ROC.false_positive_rate, ROC.true_positive_rate])


def test_one_oracle_is_drawn_once():
    labels = [line.get_label() for line in plot.risk_coverage({"a": RISK, "b": RISK}).lines]
    assert labels.count("perfect ordering") == 1
    assert len(labels) == 3


def test_the_running_mean_is_that_of_what_is_there():
    trace = np.array([1.0, 2.0, np.nan, 4.0, 6.0])
    raw, smooth = plot.objective(trace, window=3).lines
    np.testing.assert_array_equal(raw.get_ydata(), trace)
    np.testing.assert_allclose(smooth.get_ydata(), [1.5, 1.5, 3.0, 5.0, 5.0])


def test_wild_first_steps_do_not_flatten_the_rest():
    trace = np.linspace(-10, 0, 1000)
    trace[:20] = -1e6
    ax = plot.objective(trace)
    assert ax.get_ylim()[0] > -50
    assert "−1e+06" in ax.get_legend().get_title().get_text()
    assert plot.objective(np.linspace(-10, 0, 1000)).get_ylim()[0] <= -10


def test_a_confusion_matrix_shows_counts_and_shares():
    ax = plot.confusion(np.array([[1500, 500], [0, 0]]))
    assert [text.get_text() for text in ax.texts] == ["1,500", "500", "0", "0"]
    np.testing.assert_allclose(ax.images[0].get_array(), [[0.75, 0.25], [0, 0]])


@pytest.mark.parametrize(
    ("draws", "labels", "methods"),
    [
        (CHAINS.T, ["θ1", "θ2"], []),
        ({"a": CHAINS, "b": CHAINS**2}, ["a", "b"], []),
        ({"a": CHAINS[0], "b": CHAINS[1]}, ["a", "b"], []),
        ({"NUTS": CHAINS.T, "VI": CHAINS.T}, ["a", "b"], ["NUTS", "VI"]),
        ({"NUTS": {"a": CHAINS, "b": CHAINS}, "VI": {"a": CHAINS[0], "b": CHAINS[1]}}, ["a", "b"], ["NUTS", "VI"]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_pairs_takes_draws_in_many_forms(draws, labels, methods, tmp_path):
    # Names tell a dict of methods from one of variables; an array does not need them.
    by_method = bool(methods) and isinstance(draws["VI"], np.ndarray)
    grid = plot.pairs(draws, names=labels if by_method else None)
    assert grid.shape == (2, 2)
    assert [grid[1, 0].get_xlabel(), grid[1, 0].get_ylabel()] == labels
    assert len(grid[1, 0].lines) == max(len(methods), 1)
    legend = grid[0, 1].get_legend()
    assert ([text.get_text() for text in legend.get_texts()] if legend else []) == methods
    plot.save(grid[0, 0], tmp_path / "pairs.png")


def test_pairs_draws_each_variable_against_each_in_the_figure_given():
    table = np.random.default_rng(2).normal(size=(50, 8))
    figure = pyplot.figure()
    grid = plot.pairs(table, figure=figure)
    assert grid.shape == (6, 6)
    assert grid[0, 0].figure is figure
    np.testing.assert_array_equal(grid[3, 1].lines[0].get_xydata(), table[:, [1, 3]])
    assert grid[0, 5].texts[0].get_text() == "6 of 8 variables"


def test_inputs_without_a_target_are_shown_apart():
    one = Data(LINE, np.where(np.arange(7) == 3, np.nan, LINE**2))
    drawn = lines(plot.bands(CURVE, LINE, data=one))
    np.testing.assert_array_equal(drawn["unlabelled"][0], [LINE[3]])
    two = Data(TWO.x, [0, 1, None, 2, 1, 0, None, 1, 1])
    drawn = lines(plot.class_map(CLASSES, GRID, data=two))
    np.testing.assert_array_equal(drawn["unlabelled"].T, TWO.x[[2, 6]])
    assert {name for name in drawn if name.startswith("class")} == {"class 0", "class 1", "class 2"}
    some = Data(TWO.x, [0.5, None, *TWO.y[2:]])
    assert len(plot.maps(PLANE, GRID, data=some).collections[-1].get_offsets()) == 8


def test_observed_leaves_out_what_is_missing():
    ax = plot.observed(CURVE, Data(LINE, np.where(np.arange(7) == 3, np.nan, LINE**2)))
    np.testing.assert_allclose(lines(ax)["mean, ±2 sd"], [np.delete(LINE**2, 3), np.delete(CURVE.mean, 3)])
