"""Small tables, and runs that are fitted to them once."""

import pytest
from typer.testing import CliRunner

from credo.cli import app
from credo.examples import table

QUICK = ("--method", "map", "--set", "num_steps=20", "--network", "mlp:4")


@pytest.fixture(scope="session")
def credo():
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def houses(folder):
    """Strings, dates, missing values, a constant column and an id, in train.csv and test.csv."""
    table.main(folder, num_train=60, num_test=30)
    return folder


@pytest.fixture(scope="session")
def run(credo, houses):
    result = credo("fit", houses / "train.csv", "--target", "price", "--out", houses / "run", *QUICK)
    assert result.exit_code == 0, result.output
    return houses / "run"
