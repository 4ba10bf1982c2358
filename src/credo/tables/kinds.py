"""All kinds of columns by name, and a column from what was saved of it."""

from typing import Any

from credo._files import LoadError
from credo._schema import checked
from credo.tables.column import Column
from credo.tables.columns import Boolean, Categorical, Constant, Date, Dropped, Numeric, Task
from credo.tables.images import Images
from credo.tables.levels import ByTarget, Grouped
from credo.tables.roles import ROLES
from credo.tables.text import Text

INPUTS: tuple[type[Column], ...] = (
    Numeric,
    Constant,
    Boolean,
    Categorical,
    Grouped,
    ByTarget,
    Text,
    Date,
    Task,
    Images,
    Dropped,
)
COLUMN_TYPES: dict[str, type[Column]] = {column.kind: column for column in (*INPUTS, *ROLES.values())}


def column_from_dict(stored: dict[str, Any], source: Any = "columns") -> Column:
    """The column that `to_dict` described; `source` is where it was read.

    >>> column_from_dict(Boolean("smoker", fill=True).to_dict())
    Boolean(name='smoker', num_missing=0, fill=True)
    """
    kind = stored.get("kind")
    if not isinstance(kind, str) or kind not in COLUMN_TYPES:
        raise LoadError(f"{source} is damaged: there is no kind of column {kind!r}")
    return checked(source, {name: value for name, value in stored.items() if name != "kind"}, COLUMN_TYPES[kind])
