"""Tables as they are in the world, in messy/, each with what must come out beside it, cell by cell."""

import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from credo.tables import Boolean, Categorical, Date, Encoding, Numeric, Source, files, open_table
from credo.tables.cells import clean

TABLES = sorted(path for path in Path(__file__).with_name("messy").iterdir() if path.suffix != ".json")


def expected_of(path):
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def meaning(column, cells):
    """What a column makes of its cells, as JSON has it; what it says where it is not used."""
    if not isinstance(column, Boolean | Categorical | Date | Numeric):
        return column.says
    values = column.read(clean(cells)).to_list()
    return [instant(value) if isinstance(value, datetime.datetime) else value for value in values]


def instant(value):
    return value.date().isoformat() if value.time() == datetime.time() else value.isoformat()


def targets(data):
    known = [None if number < 0 or np.isnan(number) else number for number in data.y]
    return [None if one is None else data.classes[int(one)] if data.classes else one for one in known]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_cell_is_what_it_means(path):
    expected = expected_of(path)
    source = Source(path, **expected["read"])
    encoding = Encoding.learn(source, expected["target"])
    frame, data, said = pl.concat(open_table(source).batches()), encoding.data(source), dict(encoding.says)
    assert {*frame.columns} == {*expected["cells"]}
    for column in encoding.columns:
        cells, found = expected["cells"][column.name], meaning(column, frame[column.name])
        assert found.startswith(cells) if isinstance(cells, str) else found == cells
        if isinstance(column, Numeric):
            filled = [column.fill if cell is None else cell for cell in cells]
            assert data.x[:, data.names.index(column.name)].tolist() == filled
    assert targets(data) == expected["cells"][expected["target"]]
    for name, words in expected["says"].items():
        assert words in said[name]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_what_was_learned_is_stored(path):
    """The same after it was stored, in any order of rows, and in blocks of any size."""
    expected = expected_of(path)
    source = Source(path, **expected["read"])
    encoding = Encoding.learn(source, expected["target"])
    again = Encoding.from_json(encoding.to_json(), path)
    assert again == encoding
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", 24)
        patch.setattr(files, "BYTES_PER_COLUMN", 1)
        assert Encoding.learn(source, expected["target"]) == encoding
        np.testing.assert_array_equal(again.data(source).x, encoding.data(source).x)


def typed(cells):
    """Cells as a column that has a type, where all are of one."""
    known = [cell for cell in cells if cell is not None]
    if known and all(isinstance(cell, str) and cell[:4].isdigit() and cell[4:5] == "-" for cell in known):
        return pl.Series([None if cell is None else datetime.datetime.fromisoformat(cell) for cell in cells])
    return pl.Series(cells, strict=False)


def as_typed(path, expected):
    """What a table means, as a frame whose columns have types."""
    raw = pl.concat(open_table(Source(path, **expected["read"])).batches())
    frame = pl.DataFrame(
        {
            # What is not used is there all the same.
            name: raw[name].cast(pl.Int64) if isinstance(cells, str) else typed(cells)
            for name, cells in expected["cells"].items()
        }
    )
    renamed = {"column_1": "Unnamed: 0"} if isinstance(expected["cells"].get("column_1"), str) else {}
    return frame.select(raw.columns).rename(renamed)


def as_pandas(frame):
    return pd.DataFrame({cells.name: cells.to_list() for cells in frame})


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_is_the_same_in_every_format(path, tmp_path):
    expected = expected_of(path)
    source, target = Source(path, **expected["read"]), expected["target"]
    data, frame = Encoding.learn(source, target).data(source), as_typed(path, expected)
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_excel(tmp_path / "t.xlsx")
    for same in (tmp_path / "t.parquet", tmp_path / "t.xlsx", frame, as_pandas(frame)):
        again = Encoding.learn(same, target).data(same)
        assert again.names == data.names
        np.testing.assert_array_equal(again.x, data.x)
        np.testing.assert_array_equal(again.y, data.y)
