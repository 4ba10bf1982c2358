"""Cells of a table, of any type, as numbers, booleans, dates or words."""

from collections.abc import Iterable

import numpy as np
import polars as pl

from credo.tables.files import MISSING

TRUE = ("true", "yes", "t", "y")
FALSE = ("false", "no", "f", "n")
# Year first, with points, or with the name of the month: dates whose day and month cannot be confused.
DATE_LIKE = (
    r"^(\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{4}"
    r"|[A-Za-z]{3,9} \d{1,2},? \d{4})([ T]\d{1,2}:\d{2}.*)?$"
)
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %B %Y", "%d-%B-%Y", "%B %d, %Y", "%B %d %Y")
# Dates that can be confused, such as 3/4/2020.
CONFUSABLE = r"^\d{1,2}([-/])\d{1,2}[-/]\d{4}([ T]\d{1,2}:\d{2}.*)?$"
ORDERS = {"": (), "day first": ("%d/%m/%Y", "%d-%m-%Y"), "month first": ("%m/%d/%Y", "%m-%d-%Y")}
TIMES = ("", " %H:%M", " %H:%M:%S%.f")
# Types that become numbers, and in which unit.
UNITS = {pl.Duration: "seconds", pl.Time: "seconds since midnight"}
# Time zones are ignored: a column is assumed to come from one place.
ZONE = r"(\d:\d{2}\S*?)\s*(Z|[+-]\d{2}:?\d{2})$"


def clean(cells: pl.Series) -> pl.Series:
    """Text without surrounding spaces; null where a cell is empty, or says that it is.

    >>> clean(pl.Series([" a ", "", "NA"])).to_list()
    ['a', None, None]
    """
    if cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Object):
        raise ValueError(
            f"column {cells.name!r} holds {cells.dtype}, which is neither a number, a text nor a date; split it into "
            f"columns of those, or leave it out with drop={cells.name!r}"
        )
    if unit_of(cells):
        cells = (cells if cells.dtype == pl.Duration else cells.cast(pl.Duration("us"))).dt.total_microseconds() / 1e6
    if cells.dtype in (pl.Categorical, pl.Enum):
        cells = cells.cast(pl.String)
    if cells.dtype.is_decimal():
        return cells.cast(pl.Float64)
    if cells.dtype.is_float():
        return _without_nan(cells)
    if cells.dtype != pl.String or _are_plain_numbers(cells):
        return cells
    stripped = cells.str.strip_chars()
    return stripped.set(stripped.is_in(MISSING), None)


def unit_of(cells: pl.Series) -> str:
    """The unit of the numbers that `clean` makes of cells that are none."""
    return next((unit for dtype, unit in UNITS.items() if cells.dtype == dtype), "")


def order_of(cells: pl.Series) -> tuple[str, ...]:
    """The levels of an ordered category, in their order; none of any other column."""
    return tuple(cells.dtype.categories) if isinstance(cells.dtype, pl.Enum) else ()


def _are_plain_numbers(texts: pl.Series) -> bool:
    """Whether there is nothing to clean: most columns of a file are so, and looking is cheaper than cleaning."""
    values = texts.cast(pl.Float64, strict=False)
    return values.null_count() == texts.null_count() and _without_nan(values) is values


def _without_nan(values: pl.Series) -> pl.Series:
    """Floats with null for NaN; the same object where there is none."""
    # As an array nulls are NaN too.
    return values.fill_nan(None) if np.isnan(values.to_numpy()).sum() > values.null_count() else values


def are_codes(cells: pl.Series, values: pl.Series) -> bool:
    """Whether a number among clean cells is written with a leading zero, as postcodes are; `values`: the numbers.

    >>> cells = pl.Series(["12", "00123"])
    >>> are_codes(cells, numbers(cells))
    True
    """
    if cells.dtype != pl.String:
        return False
    # Patterns take longer than to look for whole numbers.
    is_whole = (array := values.to_numpy()) == np.floor(array)
    return bool(is_whole.any() and cells.filter(pl.Series(is_whole)).str.contains(r"^0\d+$").any())


def numbers(cells: pl.Series) -> pl.Series:
    """Clean cells as Float64; null where a cell is not a number.

    >>> numbers(pl.Series(["1e3", "-2", "two"])).to_list()
    [1000.0, -2.0, None]
    """
    if cells.dtype == pl.String or cells.dtype.is_numeric() or cells.dtype == pl.Null:
        return _without_nan(cells.cast(pl.Float64, strict=False))
    return _nothing(cells, pl.Float64)


def booleans(cells: pl.Series) -> pl.Series:
    """Clean cells as booleans; null where a cell is neither true nor false. 0 and 1 are numbers.

    >>> booleans(pl.Series(["yes", "No", "1"])).to_list()
    [True, False, None]
    """
    if cells.dtype == pl.Boolean:
        return cells
    if cells.dtype != pl.String:
        return _nothing(cells, pl.Boolean)
    lowered = cells.str.to_lowercase()
    return lowered.is_in(TRUE).set(~lowered.is_in(TRUE + FALSE), None)


def dates(cells: pl.Series, order: str = "") -> pl.Series:
    """Clean cells as datetimes; null where a cell is not a date.

    Arguments:
        order: of dates such as 3/4/2020: "day first" or "month first"; by default they are none.

    >>> dates(pl.Series(["2020-02-01", "1.2.2020", "1 Feb 2020", "2020-02-01 00:00", "3/4/2020"])).null_count()
    1
    """
    datetime = pl.Datetime("us")
    if cells.dtype.is_temporal() and cells.dtype not in (pl.Time, pl.Duration):
        local = cells.dt.replace_time_zone(None) if isinstance(cells.dtype, pl.Datetime) else cells
        return local.cast(datetime)
    if cells.dtype != pl.String or not cells.str.contains(f"{DATE_LIKE}|{CONFUSABLE}" if order else DATE_LIKE).any():
        return _nothing(cells, datetime)
    text = cells.str.replace(ZONE, "$1").str.replace(r"(\d)T(\d)", "$1 $2")
    found = _nothing(cells, datetime)
    for pattern in (day + time for time in TIMES for day in DAYS + ORDERS[order]):
        if found.null_count() > cells.null_count():
            found = found.zip_with(found.is_not_null(), text.str.to_datetime(pattern, strict=False, time_unit="us"))
    return found


def words(cells: pl.Series) -> pl.Series:
    """Clean cells as text."""
    return cells.cast(pl.String)


def twins(texts: Iterable[str]) -> tuple[str, ...]:
    """The first two that differ by case or spaces alone. They may be one word, or genotypes such as Aa and aa.

    >>> twins(["Bern", "New York", "bern"])
    ('Bern', 'bern')
    """
    seen: dict[str, str] = {}
    for text in texts:
        if (other := seen.setdefault(" ".join(text.casefold().split()), text)) != text:
            return other, text
    return ()


def _nothing(cells: pl.Series, dtype: type[pl.DataType] | pl.DataType) -> pl.Series:
    return pl.Series(cells.name, [None] * len(cells), dtype=dtype)
