"""Tables in files: every format gives the same columns and rows, and what is no table is refused in words."""

import gzip

import numpy as np
import polars as pl
import pytest

from credo.tables import files, open_table
from tests.tables.conftest import rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,x\n2,y\n", [("1", "x"), ("2", "y")]),
        ("a,b\n1,x\n2,y", [("1", "x"), ("2", "y")]),
        ("a,b\r\n1,x\r\n2,y\r\n", [("1", "x"), ("2", "y")]),
        ("\ufeffa,b\n1,x\n", [("1", "x")]),
        ("a;b\n1;x\n", [("1", "x")]),
        ("a\tb\n1\tx\n", [("1", "x")]),
        ('a,b\n1,"x, and\ny"\n2,"say ""hi"""\n', [("1", "x, and\ny"), ("2", 'say "hi"')]),
        ("a,b\n1,x\n\n2,y\n", [("1", "x"), ("2", "y")]),
        ("a,b\n1,\n,NA\n", [("1", None), (None, None)]),
    ],
)
def test_csv_as_people_write_it(written, text, expected):
    path = written(text)
    assert open_table(path).columns == ("a", "b")
    assert rows(path) == expected


def test_small_blocks_cut_nothing(written, monkeypatch):
    """Blocks end where rows end, also where a cell has a newline in quotes."""
    monkeypatch.setattr(files, "BLOCK_BYTES", 7)
    path = written("n,text\n" + "".join(f'{n},"line\n{n}"\n' for n in range(40)))
    assert rows(path) == [(str(n), f"line\n{n}") for n in range(40)]
    assert open_table(path).max_rows >= 40


def test_all_formats_hold_the_same(written, tmp_path):
    frame = pl.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    frame.write_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", a=frame["a"].to_numpy(), b=np.array(["x", "y"]))
    packed = written(gzip.compress(b"a,b\n1.5,x\n2.5,y\n"), "t.csv.gz")
    assert rows(tmp_path / "t.parquet") == rows(tmp_path / "t.npz") == [(1.5, "x"), (2.5, "y")]
    assert rows(packed) == [("1.5", "x"), ("2.5", "y")]
    assert {open_table(tmp_path / f"t.{kind}").max_rows for kind in ("parquet", "npz")} == {2}


def test_a_matrix_has_numbered_columns(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.arange(6.0).reshape(3, 2), y=np.arange(3))
    assert open_table(tmp_path / "t.npz").columns == ("x1", "x2", "y")
    assert rows(tmp_path / "t.npz")[1] == (2.0, 3.0, 1)
    np.savez(tmp_path / "t.npz", label=np.array(["a", "b"]), embedding=np.eye(2))
    assert open_table(tmp_path / "t.npz").columns == ("label", "embedding1", "embedding2")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "t.csv", "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe", "t.csv", "is not text in UTF-8.*Save it as CSV"),
        (b"a,b\n\x00\x01,2\n", "t.csv", "is a binary file, not CSV"),
        (b"a,a\n1,2\n", "t.csv", "several columns named 'a'"),
        (b"a,b\n1,2,3\n", "t.csv", "every row must have as many cells"),
        (b"a,b\n1,2\n", "t.txt", "unknown suffix"),
        (b"nothing of the kind", "t.parquet", "not a Parquet file"),
        (b"nothing of the kind", "t.npz", "not an NPZ file"),
    ],
)
def test_what_is_no_table_is_refused(written, content, name, message):
    with pytest.raises(ValueError, match=message):
        rows(written(content, name))


def test_places_without_a_table_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_table(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        open_table(tmp_path / "folder.csv")


@pytest.mark.parametrize("arrays", [{"x": np.ones((2, 3, 4)), "y": np.ones(2)}, {"a": np.ones(2), "b": np.ones(3)}])
def test_arrays_that_are_no_table_are_refused(tmp_path, arrays):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match="store x of shape"):
        open_table(tmp_path / "t.npz")
