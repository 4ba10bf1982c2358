"""How a column is written is found from all of its cells, and what is written in two ways is refused by its row."""

import polars as pl
import pytest

from credo.data.missing import MISSING_LABEL
from credo.tables import Boolean, Categorical, Encoding, Numeric, files
from credo.tables.evidence import Evidence
from credo.tables.forms import PLAIN, Form


def form_of(cells, **options):
    evidence = Evidence("a", **options)
    evidence.see(pl.Series(cells))
    return evidence.form()


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1,234.50", "7", "1.234,50"], "'1,234.50' in row 1, and '1.234,50' in row 3"),
        (["1.5", "1,5"], "'1.5' in row 1, and '1,5' in row 2"),
        (["5%", "7%", "6"], "'5%' in row 1, and '6' in row 3"),
        (["$5", "5", "€5"], "'$5' in row 1, and '€5' in row 3"),
        (["13/04/2020", "1/2/2020", "04/13/2020"], "'13/04/2020' in row 1, and '04/13/2020' in row 3"),
    ],
)
@pytest.mark.parametrize("size", [8, 2**21])
def test_a_column_in_two_ways_is_refused_by_its_rows(written, cells, message, size, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", size)
    monkeypatch.setattr(files, "BYTES_PER_COLUMN", 1)
    path = written("a;b;y\n" + "".join(f"{cell};{place};{place}\n" for place, cell in enumerate(cells)))
    with pytest.raises(ValueError, match=rf"'a' is written in two ways: {message.replace('$', '[$]')}.*drop='a'"):
        Encoding.learn(path, "y")
    assert Encoding.learn(path, "y", drop=["a"]).names == ("b",)


def test_the_whole_column_tells(written, monkeypatch):
    """Also where only the last of many blocks does."""
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)
    path = written("a;y\n" + "".join(f"1.{n:03};{n}\n" for n in range(200)) + "2,5;1\n")
    (column,) = Encoding.learn(path, "y").columns
    assert column.form == Form(",", ".")
    assert (column.low, column.high) == (2.5, 1199)


@pytest.mark.parametrize(
    "cells",
    [
        ["a1", "2"],
        ["1.2.3", "4"],
        ["00123", "1,5"],
        ["1,23", "1,234,5"],
        ["12 kg", "12"],
        ["$5 $", "7"],
        ["(5", "6"],
        ["1e5%"],
    ],
)
def test_what_is_no_number_is_none(cells):
    assert form_of(cells) is None


def test_three_digits_of_money_are_thousands():
    assert form_of(["€ 1.234", "12"]) == Form(",", ".", "€")
    assert form_of(["$1,234", "12"]) == Form(".", ",", "$")
    assert form_of(["$1.25", "1.234"]) == Form(".", ",", "$")


def test_a_known_mark_leaves_no_doubt():
    assert not form_of(["1,234"]).is_sure
    assert form_of(["1,234"], decimal=".") == Form(".", ",")
    assert form_of(["1,234"], decimal=",") == Form(",", ".")
    assert form_of(["1.5"], decimal=",") is None


@pytest.mark.parametrize(
    ("cell", "unknown"),
    [("12,5", "written like $1,234.5"), ("€5", "dollars"), ("5%", "dollars"), ("five", "dollars")],
)
def test_a_new_cell_in_another_form_is_refused_or_missing(written, cell, unknown):
    encoding = Encoding.learn(written('a,y\n"$1,000",1\n$5,2\n7,3\n'), "y")
    new = written(f'a,y\n"{cell}",1\n', "new.csv")
    assert unknown in dict(encoding.says)["a"]
    with pytest.raises(ValueError, match=rf"'a' is numeric, and holds '{cell}' in row 1.*unknown='missing'"):
        encoding.data(new)
    with pytest.warns(UserWarning, match="they become the median 7"):
        assert encoding.data(new, unknown="missing").x[0, 0] == 7


def test_a_target_in_another_form_is_refused_by_its_row(written):
    encoding = Encoding.learn(written('a,y\n1,"$1,000"\n2,$5\n3,$7\n'), "y")
    with pytest.raises(ValueError, match=r"the target 'y' is '€5' in row 2, not dollars, written like"):
        encoding.data(written("a,y\n1,$5\n2,€5\n", "new.csv"))


def test_yes_and_no_are_known_in_any_spelling(written):
    encoding = Encoding.learn(written("a,y\n1,Yes\n2,Yes\n3,yes\n4,NO\n"), "y")
    assert encoding.target.labels == ("NO", "Yes")
    assert encoding.data(written("a,y\n1,no\n2,y\n3,\n", "new.csv")).y.tolist() == [0, 1, MISSING_LABEL]
    with pytest.raises(ValueError, match="'perhaps' in row 1, and the classes are NO, Yes"):
        encoding.data(written("a,y\n1,perhaps\n", "new.csv"))


def test_what_earlier_versions_stored_is_in_the_usual_form(written):
    path = written("a,b,y\n1,2020-01-01,1\n2,2021-01-01,2\n4,2022-01-01,3\n")
    encoding = Encoding.learn(path, "y")
    stored = encoding.to_dict()
    for one in (*stored["columns"], stored["target"]):
        assert one.pop("form")["decimal"] == "."
    assert Encoding.from_dict(stored) == encoding
    assert encoding.target.form == PLAIN


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["2 rooms", "3 rooms", "2 rooms"], Numeric),
        (["1st", "2nd", "3rd"], Categorical),
        (["10-20", "20-30", "10-20"], Categorical),
        (["<5", "5", "<5"], Categorical),
        (["10:30", "11:45", "10:30"], Categorical),
        (["yes", "No", "TRUE"], Boolean),
    ],
)
def test_what_cells_make_a_column(written, cells, kind):
    path = written("a,b,y\n" + "".join(f"{cell},{place},{place}\n" for place, cell in enumerate(cells)))
    assert type(Encoding.learn(path, "y").columns[0]) is kind


def test_a_cell_does_not_depend_on_those_beside_it():
    form, cells = Form(".", ","), ["007", "1,000", "1e3", "x"]
    together = form.numbers(pl.Series(cells)).to_list()
    assert together == [form.numbers(pl.Series([cell]))[0] for cell in cells] == [7, 1000, 1000, None]
