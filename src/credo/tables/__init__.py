"""Tables in files, and how their columns become the numbers a network takes."""

from credo.tables.columns import Boolean, Categorical, Column, Constant, Date, Dropped, Numeric
from credo.tables.encoding import Encoding, read
from credo.tables.files import Table, open_table
from credo.tables.target import Target

__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "Constant",
    "Date",
    "Dropped",
    "Encoding",
    "Numeric",
    "Table",
    "Target",
    "open_table",
    "read",
]
