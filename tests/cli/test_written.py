"""How a file is written is said once, and holds for the run."""

import json

import numpy as np
import polars as pl
import pytest
import xlsxwriter

from credo.cli.commands import app
from credo.runs import Run
from credo.runs.config import Config
from tests.cli.conftest import QUICK

READING = ("fit", "predict", "evaluate", "explain", "update", "compare", "simplify", "distill", "compress", "label")
NUMBERS = np.arange(1, 13) / 4


def told(number):
    return f"{number:.2f}".replace(".", ",")


def german(numbers):
    """A table as an old German spreadsheet writes it, with a separator that nobody guesses."""
    rows = (f"{told(x)}#{'Köln' if x > 2 else 'Zürich'}#{told(1000 + 2 * x)} €" for x in numbers)
    return "Größe#Stadt#Preis\n" + "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def run(credo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    (folder / "train.csv").write_bytes(german(NUMBERS).encode("cp1252"))
    options = ("--sep", "#", "--encoding", "cp1252", "--decimal", ",")
    made = credo("fit", folder / "train.csv", "-t", "Preis", "-o", folder / "run", *QUICK, *options)
    assert made.exit_code == 0, made.output
    assert "euros, written like €1.234,5" in made.stdout
    return folder / "run"


def means(credo, *arguments):
    result = credo("predict", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [row["mean"] for row in json.loads(result.stdout)]


def test_a_run_keeps_how_its_table_is_written(credo, run, tmp_path):
    config = Config.read(run / "config.toml")
    assert (config.sep, config.decimal, config.encoding, config.sheet) == ("#", ",", "cp1252", "")
    again = credo("fit", "--config", run / "config.toml", "-o", tmp_path / "again", "--quiet")
    assert again.exit_code == 0, again.output
    first, second = Run.load(run).posterior, Run.load(tmp_path / "again").posterior
    assert all(np.array_equal(first.theta[name], second.theta[name]) for name in first.theta)


def test_what_is_said_of_a_new_file_goes_first(credo, run, tmp_path):
    expected = means(credo, run, run.parent / "train.csv")
    text = german(NUMBERS)
    (tmp_path / "tabs.csv").write_text(text.replace("#", "\t"), encoding="utf-16")
    assert means(credo, run, tmp_path / "tabs.csv", "--encoding", "utf-16", "--sep", "tab") == expected
    (tmp_path / "points.csv").write_text(text.replace(",", ".").replace("#", "|"), encoding="utf-8")
    options = ("--encoding", "utf-8", "--sep", "|", "--decimal", ".")
    assert means(credo, run, tmp_path / "points.csv", *options) == expected
    frame = pl.DataFrame({"Größe": NUMBERS, "Stadt": ["Köln" if x > 2 else "Zürich" for x in NUMBERS]})
    frame.write_parquet(tmp_path / "new.parquet")
    frame.write_excel(tmp_path / "new.xlsx")
    assert means(credo, run, tmp_path / "new.parquet") == means(credo, run, tmp_path / "new.xlsx") == expected


def test_evaluate_reads_as_the_run(credo, run):
    result = credo("evaluate", run, run.parent / "train.csv", "--json")
    assert result.exit_code == 0, result.output


def test_a_run_that_is_fitted_again_reads_all_its_tables_as_they_are_written(credo, run, tmp_path):
    folder = tmp_path / "run"
    config = ("--config", run / "config.toml", "-o", folder, "--quiet")
    assert credo("fit", *config).exit_code == 0
    for place, (encoding, sep) in enumerate([("utf-8", "|"), ("latin-1", ";")]):
        file = tmp_path / f"more_{place}.csv"
        file.write_bytes(german(NUMBERS + place).replace("#", sep).replace("€", "").encode(encoding))
        updated = credo("update", folder, file, "--encoding", encoding, "--sep", sep, "--json")
        assert updated.exit_code == 0, updated.output
        assert json.loads(updated.stdout)["refitted_because"]
    assert [one.written["encoding"] for one in Run.load(folder).updates] == ["utf-8", "latin-1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--encoding", "utf-9"), "encoding is 'utf-9', which is unknown"),
        (("--sep", "|"), "it has Größe#Stadt#Preis"),
        (("--decimal", "point"), "decimal must be"),
        (("--sheet", "one"), "sheet is 'one', which"),
        (("--encoding", "utf-8"), "say how it is written: --encoding cp1252"),
    ],
)
def test_what_does_not_fit_the_file_is_said_in_flags(credo, run, options, message):
    result = credo("predict", run, run.parent / "train.csv", *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_file_with_two_sheets_asks_for_one(credo, tmp_path):
    with xlsxwriter.Workbook(tmp_path / "t.xlsx") as book:
        for sheet in ("train", "test"):
            pl.DataFrame({"a": NUMBERS, "y": 2 * NUMBERS}).write_excel(book, worksheet=sheet)
    fit = ("fit", tmp_path / "t.xlsx", "-t", "y", "-o", tmp_path / "run", *QUICK)
    refused = credo(*fit)
    assert refused.exit_code == 2
    assert "has 2 sheets (train, test); choose one with --sheet train" in refused.stderr
    assert credo(*fit, "--sheet", "train").exit_code == 0
    assert len(means(credo, tmp_path / "run", tmp_path / "t.xlsx", "--sheet", "test")) == len(NUMBERS)


@pytest.mark.parametrize("command", READING)
def test_every_command_that_reads_tables_takes_the_same_options(command):
    import typer.main

    names = {name for one in typer.main.get_command(app).commands[command].params for name in one.opts}
    assert {"--sep", "--decimal", "--encoding", "--sheet"} <= names
