"""The command line."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import credo
from credo.cli import app


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


def test_unknown_command_is_an_error(command):
    result = command("dmo")
    assert result.exit_code == 2
    assert "demo" in result.output


def test_help_starts_at_once():
    """Nothing heavy is imported before a command runs."""
    script = """
import sys
from credo.cli import app
try:
    app(["--help"])
except SystemExit as end:
    code = end.code
heavy = {"jax", "numpyro", "flax", "arviz", "matplotlib", "numpy"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else code)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Examples:" in result.stdout


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
    assert "Do not trust the uncertainties yet" in result.output
    assert "calibration.png, chains.png, classification.png, regression.png" in result.output
    # The last thing said is where the reports are.
    last = "".join(result.output.splitlines()[-2:])
    assert str(out.resolve() / "regression.html") in last
    assert str(out.resolve() / "classification.html") in last
