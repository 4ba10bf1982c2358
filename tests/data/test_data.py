import copy
import doctest
import gzip
import os
import pickle

import jax.numpy as jnp
import numpy as np
import polars
import pytest

import credo
from credo import datasets
from credo.data import Data, Scaling, as_data, as_inputs
from credo.data import data as data_module

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    return rng.normal([5.0, -300.0], [2.0, 40.0], (60, 2)), rng.normal(1e4, 20.0, 60)


class Frame:
    """The face that pandas and polars show: `columns` and `__array__`."""

    def __init__(self, values, columns):
        self.values, self.columns = np.asarray(values), columns

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize("module", [data_module, datasets])
def test_examples_in_docstrings_run(module):
    assert doctest.testmod(module).failed == 0


# --- scaling


def test_standardised_batch_has_mean_0_and_sd_1_and_the_user_keeps_his_units(table):
    x, y = table
    data = Data(x, y, standardise=True)
    batch = data.batch()
    assert batch.x.dtype == batch.y.dtype == jnp.float32
    assert batch.total == data.size == 60
    np.testing.assert_allclose(np.mean(batch.x, 0), 0, atol=1e-5)
    np.testing.assert_allclose(np.std(batch.x, 0), 1, rtol=1e-5)
    np.testing.assert_allclose([np.mean(batch.y), np.std(batch.y)], [0, 1], atol=1e-5)
    np.testing.assert_array_equal(data.x, x)
    np.testing.assert_allclose(batch.y * data.scaling.y_scale + data.scaling.y_mean, y, rtol=1e-6)


def test_scaling_is_the_identity_by_default(table):
    data = Data(*table)
    assert data.scaling.is_identity
    np.testing.assert_array_equal(data.batch().x, table[0].astype(np.float32))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1e-30])
def test_a_constant_column_gets_scale_1(value):
    x = np.column_stack([np.full(1003, value), np.arange(1003.0)])
    data = Data(x, np.full(1003, value), standardise=True)
    assert data.scaling.x_scale[0] == data.scaling.y_scale == 1
    np.testing.assert_allclose(data.batch().x[:, 0], 0, atol=1e-6)


def test_a_small_spread_around_a_large_mean_survives_single_precision():
    x = 1e9 + np.arange(8.0)
    batch = Data(x, x, standardise=True).batch()
    np.testing.assert_allclose(np.diff(batch.x[:, 0]), 1 / np.std(np.arange(8)), rtol=1e-5)


def test_images_are_standardised_by_one_number_and_colours_by_channel():
    rng = np.random.default_rng(0)
    y = np.arange(5)
    assert Data(rng.random((5, 4, 4)), y, standardise=True).scaling.x_mean.shape == ()
    assert Data(rng.random((5, 4, 4, 3)), y, standardise=True).scaling.x_mean.shape == (3,)


def test_integer_labels_are_never_scaled(table):
    data = Data(table[0], np.arange(60) % 3, standardise=True)
    batch = data.batch()
    assert batch.y.dtype == jnp.int32
    np.testing.assert_array_equal(batch.y, np.arange(60) % 3)
    assert data.scaling.y_scale == 1
    assert not data.scaling.is_identity


def test_integer_targets_follow_a_scaling_fitted_to_floats():
    scaling = Data([0.0, 1.0], [0.0, 10.0], standardise=True).scaling
    np.testing.assert_allclose(Data([0.0, 1.0], [0, 10]).with_scaling(scaling).batch().y, [-1, 1])


def test_scaling_round_trips_through_a_dict(table):
    scaling = Data(*table, standardise=True).scaling
    again = Scaling.from_dict(scaling.to_dict())
    assert set(scaling.to_dict()) == {"x_mean", "x_scale", "y_mean", "y_scale"}
    np.testing.assert_array_equal(again.inputs(table[0]), scaling.inputs(table[0]))
    np.testing.assert_array_equal(again.targets(table[1]), scaling.targets(table[1]))


# --- batches


