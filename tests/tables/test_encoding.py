"""From a table to numbers: each kind of column, at fit and at prediction."""

import datetime
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import credo
from credo import tables
from credo.tables import Boolean, ByTarget, Categorical, Constant, Date, Dropped, Encoding, Numeric

HOUSES = """id,city,sold,size,garden,country,empty,price
h01,Bern,2020-01-01,10,yes,CH,,1.5
h02,Rome,2020-07-01,,no,CH,,2.5
h03,Ulm,2021-01-01,30,,CH,,3.5
h04,Bern,,40,yes,CH,,4.5
h05,,2022-01-01,50,yes,CH,,5.5
h06,Rome,2020-01-01,60,no,CH,,
h07,Rome,2020-01-01,70,no,CH,,7.5
h08,Rome,2020-01-01,70,no,CH,,7.5
h09,Rome,2020-01-01,70,no,CH,,7.5
h10,Rome,2020-01-01,70,no,CH,,7.5
h11,Rome,2020-01-01,70,no,CH,,7.5
h12,Rome,2020-01-01,70,no,CH,,7.5
"""


@pytest.fixture
def table(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def houses(table):
    return Encoding.learn(table(HOUSES), "price")


def learned(table, cells):
    """What becomes of a column with these cells, beside one of numbers."""
    text = "a,b,y\n" + "".join(f"{cell},{number},{number}\n" for number, cell in enumerate(cells))
    return Encoding.learn(table(text), "y").columns[0]


def test_many_numbers_side_by_side_are_one_line(tmp_path):
    x = np.random.default_rng(0).normal(size=(50, 30))
    x[3, 20] = np.nan
    np.savez(tmp_path / "t.npz", x=x, y=x[:, 0])
    encoding = Encoding.learn(tmp_path / "t.npz", "y")
    lines = dict(encoding.says_in_short)
    assert list(lines) == ["x1 … x20", "x21", *(f"x{place}" for place in range(22, 31)), "y"]
    assert lines["x1 … x20"] == f"20 columns of numbers, {x[:, :20].min():g} to {x[:, :20].max():g}"
    assert lines["x21"] == dict(encoding.says)["x21"]
    assert len(encoding.says) == 31


def test_columns_of_few_numbers_are_told_from_those_of_many(tmp_path):
    """Numbers are not all counted, but as many as it takes."""
    num = 2000
    codes, constant, late = np.arange(num) % 7, np.full(num, 5.5), np.where(np.arange(num) < 1900, 1, np.arange(num))
    np.savez(tmp_path / "t.npz", a=np.linspace(0, 1, num), constant=constant, late=late, y=codes)
    encoding = Encoding.learn(tmp_path / "t.npz", "y")
    assert [type(column) for column in encoding.columns] == [Numeric, Constant, Numeric]
    assert encoding.target.task == "multi-class"


def test_every_kind_of_column(houses):
    kinds = {column.name: type(column) for column in houses.columns}
    assert kinds == {
        "id": Dropped,
        "city": Categorical,
        "sold": Date,
        "size": Numeric,
        "garden": Boolean,
        "country": Dropped,
        "empty": Dropped,
    }
    said = dict(houses.says)
    assert "hardly repeats" in said["id"]
    assert "3 levels (Bern, Rome, Ulm)" in said["city"]
    assert "a level of their own" in said["city"]
    assert "years since 2020-01-01" in said["sold"]
    assert "1 missing: the median 70" in said["size"]
    assert "the more frequent no" in said["garden"]
    assert "constant, always 'CH'" in said["country"]
    assert "every cell is missing" in said["empty"]
    assert "regression" in said["price"]
    assert "1 rows without it are unlabelled" in said["price"]


def test_the_numbers_of_each_row(houses, table):
    data = houses.data(table(HOUSES))
    assert data.names == houses.names
    assert (data.size, data.num_labelled) == (12, 11)
    row = {name: data.x[:, place] for place, name in enumerate(houses.names)}
    np.testing.assert_array_equal(row["city=Bern"][:5], [1, 0, 0, 1, 0])
    np.testing.assert_array_equal(row["city is missing"][:5], [0, 0, 0, 0, 1])
    np.testing.assert_allclose(row["sold: years"][:3], [0, 182 / 365.2425, 366 / 365.2425])
    np.testing.assert_array_equal(row["sold is missing"][:5], [0, 0, 0, 1, 0])
    np.testing.assert_array_equal(row["size"][:3], [10, 70, 30])
    np.testing.assert_array_equal(row["size is missing"][:3], [0, 1, 0])
    np.testing.assert_array_equal(row["garden"][:4], [1, 0, 0, 1])
    np.testing.assert_array_equal(data.y[:5], [1.5, 2.5, 3.5, 4.5, 5.5])
    # December is near January, and a Sunday near a Monday.
    assert abs(row["sold: year cos"][0]) > 0.99
    np.testing.assert_allclose(row["sold: week sin"] ** 2 + row["sold: week cos"] ** 2, 1)


def test_parquet_gives_the_same_numbers(houses, table, tmp_path):
    """Types that a file brings along end as the same numbers as text that is parsed."""
    frame = pl.read_csv(table(HOUSES), try_parse_dates=True).with_columns(
        pl.col("garden") == "yes", pl.col("city").cast(pl.Categorical)
    )
    assert frame.schema["sold"] == pl.Date
    frame.write_parquet(tmp_path / "table.parquet")
    again = Encoding.learn(tmp_path / "table.parquet", "price")
    assert again == houses
    np.testing.assert_array_equal(again.data(tmp_path / "table.parquet").x, houses.data(table(HOUSES)).x)


def test_small_batches_change_nothing(houses, table, monkeypatch):
    whole = houses.data(table(HOUSES))
    monkeypatch.setattr(tables.files, "BLOCK_BYTES", 64)
    assert Encoding.learn(table(HOUSES), "price") == houses
    np.testing.assert_array_equal(houses.data(table(HOUSES)).x, whole.x)


def test_what_was_learned_survives_a_file(houses, tmp_path):
    houses.save(tmp_path / "columns.json")
    assert Encoding.load(tmp_path / "columns.json") == houses
    altered = (tmp_path / "columns.json").read_text().replace("Bern", "Bonn")
    (tmp_path / "columns.json").write_text(altered)
    with pytest.raises(ValueError, match="is damaged"):
        Encoding.load(tmp_path / "columns.json")


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "-3e2"], Numeric),
        (["0", "1", "1"], Numeric),
        ([" 1", "2 ", "?"], Numeric),
        (["5", "5.0", "5"], Constant),
        (["1000000001", "1000000002"], Numeric),
        (["true", "FALSE", "True"], Boolean),
        (["2020-01-01 10:30", "2020-01-02 11:00"], Date),
        (["1.2.2020", "31.12.2021"], Date),
        (["3/4/2020", "5/6/2020"], Date),
        (["3/4/20", "5/6/20"], Categorical),
        (["1", "2", "three"], Categorical),
        (["yes", "no", "maybe"], Categorical),
        ([f"name {n}" for n in range(30)], Dropped),
        ([f"code {n % 120}" for n in range(600)], ByTarget),
    ],
)
def test_what_cells_make_a_column(table, cells, kind):
    assert type(learned(table, cells)) is kind


