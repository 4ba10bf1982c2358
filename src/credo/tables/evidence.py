"""How the cells of a column are written, found from all of them: whatever one cell excludes is excluded.

1,234 alone may be a thousand and more, or little more than one; 1,5 in another row leaves the second, 1,234.5 the
first.
"""

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import polars as pl

from credo.tables.cells import clean
from credo.tables.forms import Form, parts

# In this order: of those that all cells allow, the first is taken.
NUMBERS = (Form(".", ","), Form(",", "."), Form(".", " "), Form(",", " "), Form(".", "'"), Form(",", "'"))
DATES = (Form(order="day first"), Form(order="month first"))
MAX_UNITS = 3


@dataclass(frozen=True)
class Cell:
    """One cell of the column, for the error."""

    row: int
    text: str

    def __str__(self) -> str:
        return f"{self.text!r} in row {self.row}"


class Evidence:
    """What the cells of one column of text, seen batch by batch, leave of the ways to write numbers and dates.

    Arguments:
        name: of the column.
        decimal: "." or "," where it is known.

    >>> evidence = Evidence("size")
    >>> evidence.see(pl.Series(["1,234", "1,5"]))
    >>> evidence.form().numbers(pl.Series(["1,234"])).to_list()
    [1.234]
    """

    def __init__(self, name: str, decimal: str = "") -> None:
        self.name, self.num_rows = name, 0
        known = tuple(form for form in NUMBERS if decimal in ("", form.decimal))
        # All cells may be numbers, or dates, as long as each of them is one in some form.
        self.possible = [known, DATES]
        self.excluded: dict[Form, Cell] = {}
        self.units: dict[str, Cell] = {}
        self.marks: set[str] = set()

    def see(self, cells: pl.Series) -> None:
        """Take some more rows into account."""
        cleaned = clean(cells)
        places = cleaned.is_not_null().arg_true()
        known, rows = cleaned.gather(places), places + self.num_rows + 1
        for forms in list(self.possible) if len(known) else []:
            if not self._see(known, rows, forms):
                self.possible.remove(forms)
        self.num_rows += len(cells)

    def form(self) -> Form | None:
        """How all cells are written; None if they are neither numbers nor dates, a ValueError if not all in one way."""
        forms = next(iter(self.possible), ())
        unit = "" if forms == DATES else self._unit()
        if not forms or unit is None:
            return None
        left = [form for form in forms if form not in self.excluded]
        if not left:
            raise self._in_two_ways(self.excluded)
        if is_money := Form(unit=unit).is_money:
            # Cents have two digits: marks that are all followed by three set thousands apart.
            left.sort(key=lambda form: form.decimal in self.marks)
        is_one = len({(form.decimal, form.order) for form in left}) == 1
        return replace(left[0], unit=unit, is_sure=is_one or is_money or not (self.marks or left[0].order))

    def _see(self, cells: pl.Series, rows: pl.Series, forms: tuple[Form, ...]) -> bool:
        """Whether each cell can be read in one of these forms; those that do not read all of them are excluded."""
        found = None if forms == DATES else parts(cells)
        texts = cells if found is None else found["digits"]
        reads = {form: form.reads(texts) for form in forms if form not in self.excluded}
        for form, is_read in reads.items():
            if len(strange := (~is_read).arg_true()):
                self.excluded[form] = Cell(rows[strange[0]], cells[strange[0]])
        if self.excluded.keys() >= set(forms):
            each = (reads[form] if form in reads else form.reads(texts) for form in forms)
            if not reduce(or_, each).all():
                return False
        return found is None or self._see_units(found, cells, rows)

    def _see_units(self, found: pl.DataFrame, cells: pl.Series, rows: pl.Series) -> bool:
        """Whether what stands beside the numbers differs so little that it may be a unit."""
        self.marks |= {mark for mark in ".," if found["digits"].str.contains(mark, literal=True).any()}
        for unit in found["unit"].unique(maintain_order=True).head(MAX_UNITS + 1):
            place = (found["unit"] == unit).arg_true()[0]
            self.units.setdefault(unit, Cell(rows[place], cells[place]))
        return len(self.units) <= MAX_UNITS

    def _unit(self) -> str | None:
        """The unit of all numbers; None where they have several, a ValueError where those cannot be of one column."""
        if len(self.units) < 2:
            return next(iter(self.units), "")
        beside = [unit for unit in self.units if unit]
        are_money = all(Form(unit=unit).is_money for unit in beside)
        if are_money and len(beside) == 1:
            return beside[0]
        if are_money or beside == ["%"]:
            raise self._in_two_ways(self.units)
        return None

    def _in_two_ways(self, found: dict[Any, Cell]) -> ValueError:
        first, *_, last = sorted(found.values(), key=lambda cell: cell.row)
        return ValueError(
            f"column {self.name!r} is written in two ways: {first}, and {last}; write all of it in one, or leave the "
            f"column out with drop={self.name!r}"
        )
