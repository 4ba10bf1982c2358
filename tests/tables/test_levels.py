"""Text of many levels: grouped, told by the target without leakage, hashed as free text, or left out as a name."""

import numpy as np
import polars as pl
import pytest

from credo.tables import ByTarget, Categorical, Dropped, Encoding, Grouped, Text, read
from credo.tables.cross_fitting import NUM_FOLDS, Sums, averaged, cross_fitted, folds_of, with_effects


def frame_of(cells, y=None):
    return pl.DataFrame(
        {"a": cells, "b": np.arange(len(cells)) % 7, "y": np.arange(len(cells)) / 7 if y is None else y}
    )


def column_of(cells, y=None):
    return Encoding.learn(frame_of(cells, y), "y").columns[0]


FREQUENT = [f"big {n % 20}" for n in range(9900)] + [f"small {n}" for n in range(100)]
EVEN = [f"code{n % 150}" for n in range(1500)]
NAMES = [f"Mr{n}" for n in range(300)]
NOTES = [f"the {word} flat number {n} has a view" for n, word in enumerate(["old", "new", "nice"] * 80)]


@pytest.mark.parametrize(
    ("cells", "kind", "said"),
    [
        (FREQUENT, Grouped, r"category of 120 levels: a column of 0 and 1 for each of the 99 most frequent"),
        (EVEN, ByTarget, r"category of 150 levels \(code0, .*mean of y in each.*none sees its own target"),
        (NAMES, Dropped, r"hardly repeats \(300 values in 300 cells\), like a name"),
        (NOTES, Text, r"words and pairs of words, hashed into 128 columns"),
        ([f"level {n % 40}" for n in range(400)], Categorical, "40 levels"),
    ],
)
def test_what_becomes_of_many_levels(cells, kind, said):
    column = column_of(cells)
    assert type(column) is kind
    assert pl.Series([column.says]).str.contains(said)[0]
    assert column.is_used == (kind is not Dropped)


def test_rare_and_new_levels_are_others():
    column = column_of(FREQUENT)
    assert len(column.names) == 100
    x = column.encode(pl.Series(["big 3", "never seen", "other"]))
    assert x[0, column.names.index("a=big 3")] == 1
    np.testing.assert_array_equal(x[1:, column.names.index("a=other")], 1)
    np.testing.assert_array_equal(x.sum(axis=1), 1)


def test_effects_are_means_that_shrink():
    """By the formula, with the variances of the analysis of variance written out."""
    rng = np.random.default_rng(0)
    places = np.repeat(np.arange(3), [2, 5, 30])
    y = (np.array([-1.0, 0.5, 2.0])[places] + rng.normal(size=37))[:, None]
    column = with_effects(ByTarget("a", levels=("p", "q", "r")), places, y, ("mean of y",))
    num = np.array([2, 5, 30])
    means = np.array([y[places == level].mean() for level in range(3)])
    within = sum(((y[places == level] - means[level]) ** 2).sum() for level in range(3)) / (37 - 3)
    between = (num * (means - y.mean()) ** 2).sum() / 2
    spread = (between - within) / ((37 - (num**2).sum() / 37) / 2)
    known = num / (num + within / spread)
    # Stored with seven digits.
    np.testing.assert_allclose(column.known, known, rtol=1e-6)
    np.testing.assert_allclose(column.effects[0], y.mean() + known * (means - y.mean()), rtol=1e-6, atol=1e-6)
    x = column.encode(pl.Series(["q", "new"]))
    np.testing.assert_allclose(x[:, 1], [column.known[1], 0.0])
    np.testing.assert_allclose(x[1, 0], y.mean(), rtol=1e-6)


def test_levels_that_do_not_differ_tell_nothing():
    places = np.arange(60) % 20
    y = np.tile([1.0, -1.0, 0.0], 20)[:, None]
    column = with_effects(ByTarget("a", levels=tuple(map(str, range(20)))), places, y, ("mean of y",))
    assert set(column.known) == {0.0}


