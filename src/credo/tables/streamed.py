"""Tables that do not fit into memory: encoded once, batch by batch, into a file whose rows can be read one by one."""

from pathlib import Path

from credo._machine import memory_limit
from credo._text import size_in_words
from credo.data import FileData
from credo.data.unpacked import RowWriter, room_for
from credo.tables import effects
from credo.tables.column import Unknown
from credo.tables.encoding import Encoding
from credo.tables.frames import TableFile, as_table
from credo.tables.roles import Role
from credo.tables.table import Table

# Above this share of the memory there is, a table stays in a file. Held, a number takes four bytes in the user's units
# and four in those of the model.
SHARE_IN_MEMORY, BYTES_PER_NUMBER = 0.25, 8


def is_too_large(encoding: Encoding, table: Table) -> bool:
    """Whether a table would take more than its share of the memory."""
    return BYTES_PER_NUMBER * table.max_rows * len(encoding.names) > SHARE_IN_MEMORY * memory_limit().num_bytes


def file_data(
    encoding: Encoding, file: TableFile, *, unknown: Unknown = "error", scratch: str | Path | None = None
) -> FileData:
    """A table as rows in files, as `encoding.training_data` gives them in memory: what cannot be streamed is refused.

    Arguments:
        unknown: "error", or "missing" to treat new categories as missing.
        scratch: the folder for the file; by default that of temporary files.
    """
    table = as_table(file)
    _require_plain(encoding, table)
    own, num_read = encoding.as_told(table.decimal), 0
    own.require_columns(table)
    folder = room_for(table.max_rows, len(own.names), scratch)
    with RowWriter(Path(folder.name), (len(own.names),), () if own.target.is_classes else None) as writer:
        for batch in table.batches():
            rows = range(num_read + 1, num_read + 1 + len(batch))
            writer.write(own.encode(batch, unknown=unknown, rows=rows), own.target.read(batch, rows=rows))
            num_read += len(batch)
    classes = own.target.labels or None
    return FileData.of(writer.rows, names=own.names, target=own.target.title, classes=classes, held=folder)


def _require_plain(encoding: Encoding, table: Table) -> None:
    """Refuse what needs all rows at once."""
    faults = {
        "a column that says which task a row is of": encoding.tasks is not None,
        "pictures": len(encoding.row) > 1,
        "several targets": bool(encoding.target.also),
        "censored targets": bool(encoding.target.censored),
        "a category of many levels, which is known by means of the target (drop it)": effects.are_in(encoding.columns),
        "a column of groups, times or counts": any(isinstance(one, Role) for one in encoding.columns),
        f"{encoding.num_without_target:,} rows without a target (leave them out)": encoding.num_without_target > 0,
    }
    found = [what for what, is_there in faults.items() if is_there]
    if found:
        needed = size_in_words(BYTES_PER_NUMBER * table.max_rows * len(encoding.names))
        raise ValueError(
            f"{table.path} takes {needed} in memory, more than {SHARE_IN_MEMORY:.0%} of {memory_limit()}, so its rows "
            f"stay in a file; that cannot hold {' or '.join(found)}; fit some of the rows"
        )