def test_a_batch_is_made_once_and_not_handed_on_to_changed_copies(table):
    data = Data(*table)
    batch = data.batch()
    assert data.batch() is batch
    for other in (data.select([3, 1]), data.with_scaling(Data(*table, standardise=True).scaling), copy.copy(data)):
        assert "_batch" not in vars(other)
    assert data.select([3, 1]).batch().x.shape == (2, 2)
    assert "_batch" not in vars(pickle.loads(pickle.dumps(data)))


@pytest.mark.parametrize("options", [{}, {"checkpoint": "run"}, {"method": "auto"}])
def test_a_fit_copies_its_inputs_once(table, options, monkeypatch, tmp_path):
    copied = []

    def counted(self, x, copy=Scaling.inputs):
        copied.append(len(x))
        return copy(self, x)

    monkeypatch.setattr(Scaling, "inputs", counted)
    monkeypatch.chdir(tmp_path)
    model = credo.models.regression(credo.networks.MLP([], out=1), noise=1.0)
    credo.fit(model, table, **{"method": credo.MAP(num_steps=2), **options})
    assert copied.count(60) == 1


# --- what Data accepts


def test_shapes_are_brought_to_rows():
    data = Data([1, 2, 3], [[1.0], [2.0], [3.0]])
    assert data.x.shape == (3, 1)
    assert data.x.dtype == np.float64
    assert data.y.shape == (3,)
    assert Data(np.ones((3, 2), np.uint8), np.ones((3, 2))).x.dtype == np.float32


def test_booleans_become_numbers():
    data = Data(np.array([[True], [False]]), [True, False])
    np.testing.assert_array_equal(data.x, [[1.0], [0.0]])
    np.testing.assert_array_equal(data.y, [1, 0])
    assert data.batch().y.dtype == jnp.int32


def test_frames_bring_the_names_of_their_columns():
    data = Data(Frame([[1, 2.0]], ["age", "dose"]), Frame([[0.5]], ["effect"]))
    assert data.names == ("age", "dose")
    assert data.target == "effect"
    assert Data(Frame([[1, 2.0]], [0, 1]), [1.0]).names is None
    assert Data(Frame([[1, 2.0]], ["age", "dose"]), [1.0], names=["a", "b"]).names == ("a", "b")


def test_classes_have_names_that_splits_keep():
    data = Data([1.0, 2.0, 3.0], [0, 2, 1], classes=["red", "green", "blue"])
    assert data.split(0.4)[1].classes == ("red", "green", "blue")
    assert datasets.load("iris").classes == ("setosa", "versicolor", "virginica")


@pytest.mark.parametrize("y", [[0, 2], [0.5, 1.5]])
def test_classes_must_fit_the_labels(y):
    with pytest.raises(ValueError, match="classes"):
        Data([1.0, 2.0], y, classes=["red", "green"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_real_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"age": [1.0, 2.0], "dose": [3.0, 5.0], "effect": [0, 1]})
    data = Data(frame[["age", "dose"]], frame["effect"])
    assert data.names == ("age", "dose")
    assert data.target == "effect"
    assert Data(frame["age"], frame["effect"]).names == ("age",)


def test_the_name_of_an_array_that_is_no_column_is_left_alone():
    class Stored(Frame):
        def __init__(self, values):
            self.values, self.name, self.ndim, self.shape = values, "/group/x", 2, values.shape

    assert Data(Stored(np.ones((3, 2))), [1.0, 2.0, 3.0]).names is None


def test_repr_says_what_matters():
    data = Data([[1.0, 2.0], [2.0, 1.0]], [1.0, 3.0], names=["a", "b"], target="price", unit="€", standardise=True)
    assert repr(data) == "Data(2 rows; x: a, b; y: price [€] float; standardised)"
    assert repr(Data(np.ones((3, 8, 8)), [0, 1, 9])) == "Data(3 rows; x: shape (8, 8); y: labels 0 to 9)"
    assert "float × 2" in repr(Data([1.0, 2.0], np.ones((2, 2))))


# --- what Data refuses

