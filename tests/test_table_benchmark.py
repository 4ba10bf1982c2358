"""The bookkeeping of `python -m benchmarks tables`: gaps, results that are kept, rules, verdicts, and a whole run."""

import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import table_figures, table_fits, table_page, table_problems, tables
from benchmarks.resumable import Fit, Results
from benchmarks.table_problems import Parts
from benchmarks.timing import GivenUpError, in_new_process
from scipy import stats

NUM_ROWS = 36
SCORES = {"log_likelihood": -1.0, "crps": 0.5, "rmse": 1.0, "coverage": 0.9, "seconds": 1.0, "processor": 1.0}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    """A folder with one set: an input that is continuous, one of two values, and their sum with noise."""
    x = np.stack([rng.permutation(NUM_ROWS) / NUM_ROWS, np.arange(NUM_ROWS) % 2], axis=1).astype(np.float32)
    y = (x.sum(axis=1) + 0.1 * rng.standard_normal(NUM_ROWS)).astype(np.float32)
    test = np.arange(NUM_ROWS)[:, None] % 5 == np.arange(5)
    np.savez(tmp_path / "tables.npz", **{"servo/x": x, "servo/y": y, "servo/test": test})
    monkeypatch.setenv("CREDO_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_middle_third_keeps_equal_values_together(rng: np.random.Generator) -> None:
    values = rng.permutation(30) / 7
    middle = table_problems.middle_third(values)
    assert middle is not None
    assert middle.sum() == 10
    assert values[middle].min() > np.sort(values)[9]
    repeated = np.repeat([1.0, 2.0, 3.0, 4.0], [7, 2, 6, 5])
    middle = table_problems.middle_third(repeated)
    assert middle is not None
    # Ends of the values at 0.35, 0.45, 0.75 of the rows: the first and the third are nearest to the thirds.
    assert np.unique(repeated[middle]).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("values", [[0, 1] * 9, [3] * 18, [0] * 16 + [1, 2], [0] * 2 + [1] * 14 + [2] * 2])
def test_inputs_without_a_middle_are_skipped(values: list[int]) -> None:
    assert table_problems.middle_third(np.array(values)) is None


def test_gaps_and_splits_part_the_rows(table: Path) -> None:
    gaps = table_problems.gaps("servo", None)
    assert list(gaps) == [0]
    train, test = gaps[0].x[:, 0], gaps[0].test_x[:, 0]
    assert len(test) == NUM_ROWS // 3
    assert not np.any((train >= test.min()) & (train <= test.max()))
    splits = table_problems.splits("servo", 2)
    assert [len(parts.test_y) for parts in splits.values()] == [8, 7]
    assert all(len(parts.y) + len(parts.test_y) == NUM_ROWS for parts in splits.values())


def test_waves_are_what_their_formula_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_problems, "WAVES_ROWS", 5_000)
    parts = table_problems.waves(0)
    assert (len(parts.y), len(parts.test_y)) == (5_000, table_problems.WAVES_TEST_ROWS)
    x, y = parts.test_x, parts.test_y
    mean = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.abs(x[:, 3]) / 2 + 0.3 * x[:, 4]
    noise = (y - mean) / np.exp(-1 + 0.6 * x[:, 5] + 0.3 * np.sin(x[:, 0]))
    # The p-value is uniform: below 1e-4 in one run of 10,000.
    assert stats.kstest(noise, stats.t(5).cdf).pvalue > 1e-4


def test_splits_of_classes_have_the_same_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.repeat([0, 1], [30, 20])
    np.savez(tmp_path / "classes.npz", **{"iris/x": np.arange(50.0)[:, None], "iris/y": y})
    monkeypatch.setattr(table_problems, "CLASSES", tmp_path / "classes.npz")
    splits = table_problems.classes("iris", 3)
    assert [np.bincount(parts.test_y).tolist() for parts in splits.values()] == [[6, 4]] * 3


# -- scores --------------------------------------------------------------------------------------------------------


def test_scores_of_a_mixture_are_those_of_its_density() -> None:
    mean, std, y = np.array([[1.0, 2.0], [3.0, 2.0]]), np.array([[1.0, 0.5], [2.0, 0.5]]), np.array([1.5, 2.5])
    found = table_fits.scores(table_fits._prediction({"mean": mean, "std": std}), y)
    expected = np.log(stats.norm.pdf(y, mean, std).mean(axis=0)).mean()
    assert found["log_likelihood"] == pytest.approx(expected, rel=1e-5)
    assert found["rmse"] == pytest.approx(0.5, rel=1e-5)
    assert found["coverage"] == 1.0


