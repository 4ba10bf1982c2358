"""`credo methods`."""

import json

import pytest
import typer
from typer.testing import CliRunner

from credo.cli.methods import methods
from credo.inference import auto, catalogue
from credo.inference.registry import METHODS


@pytest.fixture
def command(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    app = typer.Typer()
    app.command()(methods)
    return lambda *args: CliRunner().invoke(app, args)


def test_all_methods_fit_a_hundred_columns(command):
    result = command()
    assert result.exit_code == 0, result.output
    assert all(name in result.output for name in METHODS)
    assert "use it for" in result.output
    assert "credo methods NAME" in result.output
    assert max(map(len, result.output.splitlines())) <= 100


def test_one_method_with_its_settings(command):
    result = command("NUTS")
    assert result.exit_code == 0, result.output
    assert "credo.NUTS()" in result.output
    assert "max_depth" in result.output
    assert "a trajectory doubles at most this many times." in result.output
    assert "3,152 parameters" in result.output


def test_for_machines(command):
    found = json.loads(command("--json").output)
    assert [one["name"] for one in found] == list(METHODS)
    one = json.loads(command("laplace", "--json").output)
    assert one == json.loads(json.dumps(catalogue.entry("laplace").to_dict()))
    assert one["exact"] == "approximate"
    assert one["settings"][0] == {
        "name": "structure",
        "default": "'kronecker'",
        "meaning": one["settings"][0]["meaning"],
    }


def test_the_rules_of_auto(command):
    assert "mclmc from trained networks" in command("auto").output
    assert json.loads(command("auto", "--json").output) == auto.rules()
    assert all(any(name in case for name in METHODS) for case in auto.rules().values())


def test_for_the_docs(command):
    assert command("--markdown").output == catalogue.markdown()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nutz"], "did you mean 'nuts'?"),
        (["nuts", "--markdown"], "leave out"),
        (["--json", "--markdown"], "leave out"),
    ],
)
def test_what_cannot_be_shown(command, args, said):
    result = command(*args)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())