REFUSED = [
    (
        [[1.0, 2.0], [3.0, NAN]],
        [1.0, 2.0],
        r"x has values .* \(1 of 4\), the first \(nan\) in row 1, column 1; remove",
    ),
    (
        [[1.0, -INF], [NAN, NAN]],
        [1.0, 2.0],
        r"x has values .* \(3 of 4\), the first \(-inf\) in row 0, column 1; remove",
    ),
    ([[1e300], [0.0]], [1.0, 2.0], r"x has values .* too large for single precision"),
    (np.full((1, 2, 2), NAN), [1.0], r"x has values .* in row 0, position \(0, 0\)"),
    (Frame([[1.0, NAN]], ["age", "dose"]), [1.0], r"in row 0, column 1 \(dose\)"),
    ([1.0, 2.0], [1.0, INF], r"y has values .* \(inf\) in row 1; remove"),
    ([1.0, 2.0, 3.0], [1.0, 2.0], "x has 3 rows and y has 2; pass one row of each"),
    ([], [], r"x has shape \(0,\), which is empty"),
    ([1.0], [], r"y has shape \(0,\), which is empty"),
    (np.ones((3, 0)), np.ones(3), r"x has shape \(3, 0\), which holds no columns"),
    (np.ones((3, 2)), np.ones((3, 0)), r"y has shape \(3, 0\), which holds no targets"),
    (3.0, [1.0], r"x is the single number 3\.0"),
    ([1.0], 3.0, r"y is the single number 3\.0"),
    ([["a"], ["b"]], [1.0, 2.0], "x has dtype <U1; pass real numbers"),
    (np.array([[1.0], [None]], object), [1.0, 2.0], r"x has dtype object; .* \.astype\(float\)"),
    ([1.0, 2.0], ["cat", "dog"], "y has dtype <U3; pass real numbers: encode text"),
    ([1.0, 2.0], [1j, 2.0], "y has dtype complex128"),
    ([[1.0], [2.0, 3.0]], [1.0, 2.0], "x is not an array: .*; pass rows of equal length"),
    (np.ma.array([1.0, 2.0], mask=[False, True]), [1.0, 2.0], "x has masked entries"),
    ([1.0], [2**40], "y holds integers beyond 32 bits"),
]


@pytest.mark.parametrize(("x", "y", "message"), REFUSED)
def test_bad_arrays_are_refused_by_name(x, y, message):
    with pytest.raises(ValueError, match=message):
        Data(x, y)


@pytest.mark.parametrize("argument", ["names", "units"])
@pytest.mark.parametrize("labels", [["a"], "ab", ["a", "b", "c"]])
def test_one_label_per_column(argument, labels):
    with pytest.raises(ValueError, match=rf"{argument} is .* x has shape \(3, 2\); pass one string for each"):
        Data(np.ones((3, 2)), np.ones(3), **{argument: labels})


def test_images_have_no_column_names():
    with pytest.raises(ValueError, match=r"names is .* 2-D x"):
        Data(np.ones((3, 2, 2)), np.ones(3), names=["a", "b"])


# --- splits


def test_split_is_a_partition_scaled_by_its_training_part(table):
    data = Data(*table, standardise=True, names=["a", "b"])
    train, test = data.split(0.25, seed=1)
    assert (train.size, test.size) == (45, 15)
    np.testing.assert_array_equal(np.sort(np.concatenate([train.y, test.y])), np.sort(data.y))
    assert train.names == test.names == ("a", "b")
    np.testing.assert_allclose(train.scaling.x_mean, train.x.mean(0))
    assert not np.allclose(train.scaling.x_mean, data.scaling.x_mean)
    assert test.scaling is train.scaling
    # Test rows that are split again, say for validation, still know nothing but the training part.
    assert test.split(0.5)[0].scaling is train.scaling


def test_split_depends_on_the_seed_alone(table):
    data = Data(*table)
    np.testing.assert_array_equal(data.split(seed=4)[1].y, data.split(seed=4)[1].y)
    assert not np.array_equal(data.split(seed=4)[1].y, data.split(seed=5)[1].y)
    assert data.split()[0].scaling.is_identity


