"""Runs of tables that stay in a file, because memory has no room for them."""

from dataclasses import replace

from credo import networks
from credo.data import Data, FileData
from credo.models.found import ANY
from credo.runs.config import Config
from credo.tables.encoding import Encoding
from credo.tables.giveaways import point_out
from credo.tables.streamed import file_data
from credo.tables.table import Table

# Rows from anywhere that a model is made by and giveaways are looked for in, and those that a verdict is found on.
ROWS_SEEN, ROWS_JUDGED = 2**16, 2**12
# What `table` is for so many rows.
NETWORK = "table:100"


def in_file(config: Config, encoding: Encoding, table: Table) -> tuple[FileData, Data, Config]:
    """The rows of a table in a file, some of them in memory, and the config with what is settled by their number.

    What a likelihood is found by are all targets, so that of numbers is that of any.
    """
    if config.monotone or config.smooth:
        raise ValueError(
            "monotone and smooth are conditions at the training rows, which stay in a file; leave them out, or fit "
            "some of the rows"
        )
    if config.likelihood == "auto":
        config = replace(config, likelihood=ANY)
    if networks.is_table(config.network) and ":" not in config.network:
        config = replace(config, network=NETWORK)
    data = file_data(encoding, table)
    seen = some_of(data, ROWS_SEEN)
    point_out(encoding.columns, seen)
    return data, seen, config


def some_of(data: FileData, num_rows: int) -> Data:
    """Rows from anywhere, under the scaling of all."""
    return next(data.shuffled(min(num_rows, data.size)))
