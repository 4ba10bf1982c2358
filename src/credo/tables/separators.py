"""What separates the cells of a CSV file."""

from pathlib import Path

from credo.tables.lines import QUOTED, end_of_first_row

# A name holds a comma sooner than one of these.
MARKS = ("\t", "|", ";", ",")


def separator_of(path: Path, start: bytes, own: str, told: str) -> str:
    """The separator of a file, by its first two rows.

    Arguments:
        start: of the file, from the row of names on.
        own: the separator that its suffix suggests.
        told: by the user, "" if nothing.

    >>> separator_of(Path("t.csv"), b"size, m2;price\\n3,5;20\\n", own=",", told="")
    ';'
    """
    top, below = (start[: end_of_first_row(start)], start[end_of_first_row(start) :])
    names, row = (QUOTED.sub(b"", one).decode() for one in (top, below[: end_of_first_row(below)]))
    found = next((mark for mark in MARKS if mark in names and names.count(mark) == row.count(mark)), "")
    if not told:
        return found or next((mark for mark in (own, *MARKS) if mark in names), own)
    if told not in names and found:
        raise ValueError(
            f"sep is {told!r}, which does not occur among the names of {path}: {names.strip()[:200]!r}; leave it out, "
            f"or pass sep={found!r}"
        )
    return told