def test_times_of_day_are_kept(table):
    column = learned(table, ["2020-01-01T06:00:00Z", "2020-01-01T12:00:00Z"])
    assert column.has_times
    encoded = dict(zip(column.names, column.encode(pl.Series([datetime.datetime(2020, 1, 1, 6)]))[0], strict=True))
    assert encoded["a: day sin"] == pytest.approx(1)


def test_two_levels_are_one_column():
    column = Categorical("sex", levels=("f", "m"), fill="f")
    assert column.names == ("sex=m",)
    np.testing.assert_array_equal(column.encode(pl.Series(["m", "f"])), [[1], [0]])


# -- at prediction -------------------------------------------------------------------------------------------


def new_rows(houses, table, text, **options):
    return np.concatenate([x for _, x in houses.inputs(table(text, "new.csv"), **options)])


HEAD = "city,sold,size,garden\n"


def test_a_new_category_is_refused_or_missing(houses, table):
    with pytest.raises(
        ValueError, match=r"'city' is categorical, and holds 'Bernn' in row 2.*did you mean 'Bern'.*unknown='missing'"
    ):
        new_rows(houses, table, HEAD + "Bern,2020-01-01,1,yes\nBernn,2020-01-01,1,yes\n")
    x = new_rows(houses, table, HEAD + "Paris,2020-01-01,1,yes\n", unknown="missing")
    assert x[0, houses.names.index("city is missing")] == 1


@pytest.mark.parametrize("row", ["Bern,2020-01-01,large,yes", "Bern,soon,1,yes", "Bern,2020-01-01,1,perhaps"])
def test_cells_of_another_kind_are_refused_or_missing(houses, table, row):
    with pytest.raises(ValueError, match=r"in row 1.*unknown='missing'"):
        new_rows(houses, table, HEAD + row)
    assert np.isfinite(new_rows(houses, table, HEAD + row, unknown="missing")).all()


def test_a_missing_column_is_refused_unless_it_tells_nothing(houses, table):
    with pytest.raises(ValueError, match=r"no column 'size' \(the network was fitted with it\).*did you mean 'sizes'"):
        new_rows(houses, table, "city,sold,sizes,garden\nBern,2020-01-01,1,yes\n")
    assert new_rows(houses, table, HEAD + "Bern,2020-01-01,1,yes\n").shape == (1, len(houses.names))