def test_a_class_that_was_ruled_out_costs_a_finite_number_of_nats() -> None:
    prediction = table_fits._prediction({"probs": np.array([[1.0, 0.0], [0.5, 0.5]])})
    found = table_fits.scores(prediction, np.array([1, 0]))
    expected = (np.log(table_fits.LEAST_PROBABILITY) + np.log(0.5)) / 2
    assert found["log_likelihood"] == pytest.approx(expected, rel=1e-5)
    assert found["accuracy"] == pytest.approx(0.5)


def test_credo_is_scored_with_its_status(table: Path) -> None:
    parts = table_problems.splits("servo", 1)[0]
    found = table_fits.of_credo(parts, {"network": "linear", "method": "map", "random_state": 0})
    assert {"log_likelihood", "crps", "rmse", "coverage", "seconds", "processor"} < set(found)
    assert found["status"] == "amber"  # a point leaves no draws to leave rows out by
    assert found["rmse"] < np.std(parts.y)


def test_a_program_that_reached_its_limit_was_given_up() -> None:
    ended = f"import os; os.kill(os.getpid(), {int(signal.SIGXCPU)})"
    with pytest.raises(GivenUpError):
        in_new_process([sys.executable, "-c", ended])


# -- runs ----------------------------------------------------------------------------------------------------------


def test_a_run_of_peers_from_end_to_end(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """These two peers need nothing that credo's own environment has not."""
    monkeypatch.setenv("CREDO_PEERS", sys.executable)
    out = table / "tables.jsonl"
    arguments = ["--sets", "servo", "--methods", "gaussian_process,constant", "--splits", "1", "--out", str(out)]
    tables.main(arguments)
    found = {row["fit"][1]: row["scores"] for row in Results(out).rows}
    assert found["gaussian_process"]["log_likelihood"] > found["constant"]["log_likelihood"] + 0.5
    size = out.stat().st_size
    tables.main([*arguments, "--markdown"])
    assert out.stat().st_size == size
    assert "| servo " in capsys.readouterr().out
    # What has been fitted is shown without the peers' environment, too.
    monkeypatch.setenv("CREDO_PEERS", str(table / "none"))
    tables.main([*arguments[:4], "--splits", "2", "--out", str(out), "--markdown"])
    shown = capsys.readouterr().out
    assert "are not fitted" in shown
    assert "| servo " in shown


def test_fits_are_made_once_for_the_same_code_and_limit(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, int]] = []

    def measure(method: Any, parts: Parts, seed: int, limit: int) -> dict[str, Any]:
        made.append((seed, limit))
        return SCORES if limit > 10 else {"given_up_after": limit}

    monkeypatch.setattr(tables, "measure", measure)
    out = table / "tables.jsonl"

    def run(*arguments: str) -> int:
        made.clear()
        tables.main(["--sets", "servo", "--methods", "credo", "--splits", "2", "--out", str(out), *arguments])
        return len(made)

    assert run("--code", "a", "--limit", "10") == 2
    assert run("--code", "a", "--limit", "10") == 0
    assert run("--code", "a", "--show") == 0
    assert run("--code", "a") == 2
    assert run("--code", "a") == 0
    assert run("--code", "b") == 2
    assert run() == 2
    assert run("--gap") == 1


def test_nothing_fitted_is_said(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables.main(["--gap", "--sets", "servo", "--show", "--out", str(table / "tables.jsonl")])
    assert "Nothing has been fitted" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sets", "iris"],
        ["--classes", "--sets", "servo"],
        ["--methods", "logistic"],
        ["--inputs", "2"],
        ["--gap", "--classes"],
    ],
)
def test_unknown_options_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        tables.main(arguments)


def test_without_data_a_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("CREDO_DATA", raising=False)
    tables.main(["--sets", "servo"])
    assert "CREDO_DATA" in capsys.readouterr().out


# -- rules ---------------------------------------------------------------------------------------------------------


