"""`credo example`: the paper's practical examples, each from data to figures and a verdict."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from credo.cli.voice import Seed
from credo.examples import EXAMPLES

example = typer.Typer(
    help="Run one of the paper's practical examples; without a name, list them.", invoke_without_command=True
)


Quick = Annotated[bool, typer.Option("--quick", help="Far too little computing, to see that it works.")]


@example.callback()
def listed(context: typer.Context) -> None:
    """Run one of the paper's practical examples; without a name, list them."""
    if context.invoked_subcommand is None:
        for name, line in EXAMPLES.items():
            typer.echo(f"{name:12}{line}")
        typer.echo("\nRun one with: credo example NAME --out FOLDER")


@example.command()
def conditions(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the verdict.")] = Path("credo-conditions"),
    sets: Annotated[int, typer.Option(min=1, help="Data sets of each problem, to average over.")] = 1,
    quick: Quick = False,
    seed: Seed = 0,
) -> None:
    """A function that rises, is even, or obeys an equation: with and without knowing it."""
    from credo.examples import conditions as program  # lazy: imports JAX

    program.main(out, num_sets=sets, quick=quick, seed=seed)


@example.command()
def mnist(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the verdict.")] = Path("credo-mnist"),
    data: Annotated[
        Path | None, typer.Option(help="Folder that holds mnist/; else CREDO_DATA, else embedded digits.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the images; the paper's are 10.")] = None,
    members: Annotated[int, typer.Option(min=1, help="Of the ensemble.")] = 10,
    prior: Annotated[
        Literal["wide", "narrow"], typer.Option(help="Of weights and biases: sd 5 and 25 (wide), or 1 and 5 (narrow).")
    ] = "wide",
    full: Annotated[bool, typer.Option("--full", help="The paper's 10 epochs of 10 members: up to an hour.")] = False,
    quick: Quick = False,
    seed: Seed = 0,
) -> None:
    """I: a digit, a digit of a class never seen, and white noise."""
    if full and (quick or epochs is not None or members != 10):
        raise typer.BadParameter("--full is the paper's training; leave out --quick, --epochs and --members")
    if full and data is None and not os.environ.get("CREDO_DATA"):
        raise typer.BadParameter("--full is for MNIST; name the folder that holds mnist/ by --data or CREDO_DATA")
    from credo.examples import mnist as program  # lazy: imports JAX
    from credo.examples.mnist_verdict import PAPER_EPOCHS

    settings = program.Settings(epochs=PAPER_EPOCHS if full else epochs, members=members, prior=prior)
    try:
        program.main(out, data=data, quick=quick, seed=seed, settings=settings)
    except FileNotFoundError as error:
        raise typer.BadParameter(str(error)) from error


@example.command()
def paperfold(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the verdict.")] = Path("credo-paperfold"),
    prior: Annotated[
        Literal["equal", "split"],
        typer.Option(help="N(0, 5²) on all eight (equal), or sd 1 on weights and 10 on biases (split)."),
    ] = "equal",
    quick: Quick = False,
    seed: Seed = 0,
) -> None:
    """III: a posterior with two modes, and which of five methods find and weigh them."""
    from credo.examples import paperfold as program  # lazy: imports JAX

    program.main(out, prior=prior, quick=quick, seed=seed)


@example.command()
def sparse(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the verdict.")] = Path("credo-sparse"),
    full: Annotated[bool, typer.Option("--full", help="The paper's 2,000 epochs.")] = False,
    quick: Quick = False,
    seed: Seed = 0,
) -> None:
    """II: nine outputs of which few are measured, and one by a broken sensor."""
    if full and quick:
        raise typer.BadParameter("--full is the paper's training; leave out --quick")
    from credo.examples import sparse as program  # lazy: imports JAX

    program.main(out, full=full, quick=quick, seed=seed)


@example.command()
def table(
    out: Annotated[Path, typer.Option(help="Folder for train.csv and test.csv.")] = Path("houses"), seed: Seed = 0
) -> None:
    """A table with words, dates and empty cells, to try the command line on."""
    from credo.examples import table as program  # lazy: imports NumPy

    train, test = program.main(out, seed=seed)
    typer.echo(f"Written: {train} and {test}. Next: credo fit {train} --target price --out run/")