def test_missing_where_nothing_was_is_filled_and_told(table):
    encoding = Encoding.learn(table("a,c,y\n1,5,1.5\n2,5,2.5\n4,5,3.5\n"), "y")
    with pytest.warns(UserWarning, match="had none at fit: they become the median 2"):
        x = new_rows(encoding, table, "a,c\n,5\n")
    np.testing.assert_array_equal(x, [[2, 5]])
    with pytest.warns(UserWarning, match="was always 5 at fit, so what it holds now is ignored"):
        np.testing.assert_array_equal(new_rows(encoding, table, "a,c\n3,7\n"), [[3, 5]])


def test_infinite_numbers_are_refused(table):
    with pytest.raises(ValueError, match="'a' holds infinite numbers"):
        tables.read(table("a,y\n1,1.5\ninf,2.5\n2,3.5\n"), target="y")


# -- targets ---------------------------------------------------------------------------------------------------


def target(table, cells, task=None):
    text = "a,y\n" + "".join(f"{number},{cell}\n" for number, cell in enumerate(cells))
    return Encoding.learn(table(text), "y", task=task).target


@pytest.mark.parametrize(
    ("cells", "task", "labels"),
    [
        (["1.5", "2.5", "4"], "regression", ()),
        (["3", "4", "5"] * 9, "regression", ()),
        (["no", "yes", "no"], "binary", ("no", "yes")),
        (["true", "false"], "binary", ("false", "true")),
        (["0", "1", "1.0"], "binary", ("0", "1")),
        (["-1", "1"], "binary", ("-1", "1")),
        (["b", "a", "c"], "multi-class", ("a", "b", "c")),
        (["2", "10", "1"] + [str(n) for n in range(1, 11)] * 6, "multi-class", tuple(str(n) for n in range(1, 11))),
    ],
)
def test_the_task_is_found(table, cells, task, labels):
    found = target(table, cells)
    assert (found.task, found.labels) == (task, labels)
    assert found.says.startswith(task)


def test_the_task_can_be_set(table):
    assert target(table, ["1", "2", "3"] * 9, "regression").task == "regression"
    assert target(table, ["3", "4", "5"] * 9, "classification").labels == ("3", "4", "5")


@pytest.mark.parametrize(
    ("cells", "task", "message"),
    [
        (["a", "b"], "regression", "holds 'a'; write numbers"),
        (["a", "b", "c"], "binary", "3 different values; choose task='multi-class'"),
        (["a", "b", "c"], "regresion", "did you mean 'regression'"),
        ([str(n) for n in range(200)], "multi-class", "more than 100 different values"),
        ([f"n{n}" for n in range(200)], None, "too many classes"),
        (["7", "7.0"], None, "is always '7': there is nothing to learn"),
        (["7", ""], None, "1 rows with a target"),
    ],
)
def test_targets_that_set_no_task_are_refused(table, cells, task, message):
    with pytest.raises(ValueError, match=message):
        target(table, cells, task)


def test_labels_are_numbered_in_order(table):
    data = tables.read(table("a,y\n1,no\n2,yes\n3,no\n"), target="y")
    np.testing.assert_array_equal(data.y, [0, 1, 0])
    assert data.classes == ("no", "yes")
    encoding = Encoding.learn(table("a,y\n1,no\n2,yes\n"), "y")
    with pytest.raises(ValueError, match="is 'ye' in row 1, and the classes are no, yes; did you mean 'yes'"):
        encoding.data(table("a,y\n1,ye\n", "test.csv"))


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("size,price\n1,2\n3,4\n", "prize", "no column 'prize'.*did you mean 'price'"),
        ("size,price\n1,2\n3,4\n", None, "pass target=… to name the column to predict"),
        ("size,price\n", "price", "names and no rows"),
        ("price\n1\n2\n", "price", "no column to predict 'price' from"),
        ("size,price\n5,1\n5,2\n", "price", "no column to predict 'price' from .*constant"),
    ],
)
def test_tables_that_cannot_be_learned_from_are_refused(table, text, target, message):
    with pytest.raises(ValueError, match=message):
        Encoding.learn(table(text), target)


# -- arrays and tables are the same -----------------------------------------------------------------------------


def as_csv(path, x, y):
    names = [f"x{place}" for place in range(1, x.shape[1] + 1)]
    pl.DataFrame({**dict(zip(names, x.T, strict=True)), "y": y}).write_csv(path)
    return path


def test_numbers_survive_text_to_the_bit(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3)) * 10.0 ** rng.integers(-12, 12, (500, 3))
    x[:, 2] = 1 / 3  # a constant column is what it is in an array
    y = rng.standard_normal(500)
    data = tables.read(as_csv(tmp_path / "t.csv", x, y), target="y")
    plain = credo.Data(x, y, standardise=True)
    assert data.x.dtype == np.float64
    np.testing.assert_array_equal(data.x, x)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.batch().x, plain.batch().x)