@pytest.mark.parametrize("fraction", [0.001, 0.999])
def test_neither_part_is_empty(fraction):
    train, test = Data([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).split(fraction)
    assert min(train.size, test.size) == 1


@pytest.mark.parametrize("order", range(5))
def test_stratified_split_keeps_the_share_of_each_label(order):
    y = np.random.default_rng(order).permutation(np.repeat([0, 1, 2], [70, 20, 9]))
    train, test = Data(np.arange(99.0), y).split(0.2, seed=order, stratify=True)
    assert test.size == 20
    assert np.all(np.abs(np.bincount(test.y) - np.array([70, 20, 9]) * 20 / 99) <= 1)
    np.testing.assert_array_equal(np.sort(np.concatenate([train.x, test.x])[:, 0]), np.arange(99))


@pytest.mark.parametrize("fraction", [0, 1, -0.1, NAN])
def test_fraction_out_of_range(table, fraction):
    with pytest.raises(ValueError, match=r"fraction is .* between 0 and 1"):
        Data(*table).split(fraction)


def test_splits_that_cannot_be(table):
    with pytest.raises(ValueError, match="x has 1 row; a split needs at least 2"):
        Data([1.0], [1.0]).split()
    with pytest.raises(ValueError, match="stratify needs an integer label per row, and y is float64"):
        Data(*table).split(stratify=True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 99], "rows holds indices from 0 to 99, and there are .* rows; pass 0 to"),
        ([-99], "rows holds indices from -99"),
        ([0.5], "rows is float64"),
        ([True, False], "a mask of"),
        ([[0, 1]], "of shape"),
    ],
)
def test_rows_that_are_not_there_are_refused(table, rows, message):
    with pytest.raises(ValueError, match=message):
        Data(*table).select(rows)


@pytest.mark.parametrize(
    "x",
    [
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
        np.arange(5.0, -1.0, -1.0).reshape(3, 2)[::-1, ::-1],
        np.arange(6).reshape(3, 2).astype(">i4"),
        np.arange(6).reshape(3, 2).astype(np.float16),
        np.arange(6).reshape(3, 2).astype(np.longdouble),
        np.ma.masked_array(np.arange(6.0).reshape(3, 2), mask=False),
        np.matrix(np.arange(6.0).reshape(3, 2)),
    ],
    ids=["Fortran", "reversed", "big-endian", "half", "long", "unmasked", "matrix"],
)
def test_layouts_and_types_are_the_same_numbers(x):
    data = Data(x, [0.5, 1.5, 2.5])
    assert data.x.dtype in (np.float32, np.float64)
    np.testing.assert_array_equal(data.batch().x, np.arange(6.0).reshape(3, 2))


def test_numbers_that_no_array_holds_are_refused():
    wide = polars.DataFrame({"a": polars.Series([1, 2], dtype=polars.Int128)})
    with pytest.raises(ValueError, match="x is not an array"):
        Data(wide, [0.5, 1.5])
    with pytest.raises(ValueError, match="y is not an array"):
        Data([0.5, 1.5], wide)


def test_select_by_index_and_by_mask(table):
    data = Data(*table, standardise=True)
    assert data.select(data.y > data.y.mean()).scaling is data.scaling
    np.testing.assert_array_equal(data.select([3, 1]).y, table[1][[3, 1]])
    assert data.select(3).x.shape == (1, 2)


@pytest.mark.parametrize("rows", [[], np.zeros(60, bool)])
def test_select_nothing(table, rows):
    with pytest.raises(ValueError, match="rows selects nothing"):
        Data(*table).select(rows)


# --- as_data, as_inputs


def test_as_data(table):
    plain, scaled = as_data(table), as_data(table, standardise=True)
    assert plain.scaling.is_identity
    assert not scaled.scaling.is_identity
    assert as_data(plain) is plain
    assert not as_data(plain, standardise=True).scaling.is_identity
    seen = plain.with_scaling(scaled.scaling)
    assert as_data(seen, standardise=True) is seen


