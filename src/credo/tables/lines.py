"""The bytes of a text file in blocks of whole rows: unpacked, checked, without blank lines.

A row ends at a newline with an even number of quotes before it, so a cell in quotes may hold newlines.
"""

import gzip
import re
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

UTF8 = "utf-8"

# A row of more blocks than this is no row.
MAX_BLOCKS_PER_ROW = 20
# How much of a file tells what its rows end with.
PROBED = 2**21
QUOTED = re.compile(rb'"[^"]*"')
ENDING = re.compile(rb"\r?\n|\r")
BLANK = re.compile(rb"^(?: *\r?\n| +\Z)", re.MULTILINE)
# One of these is there wherever a line after the first is blank, and is found faster.
BLANK_SIGNS = (b"\n\n", b"\n\r", b"\n ")


def blocks(path: Path, size: int, encoding: str = UTF8) -> Iterator[bytes]:
    """The file in blocks of UTF-8, of about `size` bytes, that end where a row does."""
    rest, line = b"", 1
    for chunk in chunks(path, size, encoding):
        block = rest + chunk
        cut = _end_of_last_row(block)
        rest = block[cut:]
        if len(rest) > MAX_BLOCKS_PER_ROW * size:
            raise ValueError(
                f"{path} has a row of more than {len(rest) // 10**6} MB; is it a table, and are all quotes closed?"
            )
        if cut:
            yield _checked(path, block[:cut], line)
            line += block.count(b"\n", 0, cut)
    if rest.count(b'"') % 2:
        raise ValueError(f"{path} ends within quotes: that of line {line}, or one below it, is not closed; close it")
    if rest:
        yield _checked(path, rest + b"\n", line)


class _Recoded:
    """A file in another encoding, read as UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self.text = TextIOWrapper(file, encoding, newline="")

    def read(self, size: int) -> bytes:
        return self.text.read(size).encode()

    def seek(self, place: int) -> int:
        return self.text.seek(place)


def chunks(path: Path, size: int, encoding: str = UTF8) -> Iterator[bytes]:
    """The file, unpacked, some bytes at a time in UTF-8, with rows that end in newlines."""
    is_packed = path.name.lower().endswith(".gz")
    with gzip.open(path, "rb") if is_packed else path.open("rb") as raw:
        file: Any = raw if encoding == UTF8 else _Recoded(cast(IO[bytes], raw), encoding)
        try:
            # Old spreadsheets end rows with a carriage return alone.
            ending = ENDING.search(QUOTED.sub(b"cell", file.read(PROBED)))
            has_returns = ending is not None and ending[0] == b"\r"
            file.seek(0)
            for chunk in iter(partial(file.read, size), b""):
                while has_returns and chunk.endswith(b"\r") and (more := file.read(1)):
                    chunk += more  # the newline that may belong to it
                yield ENDING.sub(b"\n", chunk) if has_returns else chunk
        except UnicodeError as error:
            raise ValueError(f"{path} is not text in {encoding} ({error}); pass another encoding=…") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} is no gzip file, or it is damaged or cut short: {error}; get it again") from error


def end_of_first_row(block: bytes) -> int:
    """Where the first row ends."""
    end = quotes = 0
    while (newline := block.find(b"\n", end)) >= 0:
        quotes += block.count(b'"', end, newline)
        end = newline + 1
        if quotes % 2 == 0:
            return end
    return len(block)


def without_blank_lines(rows: bytes) -> bytes:
    """Whole rows without the lines among them that hold nothing but spaces.

    >>> without_blank_lines(b'1,x\\n\\n2,"y\\n\\nz"\\n')
    b'1,x\\n2,"y\\n\\nz"\\n'
    """
    if rows[:1] not in (b"\n", b"\r", b" ") and not any(sign in rows for sign in BLANK_SIGNS):
        return rows
    kept, after, counted, quotes = list[bytes](), 0, 0, 0
    for blank in BLANK.finditer(rows):
        quotes += rows.count(b'"', counted, blank.start())
        counted = blank.start()
        if quotes % 2 == 0:
            kept.append(rows[after : blank.start()])
            after = blank.end()
    return b"".join([*kept, rows[after:]])


def _end_of_last_row(block: bytes) -> int:
    """Where the last row that is whole ends; 0 if none is."""
    cut = block.rfind(b"\n") + 1
    quotes = block.count(b'"', 0, cut)
    while cut and quotes % 2:
        # In quotes, as are all newlines since the quote that opens the cell.
        opening = block.rfind(b'"', 0, cut)
        before = block.rfind(b"\n", 0, opening) + 1
        quotes -= block.count(b'"', before, cut)
        cut = before
    return cut


def _checked(path: Path, block: bytes, line: int) -> bytes:
    """The block, if it is text; `line` is the number of its first line."""
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = line + block.count(b"\n", 0, error.start)
        likely = "utf-16" if block.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "cp1252"
        raise ValueError(
            f"{path} is not text in UTF-8 ({error.reason} in line {bad}); is it a table? Save it as CSV, UTF-8, or say "
            f"how it is written: encoding={likely!r}"
        ) from error
    if b"\0" in block:
        raise ValueError(
            f"{path} is a binary file, not CSV, despite its name; save the table as CSV, UTF-8, or say so if it is "
            "text in UTF-16: encoding='utf-16'"
        )
    return block
