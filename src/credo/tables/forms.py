"""How the cells of a column of text are written: what stands between the digits, beside a number, first in a date."""

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from credo.tables.cells import dates, numbers

MONEY = {"$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "₹": "rupees"} | {
    code: code for code in ("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "SEK", "NOK", "DKK", "PLN")
}
CURRENCY = rf"[A-Z]{{0,2}}\p{{Sc}}|{'|'.join(code for code in MONEY if code.isalpha())}"
UNIT = r"%|[\p{L}\p{Sc}°][\p{L}\p{Sc}\d/²³·°^]*"
# In parentheses bookkeepers write what is owed.
NUMBER = (
    rf"^(?P<open>\()?\s*(?P<sign>[-+−])?\s*(?P<before>{CURRENCY})?\s*(?P<inner>[-+−])?"
    r"(?P<digits>[\d.,'’ \u00a0\u2009\u202f]*\d[.,]?)(?P<exponent>[eE][-+]?\d+)?"
    rf"\s*(?P<after>{UNIT})?\s*(?P<close>\))?$"
)
# Thousands may be set apart by spaces of several widths, and by straight and curved apostrophes.
APART = {"": "", ",": ",", ".": r"\.", " ": r"[ \u00a0\u2009\u202f]", "'": "['’]"}
MINUS = ["-", "−"]


@dataclass(frozen=True)
class Form:
    """How the cells of a column are written; columns that have types are what they are.

    Arguments:
        decimal: "." or ",".
        thousands: what may set thousands apart: ",", ".", a space or an apostrophe; "" for nothing.
        unit: what stands beside each number: "$", "%", "kg". A currency may be left out.
        order: of dates such as 3/4/2020: "day first" or "month first"; "" for numbers.
        is_sure: whether the column itself excludes any other form.

    >>> Form(",", ".", "€").numbers(pl.Series(["€ 1.234,56", "-3", "$5"])).to_list()
    [1234.56, -3.0, None]
    """

    decimal: Literal[".", ","] = "."
    thousands: Literal["", ",", ".", " ", "'"] = ""
    unit: str = ""
    order: Literal["", "day first", "month first"] = ""
    is_sure: bool = True

    @classmethod
    def of(cls, decimal: str) -> "Form":
        """The usual form of numbers with this decimal mark; the plain one if it is not known."""
        return {"": PLAIN, ".": cls(".", ","), ",": cls(",", ".")}[decimal]

    def told(self, decimal: str) -> "Form":
        """The form of the same column in a file of which the decimal mark is known."""
        if self.decimal == decimal and self.thousands:
            return self
        usual = Form.of(decimal)
        return replace(self, decimal=usual.decimal, thousands=usual.thousands, is_sure=True)

    @property
    def says(self) -> str:
        """What is special about it, in words."""
        if self.order:
            return self.order if self.is_sure else f"taken as {self.order}, which no day after the 12th confirms"
        if self.unit == "%":
            said = ["percent as shares, so 5% is 0.05"]
        else:
            said = [MONEY.get(self.unit, self.unit), self.thousands and f"written like {self._example}"]
        other = "," if self.decimal == "." else "."
        doubt = "" if self.is_sure else f" (no cell tells the decimal mark: if it is the other, decimal={other!r})"
        return ", ".join(filter(None, said)) + doubt

    def reads(self, texts: pl.Series) -> pl.Series:
        """Whether each of some clean texts is such a date, or each of the digits of `parts` such a number."""
        if self.order:
            return dates(texts, self.order).is_not_null()
        return texts.str.contains(self._digits).fill_null(False)

    def typed(self, cells: pl.Series) -> pl.Series:
        """Clean cells as what they stand for; null where one is not written so."""
        if self == PLAIN or cells.dtype != pl.String:
            return cells
        return dates(cells, self.order) if self.order else self.numbers(cells)

    def numbers(self, cells: pl.Series) -> pl.Series:
        """Clean cells as Float64; null where a cell is not a number that is written so."""
        if cells.dtype != pl.String or self == PLAIN:
            return numbers(cells)
        if self.decimal == "." and (not self.unit or self.is_money):
            plain = numbers(cells)
            if plain.null_count() == cells.null_count():
                return plain
            return plain.zip_with(plain.is_not_null(), self._numbers(cells))
        return self._numbers(cells)

    def _numbers(self, cells: pl.Series) -> pl.Series:
        found = parts(cells)
        has_unit = found["unit"].is_in(["", self.unit]) if self.is_money else found["unit"] == self.unit
        digits = found["digits"].str.replace_all(APART[self.thousands], "").str.replace(",", ".", literal=True)
        # Percent are read in one step, so that 3.3% is the number nearest to 0.033.
        text = found["sign"] + digits + found["exponent"].fill_null("e-2" if self.unit == "%" else "")
        is_so = has_unit & self.reads(found["digits"])
        return text.set(~is_so, None).cast(pl.Float64, strict=False).alias(cells.name)

    @property
    def is_money(self) -> bool:
        """Whether the unit is a currency."""
        return self.unit in MONEY or unicodedata.category(self.unit[-1:] or " ") == "Sc"

    @property
    def _digits(self) -> str:
        """What the digits of a number look like; a leading zero is a code's."""
        apart, decimal = APART[self.thousands], re.escape(self.decimal)
        return rf"^(?:(?:[1-9]\d{{0,2}}(?:{apart}\d{{3}})+|0|[1-9]\d*)(?:{decimal}\d*)?|{decimal}\d+)$"

    @property
    def _example(self) -> str:
        digits = f"1{self.thousands}234{self.decimal}5"
        return f"{self.unit}{digits}" if self.is_money else f"{digits} {self.unit}".strip()


PLAIN = Form()


def parts(cells: pl.Series) -> pl.DataFrame:
    """The sign, the digits, the exponent and the unit of numbers; digits are null where there is no number."""
    found = cells.str.extract_groups(NUMBER).struct.unnest()
    is_owed, signs = found["open"].is_not_null(), (found["sign"], found["inner"])
    num_signs = sum((one.is_not_null().cast(pl.Int8) for one in signs), is_owed.cast(pl.Int8))
    is_number = (
        (is_owed == found["close"].is_not_null())
        & (num_signs < 2)
        & (found["before"].is_null() | found["after"].is_null())
        & (found["exponent"].is_null() | found["after"].is_null() | (found["after"] != "%"))
    )
    minus = is_owed | signs[0].is_in(MINUS).fill_null(False) | signs[1].is_in(MINUS).fill_null(False)
    return pl.DataFrame(
        {
            "sign": minus.replace_strict({True: "-", False: ""}, return_dtype=pl.String),
            "digits": found["digits"].set(~is_number, None),
            "exponent": found["exponent"],
            "unit": found["before"].zip_with(found["before"].is_not_null(), found["after"]).fill_null(""),
        }
    )