def test_as_data_refuses_other_things(table):
    with pytest.raises(TypeError, match=r"data is of type ndarray; pass credo.Data or a tuple \(x, y\)"):
        as_data(table[0])
    with pytest.raises(TypeError, match="data is of type list"):
        as_data(list(table))
    with pytest.raises(ValueError, match="data is a tuple of 3; pass two arrays"):
        as_data((*table, table[1]))


def test_as_inputs():
    assert as_inputs(np.ones((4, 3)), like=(3,)).shape == (4, 3)
    assert as_inputs([1, 2]).shape == (2, 1)
    with pytest.raises(ValueError, match=r"rows of shape \(2,\), and .* rows of \(3,\); pass x of shape \(N, 3\)$"):
        as_inputs(np.ones((4, 2)), like=(3,))
    with pytest.raises(ValueError, match=r"pass x of shape \(N, 8, 8\); for one row, pass x\[None\]"):
        as_inputs(np.ones((8, 8)), like=(8, 8))
    with pytest.raises(ValueError, match="x has values that are NaN"):
        as_inputs([1.0, NAN])


# --- data sets


@pytest.mark.parametrize(
    ("name", "shape", "num_classes"),
    [
        ("diabetes", (442, 10), 0),
        ("digits", (1797, 8, 8), 10),
        ("breast_cancer", (569, 30), 2),
        ("wine", (178, 13), 3),
        ("iris", (150, 4), 3),
    ],
)
def test_embedded_sets(name, shape, num_classes):
    data = datasets.load(name)
    assert data.x.shape == shape
    assert data.target
    if name == "digits":
        assert (data.x.min(), data.x.max()) == (0, 1)
    else:
        assert len(data.names) == shape[1]
    if num_classes:
        np.testing.assert_array_equal(np.unique(data.y), np.arange(num_classes))
    else:
        assert data.y.dtype.kind == "f"
        assert data.x[:, 0].max() > 70, "ages are in years"


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ValueError, match=r"name must be one of diabetes, .*, got 'diabets'; did you mean 'diabetes'"):
        datasets.load("diabets")


def test_gap_has_a_hole_and_noise_of_a_tenth():
    data = datasets.gap(num=4001)
    assert not np.any((data.x > -0.7) & (data.x < 0.5))
    residual = data.y - np.cos(4 * data.x[:, 0] + 0.8)
    assert abs(residual.std() - 0.1) < 5 * 0.1 / np.sqrt(2 * 4001)


def test_moons_lie_on_two_half_circles():
    data = datasets.moons(num=31, noise=0.0)
    centre = np.where(data.y[:, None] == 0, [0.0, 0.0], [1.0, 0.5])
    np.testing.assert_allclose(np.linalg.norm(data.x - centre, axis=1), 1)
    np.testing.assert_array_equal(np.bincount(data.y), [15, 16])


def test_linear_is_linear():
    data = datasets.linear(num=30, inputs=4, noise=0.0)
    assert np.linalg.lstsq(data.x, data.y)[1] < 1e-20


def test_paperfold_is_met_by_both_folds():
    data = datasets.paperfold()
    assert data.x.shape == (8, 2)
    np.testing.assert_allclose(data.y, np.abs(data.x[:, 0]) / np.sqrt(2), atol=1e-15)
    np.testing.assert_allclose(data.y, 1 - np.abs(data.x[:, 1]) / np.sqrt(2), atol=1e-15)


@pytest.mark.parametrize("make", [datasets.gap, datasets.moons, datasets.linear])
def test_toys_depend_on_the_seed_alone(make):
    np.testing.assert_array_equal(make(20, seed=1).x, make(20, seed=1).x)
    assert not np.array_equal(make(20, seed=1).x, make(20, seed=2).x)
    with pytest.raises(ValueError, match="num must be a whole number of at least 1, got 0"):
        make(0)


def test_toys_refuse_impossible_settings():
    with pytest.raises(ValueError, match="noise is -1; it is a standard deviation"):
        datasets.moons(noise=-1)
    with pytest.raises(ValueError, match="inputs must be a whole number of at least 1, got 0"):
        datasets.linear(inputs=0)