def test_large_tables_are_held_in_single_precision(tmp_path, monkeypatch):
    monkeypatch.setattr(tables.encoding, "MAX_DOUBLES", 100)
    x, y = np.random.default_rng(0).standard_normal((80, 2)), np.arange(80) / 7
    data = tables.read(as_csv(tmp_path / "t.csv", x, y), target="y")
    assert data.x.dtype == np.float32
    np.testing.assert_array_equal(data.x, x.astype(np.float32))


MEASURED = """
import itertools, resource, sys
from pathlib import Path
from credo.runs import Config, Run
from credo.tables import read
from credo.tables.predictions import write

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

folder, what = Path(sys.argv[1]), sys.argv[2]
def work(path):
    name = f"{what}-{path.stem}"
    config = Config(str(path), "y", method="map", settings={"num_steps": 50, "batch_size": 256})
    if what == "read":
        read(path, target="y")
    elif what == "fit":
        Run.fit(config, folder / name)
    else:
        write(Run.load(folder / "fit-small").predict(path), folder / f"{name}.csv")

work(folder / "small.csv")  # all that is imported and compiled counts as before
before = peak()
work(folder / "large.csv")
print(peak() - before)
"""


@pytest.mark.full
def test_a_million_rows_take_little_memory(tmp_path):
    """A CSV of 1,000,000 × 20 is read, fitted and predicted within four times its size in single precision."""
    rng = np.random.default_rng(0)
    names = [*(f"x{place}" for place in range(20)), "y"]
    with (tmp_path / "large.csv").open("wb") as file:
        for part in range(20):
            block = rng.standard_normal((50_000, 21), np.float32)
            pl.DataFrame(block, schema=names).write_csv(file, include_header=part == 0)
    with (tmp_path / "large.csv").open() as file:
        (tmp_path / "small.csv").write_text("".join(next(file) for _ in range(2000)))
    for what in ("read", "fit", "predict"):
        command = [sys.executable, "-c", MEASURED, str(tmp_path), what]
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        assert result.returncode == 0, result.stderr
        assert int(result.stdout) <= 4 * (4 * 1_000_000 * 20), what
    with (tmp_path / "predict-large.csv").open() as file:
        assert sum(1 for _ in file) == 1_000_001


def test_rows_without_a_target_tell_what_the_columns_are(table):
    """A city that only unlabelled rows have is a level, and no label is made up for them."""
    path = table("city,size,kind\n" + "Bern,1,a\nRome,2,b\n" * 6 + "Ulm,100,\nUlm,50,NA\n")
    encoding = Encoding.learn(path, "kind")
    assert (encoding.num_rows, encoding.num_without_target) == (12, 2)
    data = encoding.data(path)
    assert (data.size, data.num_labelled, data.classes) == (14, 12, ("a", "b"))
    np.testing.assert_array_equal(data.labelled, [True] * 12 + [False] * 2)
    np.testing.assert_array_equal(data.x[-2:, data.names.index("city=Ulm")], [1, 1])
    assert data.scaling.x_mean[data.names.index("size")] == pytest.approx((6 * 3 + 150) / 14)
    again = Encoding.from_dict(encoding.to_dict())
    assert again == encoding


def test_rows_outside_the_training_range_are_measured_in_widths_of_it(tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    train.write_text("size,sold,city,y\n10,2020-01-01,Bern,1\n30,2020-12-31,Ulm,2\n,2020-06-01,Bern,3\n")
    new.write_text("size,sold,city\n20,2020-03-01,Bern\n70,2020-03-01,Ulm\n,2020-03-01,Ulm\n5,2018-12-31,Bern\n")
    encoding = Encoding.learn(train, "y")
    ((_, x),) = encoding.inputs(new)
    distance, place = encoding.outside(x)
    # 2019 is 366 days before 2020 began and ended; 5 is a quarter of the range below 10.
    np.testing.assert_allclose(distance, [0.0, 2.0, 0.0, 366 / 365], rtol=1e-6)
    assert [encoding.names[index] for index in place[[1, 3]]] == ["size", "sold: years"]
    assert Encoding.from_dict(encoding.to_dict()) == encoding


def test_dates_of_an_earlier_version_have_no_end(tmp_path):
    train = tmp_path / "train.csv"
    train.write_text("sold,y\n2020-01-01,1\n2020-12-31,2\n2020-06-01,3\n")
    stored = Encoding.learn(train, "y").to_dict()
    del stored["columns"][0]["latest"]
    assert Encoding.from_dict(stored).outside(np.full((1, 5), 1e6))[0] == 0
