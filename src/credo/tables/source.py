"""A file with a table, and how it is written, where it does not say so itself."""

import codecs
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from credo._checks import require_one_of
from credo._text import nearest

# Which of these a file can be told, beside the decimal mark of its texts.
OPTIONS = {".xlsx": ("sheet",), ".parquet": (), ".npz": ()}
TEXT_OPTIONS = ("sep", "encoding")
ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16", "mac-roman", "shift-jis", "gb18030")


@dataclass(frozen=True)
class Source:
    """A file with a table, and how it is written; "" is found.

    Arguments:
        path: of the file.
        sep: what separates the cells of a CSV: any character but a quote.
        decimal: "." or ",", of numbers in texts; by default each column tells.
        encoding: of the text, as Python names it: utf-8 by default, cp1252 for old Windows, latin-1, utf-16.
        sheet: of an Excel file that has several.

    >>> Source("rooms.csv", sep="|").sep
    '|'
    """

    path: str | Path
    sep: str = ""
    decimal: str = ""
    encoding: str = ""
    sheet: str = ""

    def __post_init__(self) -> None:
        if len(self.sep) > 1 or self.sep in ('"', "\n", "\r") or not self.sep.isascii():
            raise ValueError(f"sep is {self.sep!r}; it is one character, such as ';', '|' or a tab")
        require_one_of(("", ".", ","), decimal=self.decimal)
        try:
            "".encode(self.encoding or "utf-8")
        except LookupError as error:
            raise ValueError(
                f"encoding is {self.encoding!r}, which is unknown; it may be {', '.join(ENCODINGS)}, …"
                f"{nearest(self.encoding, ENCODINGS)}"
            ) from error
        for name in {*TEXT_OPTIONS, "sheet"} - {*self._options}:
            if value := getattr(self, name):
                raise ValueError(f"{name} is {value!r}, which {self.path} has no use for: it is another kind of file")

    @classmethod
    def of(cls, file: "str | Path | Source") -> "Source":
        """A file of which nothing else is said, or the source itself."""
        return file if isinstance(file, Source) else cls(file)

    def like(self, other: "Source") -> "Source":
        """The file, written as another one where nothing else is said."""
        return replace(self, **{name: getattr(self, name) or getattr(other, name) for name in self._options})

    @property
    def told(self) -> dict[str, Any]:
        """What is said of how it is written."""
        return {name: value for name in self._options if (value := getattr(self, name))}

    @property
    def _options(self) -> tuple[str, ...]:
        return ("decimal", *OPTIONS.get(Path(self.path).suffix.lower(), TEXT_OPTIONS))

    @property
    def codec(self) -> str:
        """The name of the encoding, the same for all its spellings."""
        return codecs.lookup(self.encoding or "utf-8").name
