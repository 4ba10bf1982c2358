"""How a file is written, where that is said: separators, encodings, the decimal mark."""

import gzip

import numpy as np
import pytest

from credo.tables import Encoding, Source, files, open_table
from tests.tables.conftest import rows

TEXT = 'a,b\r\n1,é\r\n\r\n2,"ü\r\nß"\r\n'


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "utf-8-sig", "UTF8"])
@pytest.mark.parametrize("size", [1, 5, 2**21])
def test_text_in_any_encoding(written, encoding, size, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", size)
    monkeypatch.setattr(files, "BYTES_PER_COLUMN", 1)
    path, packed = written(TEXT.encode(encoding)), written(gzip.compress(TEXT.encode(encoding)), "t.csv.gz")
    for name in (path, packed):
        table = open_table(Source(name, encoding=encoding))
        assert [row for batch in table.batches() for row in batch.iter_rows()] == [("1", "é"), ("2", "ü\r\nß")]
        assert table.max_rows >= 2


def test_old_line_ends_in_another_encoding(written):
    path = written("a,b\r1,é\r2,ü".encode("mac-roman"))
    assert rows(Source(path, encoding="mac-roman")) == [("1", "é"), ("2", "ü")]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,é\n".encode("cp1252"), {}, "in line 2.*encoding='cp1252'"),
        ("a,b\n1,é\n".encode("utf-16"), {}, "encoding='utf-16'"),
        ("a,b\n1,e\n".encode("utf-16-le"), {}, "encoding='utf-16'"),
        (b"a,b\n1,\x81\n", {"encoding": "cp1252"}, "is not text in cp1252 .*pass another encoding"),
        (b"a,b\n1,2", {"encoding": "utf-16"}, "is not text in utf-16"),
        (b"a;b\n1;2\n", {"sep": "|"}, "'|', which does not occur among the names .*'a;b'; .*sep=';'"),
        (b"a,b\n1,2\n", {"sheet": "one"}, "sheet is 'one', which .* has no use for"),
        (b"a,b\n1,2\n", {"encoding": "utf-9"}, "'utf-9', which is unknown; .*did you mean 'utf-8'"),
        (b"a,b\n1,2\n", {"encoding": "rot13"}, "'rot13', which is unknown"),
        (b"a,b\n1,2\n", {"sep": "||"}, "sep is '||'; it is one character"),
        (b"a,b\n1,2\n", {"sep": '"'}, "it is one character"),
        (b"a,b\n1,2\n", {"decimal": ";"}, "decimal must be one of"),
    ],
)
def test_what_does_not_fit_the_file_is_refused(written, content, options, message):
    with pytest.raises(ValueError, match=message):
        rows(Source(written(content), **options))


def test_other_kinds_of_files_have_no_separators(tmp_path):
    with pytest.raises(ValueError, match=r"sep is ';', which .* has no use for"):
        Source(tmp_path / "t.parquet", sep=";")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a|b\n1|2\n", ("a", "b")),
        ("a\tb\n1\t2\n", ("a", "b")),
        ("a;b,c\n1;2,5\n", ("a", "b,c")),
        ("a,b;c\n1,2\n", ("a", "b;c")),
        ('a,"b|c"\n1,2\n', ("a", "b|c")),
        ("a|b\n", ("a", "b")),
        ("a;b\n1\n", ("a", "b")),
        ("a\n1;2\n", ("a",)),
    ],
)
def test_separators_are_found(written, text, columns):
    assert open_table(written(text)).columns == columns


def test_one_column_needs_no_separator(written):
    assert open_table(Source(written("a\n1\n2\n"), sep=";")).columns == ("a",)


def test_a_source_is_written_like_another():
    told = Source("new.csv", sep="|").like(Source("old.csv", sep=";", decimal=","))
    assert told == Source("new.csv", sep="|", decimal=",")
    assert Source("new.xlsx").like(Source("old.csv", sep=";", decimal=",")).told == {"decimal": ","}


def test_another_decimal_mark_can_be_told_at_prediction(written):
    encoding = Encoding.learn(written("a;y\n1,5;1\n2,25;2\n1.000;3\n"), "y")
    other = written('a,y\n1.5,1\n"2,000.25",2\n', "other.csv")
    with pytest.raises(ValueError, match=r"'a' is numeric, and holds '1.5' in row 1"):
        encoding.data(other)
    np.testing.assert_array_equal(encoding.data(Source(other, decimal=".")).x[:, 0], [1.5, 2000.25])


def test_numbers_that_have_grown_are_told(written):
    encoding = Encoding.learn(written("a,y\n900,1\n950,2\n3,3\n"), "y")
    new = written('a,y\n"1,100",1\n', "new.csv")
    with pytest.raises(ValueError, match=r"'1,100' in row 1 .*decimal='\.'"):
        encoding.data(new)
    assert encoding.data(Source(new, decimal=".")).x[0, 0] == 1100