def found_of(values: dict[str, list[float]], **others: float) -> dict[Fit, dict[str, Any]]:
    """Log-likelihoods by method and part of one set."""
    return {
        Fit("servo", method, part): SCORES | {"log_likelihood": value, **others}
        for method, scores in values.items()
        for part, value in enumerate(scores)
    }


def test_the_default_is_level_within_the_error_of_paired_differences() -> None:
    # Differences −0.1 and 0.1 and −0.3: mean −0.1, standard error 0.115.
    level = found_of({"credo": [1.0, 5.0, 9.0], "bde": [1.1, 4.9, 9.3], "constant": [0.0, 0.0, 0.0]})
    assert "on 1 of 1 sets" in table_figures.ranking(level, ["servo"])
    assert table_figures.fitted(level, ["servo", "stock"]).endswith("servo 3, stock 0")
    # The mean is the same, and it is always so.
    behind = found_of({"credo": [1.0, 5.0, 9.0], "bde": [1.1, 5.1, 9.1]})
    assert "on 0 of 1 sets" in table_figures.ranking(behind, ["servo"])
    assert "servo (-0.10" in table_figures.ranking(behind, ["servo"])


def test_only_parts_of_both_are_compared() -> None:
    found = found_of({"credo": [1.0, 2.0], "linear": [1.2, 2.2, 50.0]})
    difference = table_figures.difference(found, "servo", "credo", "linear")
    assert difference is not None
    assert difference.mean == pytest.approx(-0.2)
    assert "below linear on 1 of 1 sets" in table_figures.beside(found, ["servo"], "linear")


def test_gaps_tell_the_worst_input(capsys: pytest.CaptureFixture[str]) -> None:
    found = found_of({"credo": [-1.0, -4.0], "gaussian_process": [-2.0, -9.0, -1.0]})
    found[Fit("servo", "gaussian_process", 3)] = {"given_up_after": 60}
    table_figures.show_gaps(found, ["servo", "machine"], False)
    shown = capsys.readouterr().out
    assert "-2.50, -4.00 (1)" in shown
    assert "-4.00, -9.00 (1)" in shown
    assert "on 1 of 1 sets" in shown
    assert "1 fits given up after 60 s" in shown


def test_verdicts_stand_beside_what_was_true(capsys: pytest.CaptureFixture[str]) -> None:
    coverages = {"green": [0.9, 0.85, 0.7], "red": [0.5, 0.9]}
    found = {
        Fit(status, "credo", part): SCORES | {"status": status, "coverage": share}
        for status, shares in coverages.items()
        for part, share in enumerate(shares)
    }
    found[Fit("servo", "credo", 0)] = SCORES
    table_figures.show_verdicts(found, markdown=True)
    shown = capsys.readouterr().out
    rows = [[word.strip() for word in line.split("|")[1:-1]] for line in shown.splitlines() if line.startswith("| ")]
    assert ["green", "3", "60%", "2", "1"] in rows
    assert ["red", "2", "40%", "1", "1"] in rows
    assert "1 fits have no status" in shown


# -- the page ------------------------------------------------------------------------------------------------------


def test_the_page_takes_the_last_fit_of_any_code_with_todays_settings(tmp_path: Path) -> None:
    results = Results(tmp_path / "tables.jsonl")
    for code, value in (("a", -1.25), ("b", -1.75)):
        scores = SCORES | {"log_likelihood": value, "status": "green"}
        results.add(Fit("servo", "credo", 0), tables.settings_of(tables.SPLITS, "credo", code), scores)
    results.add(Fit("servo", "catboost", 0), {"task": "splits", "method": "catboost", "settings": {}}, SCORES)
    results.add(Fit("iris", "constant", 0), tables.settings_of(tables.LABELS, "constant"), {"log_likelihood": -1.1})
    found = table_page.found_in(results, tables.SPLITS)
    assert {fit: scores["log_likelihood"] for fit, scores in found.items()} == {Fit("servo", "credo", 0): -1.75}
    text = table_page.page(results)
    assert "-1.75" in text
    assert "## Classes" in text
    assert "## Where" not in text
    assert "| green |" in text


def test_the_page_of_the_docs_is_what_the_results_say() -> None:
    root = Path(__file__).parent.parent
    assert table_page.page(Results(tables.RESULTS)) == (root / "docs" / "tables_measured.md").read_text("utf-8")
