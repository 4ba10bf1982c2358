"""Data frames in memory are the tables that they would be in a file, to the bit."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from credo.tables import Encoding, read
from credo.tables.frames import as_table, series_of

DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=7 * n) for n in range(40)]
TABLE = pl.DataFrame(
    {
        "city": ["Bern", "Rome", None, "Ulm"] * 10,
        "size": [None if n % 9 == 0 else n / 7 for n in range(40)],
        "rooms": [n % 5 for n in range(40)],
        "garden": [n % 3 == 0 for n in range(40)],
        "sold": DAYS,
        "note": [f"a {word} flat near stop {n}" for n, word in enumerate(["bright", "dark"] * 20)],
        "price": [n**1.5 for n in range(40)],
    }
)


def in_pandas(table):
    return pd.DataFrame({name: table[name].to_list() for name in table.columns}, index=range(5, 5 + len(table)))


@pytest.fixture
def forms(tmp_path):
    TABLE.write_csv(tmp_path / "t.csv")
    TABLE.write_parquet(tmp_path / "t.parquet")
    pandas = in_pandas(TABLE)
    pandas["city"], pandas["rooms"] = pandas["city"].astype("category"), pandas["rooms"].astype("Int64")
    pandas["sold"] = pd.to_datetime(pandas["sold"])
    return {"csv": tmp_path / "t.csv", "parquet": tmp_path / "t.parquet", "pandas": pandas, "lazy": TABLE.lazy()}


@pytest.mark.parametrize("form", ["csv", "parquet", "pandas", "lazy"])
def test_every_form_of_a_table_gives_the_same_bits(form, forms):
    encoding, other = Encoding.learn(TABLE, "price"), Encoding.learn(forms[form], "price")
    assert other == encoding
    np.testing.assert_array_equal(other.data(forms[form]).x, encoding.data(TABLE).x)
    np.testing.assert_array_equal(read(forms[form], target="price").y, TABLE["price"])


@pytest.mark.parametrize(
    ("cells", "dtype", "values"),
    [
        (pd.Series(["a", None, pd.NA]), pl.String, ["a", None, None]),
        (pd.Series([1, pd.NA], dtype="Int64"), pl.Int64, [1, None]),
        (pd.Series([True, None], dtype=object), pl.Boolean, [True, None]),
        (pd.Series([1, "x", 2.5], dtype=object), pl.String, ["1", "x", "2.5"]),
        (pd.Series([1, 2.5], dtype=object), pl.Float64, [1.0, 2.5]),
        (pd.Series([{"a": 1}, "b"], dtype=object), pl.String, ["{'a': 1}", "b"]),
        (
            pd.Series(pd.to_datetime(["2020-01-01 10:00+02:00"])),
            pl.Datetime,
            [datetime.datetime(2020, 1, 1, 10)],
        ),
        (np.array([np.timedelta64(90, "s")]), pl.Duration, [datetime.timedelta(seconds=90)]),
    ],
)
def test_cells_of_pandas(cells, dtype, values):
    found = series_of("a", cells)
    assert found.dtype == dtype
    assert found.to_list() == values


def test_what_is_wrong_with_a_frame_is_told():
    with pytest.raises(ValueError, match=r"the data frame has no column 'prize'.*did you mean 'price'"):
        read(TABLE, target="prize")
    with pytest.raises(ValueError, match="several columns named 'a'"):
        as_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="the data frame has names and no rows"):
        read(TABLE[:0], target="price")
