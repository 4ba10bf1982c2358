"""Small tables, and runs that are fitted to them once."""

import datetime

import numpy as np
import pytest
from typer.testing import CliRunner

from credo.cli import app

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
    rng = np.random.default_rng(0)
    lines = []
    for number in range(90):
        city, size = rng.choice(["Bern", "Rome", "Ulm"]), rng.uniform(20, 150)
        sold = datetime.date(2020, 1, 1) + datetime.timedelta(days=int(rng.integers(900)))
        price = 2000 * size + 9000 * len(city) + rng.normal(0, 9000)
        shown = "" if rng.uniform() < 0.1 else f"{size:.1f}"
        lines.append(f"house {number},{city},{sold},{shown},CH,{price:.0f}\n")
    for name, rows in (("train.csv", lines[:60]), ("test.csv", lines[60:])):
        (folder / name).write_text("id,city,sold,size,country,price\n" + "".join(rows))
    return folder


@pytest.fixture(scope="session")
def run(credo, houses):
    result = credo("fit", houses / "train.csv", "--target", "price", "--out", houses / "run", *QUICK)
    assert result.exit_code == 0, result.output
    return houses / "run"
