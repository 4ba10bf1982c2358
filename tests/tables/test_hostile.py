"""Tables that are odd, damaged or hostile: read rightly, or refused with a sentence."""

import datetime
import gzip
import io
import zipfile
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from credo import tables
from credo._machine import MemoryLimit
from credo.tables import Dropped, Encoding, Numeric, arrays, files, open_table
from credo.tables.predictions import write
from tests.tables.conftest import rows

Y = [1.5, 2.5, 4.0]


# -- text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a,b\r1,x\r2,y\r", "a,b\r1,x\r2,y", 'a,"b"\r1,"x"\r\r2,y\r', "\ufeffa,b\r1,x\r2,y"])
def test_carriage_returns_end_rows(written, text):
    assert open_table(written(text)).columns == ("a", "b")
    assert rows(written(text)) == [("1", "x"), ("2", "y")]


def test_short_rows_miss_their_last_cells_wherever_they_stand(written, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 4)
    monkeypatch.setattr(files, "BYTES_PER_COLUMN", 1)
    assert rows(written("a,b\n1\n2,x\n3\n")) == [("1", None), ("2", "x"), ("3", None)]


PACKED = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(5000)))


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (f"{'n' * 140_000},b\n1,2\n", "t.csv", "a column name of 140,000 characters"),
        ('a,b\n1,"x\n2,y\n', "t.csv", "ends within quotes"),
        ("\n \n\n", "t.csv", "is empty"),
        ("\ufeff", "t.csv", "is empty"),
        (gzip.compress(b"", mtime=0), "t.csv.gz", "is empty"),
        (PACKED[:-900], "t.csv.gz", "damaged or cut short"),
        (PACKED[:200] + b"\0" * 99 + PACKED[300:], "t.csv.gz", "damaged or cut short"),
        (b"a,b\n1,2\n", "t.csv.gz", "no gzip file"),
        (b"a,b\n1,x\n2,\xff\n", "t.csv", "UTF-8 .* in line 3"),
    ],
)
def test_text_that_is_no_table_is_refused(written, content, name, message):
    with pytest.raises(ValueError, match=message):
        rows(written(content, name))


def test_the_line_is_told_beyond_the_first_block(written, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)
    path = written(b"a,b\n" + b"1,2\n" * 500 + b"1,\xe9\n")
    with pytest.raises(ValueError, match="in line 502"):
        rows(path)


def test_folders_are_told_from_files(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        open_table(tmp_path)


# -- NPZ -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.array([1j, 2, 3]),
        np.array([(1, 2.0)] * 3, dtype=[("a", int), ("b", float)]),
        np.array([(1, 2.0)] * 3, dtype=[("α", int), ("β", float)]),
        np.array([1, "x", None], dtype=object),
    ],
)
@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_arrays_of_other_things_are_refused_by_name(tmp_path, array):
    np.savez(tmp_path / "t.npz", strange=array, y=Y)
    with pytest.raises(ValueError, match="holds 'strange'"):
        rows(tmp_path / "t.npz")


@pytest.mark.parametrize("dtype", ["g", "f2", ">f8", ">i4", "u8", "?", "S3", "m8[h]"])
def test_arrays_of_any_number_are_read(tmp_path, dtype):
    np.savez(tmp_path / "t.npz", a=np.array([0, 1, 0]).astype(dtype), y=Y)
    (column,) = Encoding.learn(tmp_path / "t.npz", "y").columns
    scale = 3600 if dtype == "m8[h]" else 1
    np.testing.assert_array_equal(
        column.encode(next(open_table(tmp_path / "t.npz").batches())["a"])[:, 0], [0, scale, 0]
    )


def npy(header_shape, data, dtype="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": header_shape})
    return file.getvalue() + data


def test_sizes_are_checked_before_memory_is_taken(tmp_path, monkeypatch):
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy((2**40, 2), b"\0" * 64))
    with pytest.raises(ValueError, match="is damaged: 'x' is of 64 bytes"):
        open_table(path)
    np.savez_compressed(path, x=np.zeros((1000, 50)))
    monkeypatch.setattr(arrays, "memory_limit", lambda: MemoryLimit(10_000, "a test"))
    with pytest.raises(ValueError, match=r"holds 4.* kB of arrays, and there are 10 kB \(a test\)"):
        open_table(path)


def test_names_of_matrices_are_not_taken_twice(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.ones((3, 2)), x1=np.ones(3))
    with pytest.raises(ValueError, match="several columns of one name"):
        open_table(tmp_path / "t.npz")


