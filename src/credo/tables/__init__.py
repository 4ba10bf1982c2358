"""Tables in files, and how their columns become the numbers a network takes."""

from credo.tables.column import Column
from credo.tables.columns import Boolean, Categorical, Constant, Date, Dropped, Numeric
from credo.tables.encoding import Encoding, read
from credo.tables.files import open_table
from credo.tables.frames import FrameTable
from credo.tables.levels import ByTarget, Grouped
from credo.tables.roles import Counts, Group, Time
from credo.tables.source import Source
from credo.tables.table import Table
from credo.tables.target import Target
from credo.tables.text import Text

__all__ = [
    "Boolean",
    "ByTarget",
    "Categorical",
    "Column",
    "Constant",
    "Counts",
    "Date",
    "Dropped",
    "Encoding",
    "FrameTable",
    "Group",
    "Grouped",
    "Numeric",
    "Source",
    "Table",
    "Target",
    "Text",
    "Time",
    "open_table",
    "read",
]
