"""The command line: one small file per command. Nothing heavy is imported until a command runs."""

import typer

from credo._version import __version__
from credo.cli.demo import demo

EXAMPLES = """
Examples:

  credo demo                     fit two small networks, see a table, figures and reports

  credo demo --out figures/      put the figures elsewhere

  credo --version                which credo is this
"""

app = typer.Typer(
    name="credo",
    help="Bayesian neural networks: networks that know what they do not know.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"credo {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Bayesian neural networks: networks that know what they do not know."""


app.command()(demo)
