"""One or two looks at a table: what its columns are."""

from collections.abc import Mapping, Sequence

from credo.tables.column import Column
from credo.tables.columns import Dropped
from credo.tables.image_folder import ImageTable
from credo.tables.images import Images
from credo.tables.learning import MAX_LEVELS, Summary
from credo.tables.many_levels import Levels
from credo.tables.table import Table
from credo.tables.writing import look_at, seen_as_written


def summaries(table: Table, *, but: Sequence[str] = (), limits: Mapping[str, int] | None = None) -> dict[str, Summary]:
    """What is seen of each column when a table is read: once, if all numbers and dates are written in the usual way.

    Arguments:
        but: columns not to look at.
        limits: how many levels a column may have, where that is not `MAX_LEVELS`.
    """
    seen = {
        column: Summary(column, max_levels=(limits or {}).get(column, MAX_LEVELS), is_unnamed=column == table.unnamed)
        for column in table.columns
        if column not in but
    }
    look_at(table, seen)
    return seen | seen_as_written(table, seen)


def columns_of(
    table: Table, seen: Mapping[str, Summary], names: Sequence[str], drop: Sequence[str] = ()
) -> tuple[Column, ...]:
    """The columns of these names as what was seen of them suggests; those with many levels are looked at once more."""
    if isinstance(table, ImageTable):
        return (Images.learn(table),)
    many = {name: Levels(name) for name in names if name not in drop and seen[name].has_many_levels}
    look_at(table, many)

    def column(name: str) -> Column:
        if name in drop:
            return Dropped(name, reason="as requested")
        return many[name].column() if name in many else seen[name].column()

    return tuple(map(column, names))
