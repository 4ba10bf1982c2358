"""The command line starts at once, and helps."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import credo
from credo.cli import app, completion
from credo.inference.registry import METHODS
from credo.networks import from_text


@pytest.fixture
def command(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    return lambda *args: CliRunner().invoke(app, args)


def test_version(command):
    result = command("--version")
    assert result.exit_code == 0
    assert result.output == f"credo {credo.__version__}\n"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_has_examples(command, flag):
    result = command(flag)
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert "credo demo --out figures/" in result.output


def test_help_of_a_command(command):
    assert "--seed" in command("demo", "--help").output
    assert "sd² = epistemic_sd² + aleatoric_sd²" in command("predict", "--help").output


@pytest.mark.parametrize("name", ["fit", "predict", "evaluate", "compare", "inspect", "methods", "example", "demo"])
def test_every_command_is_there(command, name):
    assert f" {name} " in command("--help").output
    assert command(name, "--help").exit_code == 0


def test_unknown_command_is_an_error(command):
    result = command("dmo")
    assert result.exit_code == 2
    assert "demo" in result.output


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"]])
def test_help_starts_at_once(arguments):
    """Nothing heavy is imported before a command runs."""
    script = f"""
import sys
from credo.cli import app
try:
    app({arguments})
except SystemExit as end:
    code = end.code
heavy = set(sys.modules) & set("jax numpyro flax arviz matplotlib numpy polars pandas".split())
sys.exit("imported " + str(heavy) if heavy else code)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Usage:" in result.stdout


def test_demo_draws_figures_and_prints_a_table(command, tmp_path):
    out = tmp_path / "figures"
    result = command("demo", "--quick", "--out", str(out))
    assert result.exit_code == 0, result.output
    figures = sorted(out.glob("*.png"))
    assert [figure.stem for figure in figures] == ["calibration", "chains", "classification", "regression"]
    assert [page.stem for page in sorted(out.glob("*.html"))] == ["classification", "regression"]
    assert all(figure.read_bytes().startswith(b"\x89PNG") and figure.stat().st_size > 5000 for figure in figures)
    assert "What they know" in result.output
    assert re.search(r"regression.*new rows.*RMSE \d\.\d+.*sd \d", result.output)
    assert re.search(r"classification.*new rows.*accuracy \d\.\d+.*nats", result.output)
    assert "Regression on new rows:" in result.output
    # Figures of so few draws come with a warning in words.
    assert "Usable: " in result.output
    assert "calibration.png, chains.png, classification.png, regression.png" in result.output
    # The last thing said is where the reports are.
    last = "".join(result.output.splitlines()[-2:])
    assert str(out.resolve() / "regression.html") in last
    assert str(out.resolve() / "classification.html") in last


def test_the_shell_completes_names():
    assert set(completion.METHODS) == {"auto", *METHODS}
    assert completion.complete_method("nu") == ["nuts"]
    assert completion.complete_methods("map,lap") == ["map,laplace"]
    assert all(from_text(name, 1) for name in completion.complete_network(""))
