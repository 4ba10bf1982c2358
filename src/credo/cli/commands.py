"""All commands, as one application."""

import typer

from credo._version import __version__
from credo.cli.compare import compare
from credo.cli.compress import compress
from credo.cli.demo import demo
from credo.cli.distill import distill
from credo.cli.errors import reported
from credo.cli.evaluate import evaluate
from credo.cli.example import example
from credo.cli.explain import explain
from credo.cli.fit import fit
from credo.cli.help import Command, Group
from credo.cli.inspect import inspect
from credo.cli.label import label
from credo.cli.methods import methods
from credo.cli.plan import plan
from credo.cli.predict import predict
from credo.cli.simplify import simplify
from credo.cli.update import update

EPILOG = """
Examples:

  credo fit train.csv --target price --out run/     fit a network to a table

  credo plan train.csv --target price               what will it cost?

  credo predict run/ new.csv -o out.csv             with its uncertainty

  credo evaluate run/ test.csv --report page.html   right, and sure of it?

  credo explain run/ test.csv                       which columns matter

  credo update run/ new.csv                         learn new rows

  credo compare train.csv --target price            which method is worth it?

  credo inspect run/                                what was fitted

  credo simplify run/                               how small can it be?

  credo distill run/ --out small/                   one pass, not hundreds

  credo compress run/ --to 2% --out small/          a fiftieth of its bytes

  credo label pool.csv --target kind                the best question first

  credo methods                                     every method and its limits

  credo example paperfold                           the paper's examples

  credo demo --out figures/                         all of it on embedded data
"""

app = typer.Typer(
    name="credo",
    cls=Group,
    help="Bayesian neural networks: networks that know what they do not know.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
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


COMMANDS = (
    *(fit, plan, predict, evaluate, explain, update, compare, inspect),
    *(simplify, distill, compress, label, methods, demo),
)
for command in COMMANDS:
    app.command(cls=Command)(reported(command))
app.add_typer(example, name="example")
for found in example.registered_commands:
    found.cls = Command
    found.callback = reported(found.callback) if found.callback else None
