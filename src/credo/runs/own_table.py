"""The table that a run was fitted to, where it still is what it was."""

from pathlib import Path

from credo.runs.config import Config
from credo.tables.files import open_table


def own_table(config: Config) -> Path:
    """The table that a run was fitted to; a ValueError or FileNotFoundError says what has become of it."""
    path = Path(config.data)
    if not path.exists():
        raise FileNotFoundError(
            f"{path}, which the run was fitted to, does not exist; pass a table with inputs: data=…"
        )
    if open_table(config.source).checksum != config.data_sha256:
        raise ValueError(
            f"{path} is not the file that the run was fitted to: its checksum differs; pass a table with inputs: data=…"
        )
    return path