def test_no_row_sees_its_own_target():
    """Another target in one row changes the effects of other folds only, but for what all rows share."""
    rng = np.random.default_rng(0)
    places, folds = rng.integers(0, 30, 300), folds_of(np.arange(300))
    y = (rng.normal(size=30)[places] + rng.normal(size=300))[:, None]
    changed = y.copy()
    changed[7] += 1e-3
    row_alone = places == places[7]
    sums = [Sums.of(places[folds != folds[7]], targets[folds != folds[7]], 30) for targets in (y, changed)]
    np.testing.assert_array_equal(*(one.total for one in sums))
    column = ByTarget("a", levels=tuple(map(str, range(30))), overall=(0.0,))
    before, after = (cross_fitted(column, places, targets, folds)[:, 0] for targets in (y, changed))
    # What all rows share is how much effects shrink: it moves every row of the level by far less than the target moved.
    assert abs(after[7] - before[7]) < 1e-4
    others = row_alone & (folds != folds[7])
    assert (after - before)[others].min() > 1e-5
    assert set(folds) == set(range(NUM_FOLDS))


def test_noise_does_not_leak_into_the_effects():
    """Codes that say nothing: means of the same rows correlate with the target, those of other rows do not."""
    rng = np.random.default_rng(1)
    table = frame_of([f"c{n}" for n in rng.integers(0, 400, 2000)], rng.normal(size=2000))
    encoding = Encoding.learn(table, "y")
    places, y = encoding.columns[0].places(table["a"]), table["y"].to_numpy()[:, None]
    sums = Sums.of(places, y, len(encoding.columns[0].levels))
    naive = (sums.total[:, 0] / np.maximum(sums.num, 1))[places]
    assert np.corrcoef(naive, y[:, 0])[0, 1] > 0.3  # √(400 levels/2,000 rows) is 0.45
    fair = encoding.training_data(table).x[:, 0]
    # The error of a covariance with 2,000 targets of variance 1 is 0.022 sds; five of them.
    assert abs(np.mean((fair - fair.mean()) * y[:, 0])) <= 0.11 * fair.std() + 1e-9


def test_effects_find_what_levels_do():
    rng = np.random.default_rng(2)
    level = rng.integers(0, 200, 3000)
    effect = rng.normal(size=200)
    data = read(frame_of([f"c{n}" for n in level], effect[level] + 0.5 * rng.normal(size=3000)), target="y")
    # 15 rows for each, of which 12 are told: the error of a mean is 0.14 of the effects' sd.
    assert np.corrcoef(data.x[:, 0], effect[level])[0, 1] > 0.97


@pytest.mark.parametrize("num_classes", [2, 3])
def test_of_classes_there_is_a_share_for_each(num_classes):
    labels = np.array(["no", "yes", "maybe"])[np.arange(1500) % num_classes]
    column = column_of(EVEN, labels)
    assert len(column.outputs) == (1 if num_classes == 2 else 3)
    assert column.outputs[-1] == "share of yes"
    if num_classes == 3:
        np.testing.assert_allclose(sum(column.overall), 1, rtol=1e-6)


def test_averaged_targets_keep_gaps():
    assert np.isnan(averaged(np.array([1.0, np.nan]))).ravel().tolist() == [False, True]


def test_groups_stay_in_one_fold():
    groups = np.array(["a", "b", "c"] * 20)
    assert all(len(set(folds_of(groups)[groups == group])) == 1 for group in "abc")


def test_hashed_texts_are_the_same_everywhere():
    """Columns and signs of a few words, as MurmurHash3 has them: another hash would break saved runs."""
    found = Text("note", num_hashed=16).encode(pl.Series(["late", "Late payment", None, "12 34"]))
    assert found[0].tolist() == [0.0] * 8 + [1.0] + [0.0] * 7
    # "late" and "payment" meet in a column with different signs, and cancel; the pair is left.
    assert found[1].tolist() == [0.0] * 6 + [-1.0] + [0.0] * 9
    np.testing.assert_allclose(np.sum(found**2, axis=1), [1, 1, 0, 0], atol=1e-12)


@pytest.mark.parametrize("cells", [FREQUENT, EVEN, NOTES], ids=["grouped", "by target", "text"])
def test_columns_survive_a_file_and_missing_cells(cells, tmp_path):
    gaps = [None if place % 11 == 0 else cell for place, cell in enumerate(cells)]
    encoding = Encoding.learn(frame_of(gaps), "y")
    encoding.save(tmp_path / "columns.json")
    assert Encoding.load(tmp_path / "columns.json") == encoding
    x = encoding.columns[0].encode(pl.Series([None, cells[1], "never seen"]))
    assert encoding.columns[0].names[-1] == "a is missing"
    assert x[:, -1].tolist() == [1, 0, 0]
    assert np.isfinite(x).all()
