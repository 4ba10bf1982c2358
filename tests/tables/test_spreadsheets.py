"""Excel files: one sheet is a table, of several one is chosen, and what is none is refused in words."""

import sys
import zipfile

import numpy as np
import polars as pl
import pytest
import xlsxwriter

from credo._machine import MemoryLimit
from credo.tables import Dropped, Encoding, Source, open_table, spreadsheets, table
from tests.tables.conftest import rows


@pytest.fixture
def book(tmp_path):
    """An Excel file with sheets of these rows."""

    def write(**sheets):
        path = tmp_path / "t.xlsx"
        with xlsxwriter.Workbook(path) as made:
            for name, content in sheets.items():
                sheet = made.add_worksheet(name)
                for place, cells in enumerate(content):
                    sheet.write_row(place, 0, cells)
        return path

    return write


ROWS = [["a", "b", "y"], [1, "x", 1.5], [2, None, 2.5], [None, None, None], [4.5, "7", 4]]


def test_a_sheet_is_a_table(book):
    path = book(rooms=ROWS)
    assert open_table(path).columns == ("a", "b", "y")
    assert open_table(path).max_rows == 4
    assert rows(path) == [(1, "x", 1.5), (2, None, 2.5), (None, None, None), (4.5, "7", 4)]


def test_rows_come_in_batches(book, monkeypatch):
    monkeypatch.setattr(table, "BATCH_ROWS", 3)
    assert [len(batch) for batch in open_table(book(rooms=ROWS)).batches()] == [3, 1]


def test_a_table_may_begin_anywhere(book):
    path = book(rooms=[[], ["", "a", "b"], ["", 1, "x"], ["", 2, "y"], ["", "", " "]])
    assert open_table(path).columns == ("a", "b")
    assert rows(path) == [(1, "x"), (2, "y")]


def test_a_late_text_makes_all_cells_texts(book):
    path = book(rooms=[["a", "y"], *([number, number] for number in range(2000)), ["many", 7]])
    assert rows(path)[-1] == ("many", 7)
    assert rows(path)[0] == ("0", 0)


def test_a_column_of_row_numbers_without_a_name_is_no_input(book):
    path = book(rooms=[["", "a", "y"], [5, 1, 1.5], [3, 2, 2.5], [9, 3, 4]])
    index, a = Encoding.learn(path, "y").columns
    assert isinstance(index, Dropped)
    assert a.name == "a"


def test_several_sheets_ask_for_one(book):
    path = book(train=ROWS, test=ROWS[:3])
    with pytest.raises(ValueError, match=r"has 2 sheets \(train, test\); choose one with sheet='train'"):
        open_table(path)
    assert open_table(Source(path, sheet="test")).max_rows == 2
    with pytest.raises(ValueError, match=r"has no sheet 'tets'; it has train, test; did you mean 'test'"):
        open_table(Source(path, sheet="tets"))


@pytest.mark.parametrize(
    ("content", "message"),
    [([], "sheet 'rooms' of .* is empty"), ([["a", "a"], [1, 2]], "several columns named 'a'")],
)
def test_sheets_that_are_no_table_are_refused(book, content, message):
    with pytest.raises(ValueError, match=message):
        open_table(book(rooms=content))


def test_damaged_files_are_refused(book, tmp_path):
    path = book(rooms=ROWS)
    whole = path.read_bytes()
    for content in (b"nothing of the kind", whole[:500], whole[:1000] + bytes(900) + whole[1900:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"not an Excel file \(\.xlsx\), or it is damaged"):
            open_table(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(ValueError, match=r"t\.xlsx"):
        open_table(path)


def test_sizes_are_checked_before_memory_is_taken(book, monkeypatch):
    monkeypatch.setattr(spreadsheets, "memory_limit", lambda: MemoryLimit(1000, "a test"))
    with pytest.raises(ValueError, match=r"unpacks to .* kB, and there are 1 kB \(a test\)"):
        open_table(book(rooms=ROWS))


def test_without_its_reader_it_says_what_to_install(book, monkeypatch):
    path = book(rooms=ROWS)
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(ValueError, match=r"fastexcel.* is not installed; pip install 'credo\[excel\]'"):
        open_table(path)


def test_cells_of_errors_are_missing(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "t.xlsx") as made:
        sheet = made.add_worksheet()
        sheet.write_row(0, 0, ["a", "y"])
        for place, value in enumerate(["#N/A", 2, "#DIV/0!", 4], start=1):
            sheet.write_formula(place, 0, "=NA()", value=value)
            sheet.write_number(place, 1, place)
    assert rows(tmp_path / "t.xlsx") == [(None, 1), (2, 2), (None, 3), (4, 4)]


def test_numbers_survive_to_the_bit(tmp_path):
    # Excel holds 15 digits.
    x = np.random.default_rng(0).standard_normal((50, 2)).round(13)
    pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0]}).write_excel(tmp_path / "t.xlsx")
    np.testing.assert_array_equal(Encoding.learn(tmp_path / "t.xlsx", "y").data(tmp_path / "t.xlsx").x, x)
