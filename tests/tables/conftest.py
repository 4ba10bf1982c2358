"""Tables in files."""

import pytest

from credo.tables import open_table


def rows(path):
    return [row for batch in open_table(path).batches() for row in batch.iter_rows()]


@pytest.fixture
def written(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