# --- files


def write_idx(path, array):
    path.parent.mkdir(exist_ok=True)
    header = bytes([0, 0, 8, array.ndim]) + np.asarray(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("CREDO_DATA", raising=False)
    for prefix, num in [("train", 3), ("t10k", 2)]:
        write_idx(tmp_path / f"mnist/{prefix}-images-idx3-ubyte.gz", np.arange(num * 6).reshape(num, 2, 3) * 15)
        write_idx(tmp_path / f"mnist/{prefix}-labels-idx1-ubyte.gz", np.arange(num) + 7)
    np.savez(tmp_path / "uci.npz", toy_X=np.arange(20.0).reshape(10, 2), toy_y=np.arange(10.0))
    return tmp_path


def test_mnist_is_parsed(folder):
    train, test = datasets.mnist(folder, standardise=True)
    assert train.x.shape == (3, 2, 3)
    assert train.x.dtype == np.float32
    np.testing.assert_allclose(train.x.ravel(), np.arange(18) / 17, rtol=1e-6)
    np.testing.assert_array_equal(test.y, [7, 8])
    assert test.scaling is train.scaling
    assert train.scaling.x_mean == pytest.approx(0.5)


def test_uci_is_parsed_from_the_folder_of_the_environment(folder, monkeypatch):
    monkeypatch.setenv("CREDO_DATA", str(folder))
    train, test = datasets.uci_split(datasets.uci("toy"), 0)
    assert (train.size, test.size) == (9, 1)
    np.testing.assert_allclose(train.scaling.y_mean, train.y.mean())


def test_damaged_files_are_named(folder):
    path = folder / "mnist/train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(b"<html>"))
    with pytest.raises(ValueError, match=r"train-images.* is not an IDX file"):
        datasets.mnist(folder)
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 9, 1, 2])))
    with pytest.raises(ValueError, match=r"holds 2 bytes and claims shape \(9,\)"):
        datasets.mnist(folder)


def test_absent_files_say_where_to_get_them(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"CREDO_DATA, and neither is set; .*UCI repository"):
        datasets.uci("toy")
    with pytest.raises(FileNotFoundError, match=r"fashion_mnist.* does not exist; .*IDX files of Fashion-MNIST"):
        datasets.mnist(folder, fashion=True)
    with pytest.raises(ValueError, match="name must be one of toy, got 'tox'; did you mean 'toy'"):
        datasets.uci("tox", folder)


@pytest.mark.parametrize("size", [308, 1030])
def test_uci_splits_are_those_of_the_published_recipe(size):
    data = Data(np.arange(float(size)), np.arange(float(size)))
    stream = np.random.RandomState(1)
    for split in range(3):
        order = stream.choice(range(size), size, replace=False)
        train, test = datasets.uci_split(data, split)
        np.testing.assert_array_equal(train.y, order[: round(0.9 * size)])
        np.testing.assert_array_equal(test.y, order[round(0.9 * size) :])
    with pytest.raises(ValueError, match="split is 20; the standard splits are numbered 0 to 19"):
        datasets.uci_split(data, 20)


real = pytest.mark.skipif("CREDO_DATA" not in os.environ, reason="CREDO_DATA names no folder")


@real
def test_real_uci():
    assert datasets.uci("boston").x.shape == (506, 13)
    naval = datasets.uci("naval")
    np.testing.assert_array_equal(np.flatnonzero(naval.x.std(0) == 0), [8, 11])
    assert np.all(naval.scaling.x_scale[[8, 11]] == 1)


@real
@pytest.mark.parametrize(("fashion", "mean", "sd"), [(False, 0.1307, 0.3081), (True, 0.2860, 0.3530)])
def test_real_mnist(fashion, mean, sd):
    train, test = datasets.mnist(fashion=fashion, standardise=True)
    assert (train.size, test.size) == (60_000, 10_000)
    assert train.scaling.x_mean == pytest.approx(mean, abs=1e-4)
    assert train.scaling.x_scale == pytest.approx(sd, abs=1e-4)
