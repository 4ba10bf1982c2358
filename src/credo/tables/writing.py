"""Columns of text whose numbers or dates are not written in the usual way: looked at again, as they are written."""

from collections.abc import Mapping
from typing import Protocol

import polars as pl

from credo.tables.evidence import Evidence
from credo.tables.learning import Summary
from credo.tables.table import Table


class Seeing(Protocol):
    """What takes the cells of a column into account, some at a time."""

    def see(self, cells: pl.Series) -> None: ...


def look_at(table: Table, seen: Mapping[str, Seeing]) -> None:
    """Read a table once, for some of its columns; not at all for none."""
    for batch in table.batches() if seen else ():
        for cells in batch.get_columns():
            if cells.name in seen:
                seen[cells.name].see(cells)


def seen_as_written(table: Table, seen: Mapping[str, Summary]) -> dict[str, Summary]:
    """The columns that are numbers or dates in another form: one look finds the form, and one reads them in it."""
    evidence = {name: Evidence(name, table.decimal) for name, one in seen.items() if _is_doubtful(one, table.decimal)}
    look_at(table, evidence)
    again = {name: seen[name].anew(one.form()) for name, one in evidence.items()}
    look_at(table, again)
    return again


def _is_doubtful(seen: Summary, decimal: str) -> bool:
    """Whether texts may be numbers or dates in another form than the usual one, as far as one look tells."""
    if not seen.is_text or seen.kind != "words":
        return seen.is_text and seen.kind == "numbers" and decimal == ","
    texts = pl.Series(list(seen.levels), dtype=pl.String)
    if not texts.str.contains("[0-9]").all():
        return False
    evidence = Evidence(seen.name, decimal)
    evidence.see(texts)
    return bool(evidence.possible)