# -- Parquet ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([[1], [2], [3]]),
        pl.Series([[1], [2], [3]], dtype=pl.Array(pl.Int64, 1)),
        pl.Series([{"u": 1}, {"u": 2}, {"u": 3}]),
        pl.Series([b"a", b"b", b"c"]),
    ],
    ids=["list", "array", "struct", "binary"],
)
def test_columns_of_other_things_are_refused_by_name_or_dropped(tmp_path, cells):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"strange": cells, "a": [1, 2, 3], "y": Y}).write_parquet(path)
    with pytest.raises(ValueError, match=r"'strange' holds .* drop='strange'"):
        Encoding.learn(path, "y")
    with pytest.raises(ValueError, match="'strange' holds"):
        Encoding.learn(path, "strange")
    encoding = Encoding.learn(path, "y", drop=["strange"])
    assert isinstance(encoding.columns[0], Dropped)
    np.testing.assert_array_equal(encoding.data(path).x[:, 0], [1, 2, 3])
    with pytest.raises(ValueError, match=r"'strange' holds .* write \.parquet"):
        write([pl.read_parquet(path)], tmp_path / "out.csv")


@pytest.mark.parametrize(
    ("cells", "numbers", "says"),
    [
        ([Decimal("1.25"), None, Decimal("3.5")], [1.25, np.nan, 3.5], "number, 1.25 to 3.5"),
        ([datetime.timedelta(hours=1), None, datetime.timedelta(seconds=1.5)], [3600, np.nan, 1.5], "3600 seconds"),
        ([datetime.time(1), None, datetime.time(0, 0, 2)], [3600, np.nan, 2], "3600 seconds since midnight"),
    ],
)
def test_columns_that_can_be_numbers_are(tmp_path, cells, numbers, says):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": cells, "y": Y}).write_parquet(path)
    encoding = Encoding.learn(path, "y")
    assert says in dict(encoding.says)["a"]
    assert Encoding.from_dict(encoding.to_dict()) == encoding
    expected = np.where(np.isnan(numbers), encoding.columns[0].fill, numbers)
    np.testing.assert_array_equal(encoding.data(path).x[:, 0], expected)


def test_damage_within_a_parquet_file_is_told(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": np.arange(5000), "y": np.random.default_rng(0).normal(size=5000)}).write_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes(len(whole) - 1100) + whole[-1000:])
    with pytest.raises(ValueError, match="damaged"):
        rows(path)


# -- names and targets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [["u", "v", "u"], ["1", "2", "1"], ["yes", "no", "yes"]])
def test_a_column_may_be_called_count(written, cells):
    path = written("count,y\n" + "".join(f"{cell},{n}\n" for n, cell in enumerate(cells)))
    assert Encoding.learn(path, "y").columns[0].name == "count"
    assert Encoding.learn(path, "count").target.labels == tuple(sorted(set(cells)))


def test_the_target_cannot_be_dropped(written):
    with pytest.raises(ValueError, match="'y' is the target, and cannot be left out; take it out of drop"):
        Encoding.learn(written("a,y\n1,2\n2,3\n"), "y", drop=["y"])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_work_on_wide_tables_is_linear(tmp_path, suffix, monkeypatch):
    """Names are compared about as often as there are columns, when a table is opened, learned and encoded."""
    path, num = tmp_path / f"t.{suffix}", 600
    frame = pl.DataFrame({f"c{n}": [1.0 + n, 2.0, 3.5] for n in range(num)} | {"y": Y})
    write([frame], path)
    compared = []

    class Name(str):
        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    table = open_table(path)
    object.__setattr__(table, "columns", tuple(map(Name, table.columns)))
    tables.table.named(path, table.columns)
    names_of, listed = pl.DataFrame.columns.fget, []
    monkeypatch.setattr(pl.DataFrame, "columns", property(lambda frame: listed.append(frame.width) or names_of(frame)))
    encoding = Encoding.learn(table, Name("y"))
    assert all(type(column) is Numeric for column in encoding.columns)
    assert encoding.data(table).x.shape == (3, num)
    assert sum(len(x) for _, x in encoding.inputs(table)) == 3
    assert len(compared) < 30 * num
    assert sum(listed) < 30 * num


# -- what is written -------------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "＝1"]


def test_no_cell_of_a_csv_is_a_formula(tmp_path):
    num = len(FORMULAS)
    frame = pl.DataFrame(
        {
            "=name": FORMULAS,
            "label": pl.Series(FORMULAS, dtype=pl.Categorical),
            "text": ["-1.5", "+3", "-1e5", None, "x=1", "a-b", "'"],
            "number": [-1.5] * num,
        }
    )
    for suffix in ("csv", "parquet", "npz"):
        write([frame, frame], tmp_path / f"t.{suffix}")
    found = pl.read_csv(tmp_path / "t.csv", infer_schema=False)
    assert found.columns == ["'=name", "label", "text", "number"]
    for name in ("'=name", "label"):
        assert found[name].to_list() == [f"'{text}" for text in FORMULAS] * 2
    assert found["text"].to_list() == frame["text"].to_list() * 2
    assert found["number"].to_list() == ["-1.5"] * 2 * num
    assert pl.read_parquet(tmp_path / "t.parquet")["=name"].to_list() == FORMULAS * 2
    with np.load(tmp_path / "t.npz") as stored:
        assert stored["=name"].tolist() == FORMULAS * 2
