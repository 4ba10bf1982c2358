"""Columns with names are matched by name, wherever rows are passed to what was trained on others."""

import numpy as np
import pandas
import polars
import pytest

import credo
from credo.data.names import labels_of, order_of

ROWS = np.random.default_rng(0).normal(size=(12, 3))
Y = ROWS @ [1.0, -2.0, 0.5]


@pytest.fixture(params=[pandas.DataFrame, polars.DataFrame], ids=["pandas", "polars"])
def frame(request):
    return request.param(dict(zip("abc", ROWS.T, strict=True)))


@pytest.fixture(scope="module")
def posterior():
    data = credo.Data(pandas.DataFrame(ROWS, columns=list("abc")), Y, standardise=True)
    model = credo.models.regression(credo.networks.MLP([3], out=1), noise=0.1)
    return credo.fit(model, data, credo.MAP(num_steps=3), progress=False)


@pytest.fixture(scope="module")
def mean(posterior):
    return posterior.predict(ROWS).mean


def test_columns_in_another_order_are_put_in_order(posterior, mean, frame):
    np.testing.assert_array_equal(posterior.predict(frame).mean, mean)
    np.testing.assert_array_equal(posterior.predict(frame[["c", "a", "b"]]).mean, mean)


def test_names_survive_saving(posterior, mean, frame, tmp_path):
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict(frame[["b", "c", "a"]]).mean, mean)
    with pytest.raises(ValueError, match="x lacks 'c'"):
        loaded.predict(frame[["b", "a"]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a", "b"], "x lacks 'c': the columns were 'a', 'b', 'c' in training; pass those, in any order, or an array"),
        (["a", "b", "d"], "x lacks 'c' and also has 'd'"),
        (["a", "b", "c", "d"], "x also has 'd'"),
    ],
)
def test_other_columns_are_refused(posterior, columns, message):
    rows = pandas.DataFrame(np.ones((2, len(columns))), columns=columns)
    with pytest.raises(ValueError, match=message):
        posterior.predict(rows)


def test_arrays_are_matched_by_position(posterior, mean):
    np.testing.assert_array_equal(posterior.predict(pandas.DataFrame(ROWS)).mean, mean)
    unnamed = credo.fit(posterior.model, (ROWS, Y), credo.MAP(num_steps=1), progress=False)
    assert unnamed.model.rows.columns is None
    assert unnamed.predict(pandas.DataFrame(ROWS, columns=list("xyz"))).mean.shape == (12,)


def test_test_data_are_matched(posterior, frame):
    shuffled = (frame[["b", "c", "a"]], Y)
    rmse = [credo.evaluate(posterior, data, num_resamples=0)["rmse"].value for data in [(ROWS, Y), shuffled]]
    assert rmse[0] == rmse[1]
    sets = [credo.conformal(posterior, data, level=0.5) for data in [(ROWS, Y), shuffled]]
    assert sets[0].threshold == sets[1].threshold
    np.testing.assert_array_equal(sets[0].interval(ROWS), sets[1].interval(shuffled[0]))
    with pytest.raises(ValueError, match="x lacks 'c'"):
        credo.evaluate(posterior, (frame[["a", "b"]], Y))


def test_validation_data_are_matched(frame):
    model = credo.models.regression(credo.networks.MLP([3], out=1), noise=0.1)

    def fitted(validation):
        method = credo.MAP(num_steps=3, patience=1)
        return credo.fit(model, credo.Data(frame, Y), method, validation=validation, progress=False)

    traces = [fitted(rows).trace for rows in [(ROWS[::-1], Y), (frame[::-1][["b", "c", "a"]], Y)]]
    for name in traces[0]:
        np.testing.assert_array_equal(traces[0][name], traces[1][name])
    with pytest.raises(ValueError, match="validation: x lacks 'c'"):
        fitted((frame[["a", "b"]], Y))


def test_unlabelled_rows_and_tasks_are_matched(frame):
    shuffled = frame[["b", "c", "a"]]
    np.testing.assert_array_equal(credo.Data(frame, Y, unlabelled=shuffled).x, np.concatenate([ROWS, ROWS]))
    with pytest.raises(ValueError, match="unlabelled lacks 'c'"):
        credo.Data(frame, Y, unlabelled=pandas.DataFrame(ROWS, columns=list("abd")))
    joined = credo.tasks_data([(frame, Y), (shuffled, Y)])
    np.testing.assert_array_equal(joined.x[:12, :3], joined.x[12:, :3])
    assert credo.packed_tasks([(frame, Y), (shuffled, Y)]).names == ("a", "b", "c")


@pytest.mark.full
def test_a_new_task_is_matched():
    frame = pandas.DataFrame(ROWS, columns=list("abc"))
    sets = [(frame, Y), (frame, -Y)]
    model = credo.models.task_heads(credo.networks.MLP([2], out=1), noise=0.1)
    population = credo.fit(model, credo.packed_tasks(sets), credo.MAP(num_steps=2), progress=False)
    new = [credo.adapt(population, (rows, Y)) for rows in (frame, frame[["c", "b", "a"]])]
    np.testing.assert_array_equal(*(one.predict(frame[["b", "a", "c"]]).mean for one in new))


@pytest.mark.full
def test_students_know_the_names(posterior):
    frame = pandas.DataFrame(ROWS, columns=list("abc"))
    student = credo.distill(posterior, "mlp:2", inputs=frame[["c", "b", "a"]], method=credo.MAP(num_steps=2))
    np.testing.assert_array_equal(student.predict(frame[["b", "a", "c"]]).mean, student.predict(ROWS).mean)


def test_data_keep_units_and_scaling_in_another_order():
    data = credo.Data(ROWS, Y, standardise=True, names=list("abc"), units=["m", "s", "kg"])
    other = data.arranged(["c", "a", "b"])
    assert other.units == ("kg", "m", "s")
    np.testing.assert_array_equal(other.batch().x, data.batch().x[:, [2, 0, 1]])


def test_what_is_a_name():
    mixed = pandas.DataFrame([[1.0, 2.0]], columns=["a", 1])
    assert labels_of(mixed) == ("a", "1")
    assert labels_of(pandas.DataFrame([[1.0, 2.0]], columns=[("a", 1), ("a", 2)])) == ("('a', 1)", "('a', 2)")
    assert labels_of(pandas.Series([1.0], name="a")) == labels_of(polars.Series("a", [1.0])) == ("a",)
    assert labels_of(ROWS) is labels_of([1.0]) is labels_of(pandas.Series([1.0])) is None


def test_twins_are_taken_in_their_order_only():
    assert order_of(["a", "a"], ["a", "a"]) is None
    with pytest.raises(ValueError, match="several columns of one name"):
        order_of(["b", "a", "a"], ["a", "a", "b"])


def test_many_columns_are_matched_in_one_go():
    """Each name is hashed a few times, however many there are."""
    seen = []

    class Name(str):
        def __eq__(self, other):
            seen.append(self)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name(f"column {place}") for place in range(3000)]
    assert order_of(names[::-1], names) == list(range(2999, -1, -1))
    assert len(seen) <= 10 * len(names)
