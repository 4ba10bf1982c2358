"""Every row of a table has exactly one row among the predictions, in its place, whatever the file looks like."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credo.runs import Run
from credo.runs.config import Config
from credo.tables import Categorical, Encoding, Numeric, Target, files, open_table
from credo.tables.predictions import write

COLUMNS = (
    Numeric("a", num_missing=1, fill=7.0, low=0.0, high=9.0),
    Categorical("b", num_missing=1, levels=("x", "y"), fill="x"),
)
TEXTS = ["x", "y", None, "", "NA", "?", "-"]
NUMBERS = ["0", "1.5", "-2", " 3", None, "", "NA", "nan"]
CELLS = st.tuples(
    st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.sampled_from(["k", 'say "hi"', "two\nlines", ""])
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


def a_run(columns):
    """A run whose posterior answers with the first number of each row, and compiles nothing."""

    def predict(x):
        mean, zero = x[:, 0], np.zeros(len(x))
        return SimpleNamespace(mean=mean, std=zero, epistemic=zero, aleatoric=zero, interval=lambda level: (mean, mean))

    posterior = SimpleNamespace(predict=predict)
    return Run(None, Config("t.csv", "y"), Encoding(columns, Target("y", "regression"), 3), posterior)


def first_number(cell):
    text = (cell or "").strip()
    return COLUMNS[0].fill if text in ("", "NA", "nan") else float(text)


def quoted(cell):
    return '"' + cell.replace('"', '""') + '"' if set(cell or "") & set('"\n,') else cell or ""


def predicted(path, columns=COLUMNS, keep=("id",)):
    """The rows as they stand in a file of predictions."""
    out = path.with_name("out.parquet")
    assert write(a_run(columns).predict(path, keep=list(keep), unknown="missing"), out) == len(pl.read_parquet(out))
    return pl.read_parquet(out)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    rows=st.lists(CELLS, min_size=1, max_size=12),
    ending=st.sampled_from(["\n", "\r\n"]),
    blanks=st.lists(st.sampled_from(["", " "]), max_size=3),
    is_open=st.booleans(),
    has_mark=st.booleans(),
    size=st.sampled_from([5, 64, 2**21]),
)
def test_rows_of_csv(folder, rows, ending, blanks, is_open, has_mark, size):
    lines = [",".join([str(n), *map(quoted, row)]) for n, row in enumerate(rows)]
    for place, blank in enumerate(blanks):
        lines.insert(place * 2, blank)
    text = ending.join(["id,a,b,note", *lines]) + ("" if is_open else ending)
    path = folder / "t.csv"
    path.write_bytes(text.encode("utf-8-sig" if has_mark else "utf-8"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", size)
        found = predicted(path, keep=("id", "note"))
    assert found["id"].to_list() == [str(n) for n in range(len(rows))]
    assert found["note"].fill_null("").to_list() == [row[2] for row in rows]
    assert found["mean"].to_list() == [first_number(row[0]) for row in rows]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(rows=st.lists(st.tuples(st.none() | st.floats(-9, 9), st.sampled_from(["x", None])), min_size=1, max_size=9))
def test_rows_of_parquet_and_npz(folder, rows):
    numbers, texts = zip(*rows, strict=True)
    ids = np.arange(len(rows))
    pl.DataFrame(
        {"id": ids, "a": numbers, "b": texts}, schema_overrides={"a": pl.Float64, "b": pl.String}
    ).write_parquet(folder / "t.parquet")
    np.savez(folder / "t.npz", id=ids, a=np.array(numbers, float), b=np.array([text or "" for text in texts]))
    for name in ("t.parquet", "t.npz"):
        found = predicted(folder / name)
        assert found["id"].to_list() == ids.tolist()
        assert found["mean"].to_list() == [COLUMNS[0].fill if number is None else number for number in numbers]


@pytest.mark.parametrize("row", [",,", "NA,?,-", " , ,", '"",,'])
def test_a_row_without_any_cell_is_a_row(folder, row):
    (folder / "t.csv").write_text(f"a,b,c\n1,x,k\n{row}\n3,y,k\n")
    assert predicted(folder / "t.csv", keep=["c"])["mean"].to_list() == [1, COLUMNS[0].fill, 3]


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("a\n1\n\n3\n", [1, 7, 3]),
        ("a\n\n\n", [7, 7]),
        ("a\n1\n ", [1, 7]),
        ("\n\na\n1\n", [1]),
        ("a\r1\r\r3\r", [1, 7, 3]),
    ],
)
def test_a_blank_line_of_one_column_is_a_row(folder, text, mean):
    (folder / "t.csv").write_bytes(text.encode())
    assert predicted(folder / "t.csv", COLUMNS[:1], keep=["a"])["mean"].to_list() == mean
    assert sum(map(len, open_table(folder / "t.csv").batches())) == len(mean)


def test_fit_and_predict_agree_about_rows(folder):
    (folder / "t.csv").write_text("a,y\n1,1\n\n,\n2,2\n   \n3,3\n")
    encoding = Encoding.learn(folder / "t.csv", "y")
    assert (encoding.num_rows, encoding.num_without_target) == (3, 1)
    assert encoding.data(folder / "t.csv").size == 4
    assert len(predicted(folder / "t.csv", COLUMNS[:1], keep=["y"])) == 4
