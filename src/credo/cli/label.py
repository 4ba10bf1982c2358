"""`credo label`: labels by people, the most informative items first."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credo.cli.completion import complete_method
from credo.cli.signals import advising
from credo.cli.voice import Json, Quiet, Verbose, Voice
from credo.cli.written import Written, reads_tables

if TYPE_CHECKING:
    from credo.labelling.lesson import Lesson
    from credo.labelling.session import Labelling


@reads_tables
def label(
    pool: Annotated[Path, typer.Argument(help="A table, a folder of images, lines of text (.txt), or arrays (.npz).")],
    target: Annotated[str | None, typer.Option("--target", "-t", help="The column to fill in.")] = None,
    classes: Annotated[
        str | None, typer.Option("--classes", "-c", help="cat,dog. [default: those that the target has already]")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The labels, .csv or .parquet.")] = Path("labels.csv"),
    page: Annotated[bool, typer.Option("--page", help="Label in a browser.")] = False,
    host: Annotated[str, typer.Option(help="Where the page listens; other than this machine it wants a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 8421,
    token: Annotated[str | None, typer.Option(help="That browsers must show. [default: made up where needed]")] = None,
    labeller: Annotated[str | None, typer.Option(help="Your name. [default: that of your account]")] = None,
    per_item: Annotated[int, typer.Option(help="How many people are asked about each item.")] = 1,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="Which method learns meanwhile (see credo methods). [default: an ensemble of ten, in seconds]",
            autocompletion=complete_method,
        ),
    ] = None,
    network: Annotated[
        str | None, typer.Option("--network", "-n", help="linear or mlp:50,50. [default: what suits the pool]")
    ] = None,
    acquisition: Annotated[
        str, typer.Option(help="What is asked first: margin, bald, batch_bald, entropy, random, …")
    ] = "margin",
    seed: Annotated[int, typer.Option(help="The same seed and answers give the same questions.")] = 0,
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Label a pool, at the terminal or in a browser: the most informative items come first.

    A model learns in the background and says what it believes, and why it asks. Every answer is on disk at once, in the
    log beside --out: stop whenever you like, and go on with the same command.
    """
    from credo.labelling.learner import BackgroundLearner  # lazy: imports JAX
    from credo.labelling.opening import opened

    voice = Voice(as_json, quiet, verbose)
    names = None if classes is None else [name.strip() for name in classes.split(",") if name.strip()]
    learner = BackgroundLearner(_lesson(method, network, acquisition, seed))
    options = {"target": target, "classes": names, "learner": learner, "per_item": per_item, "seed": seed}
    with (
        advising(lambda: f"every answer is kept: go on with the same command; the labels are in {out}"),
        opened(written(pool), out, **options) as labelling,  # type: ignore[arg-type]
    ):
        voice.say(f"{pool}: {len(labelling.pool):,} items, {labelling.progress().num_labels:,} with a label")
        if page:
            _serve(labelling, voice, host=host, port=port, token=token, labeller=labeller)
        else:
            _ask(labelling, labeller or getpass.getuser(), voice)
        _conclude(voice, labelling, out, target)


def _lesson(method: str | None, network: str | None, acquisition: str, seed: int) -> "Lesson":
    from credo.inference.registry import as_method  # lazy: imports JAX
    from credo.labelling.lesson import Lesson, default_method

    chosen = default_method() if method is None else as_method(method)
    return Lesson(chosen, network, acquisition, seed)


def _ask(labelling: "Labelling", labeller: str, voice: Voice) -> None:
    from rich.console import Console

    from credo.labelling.terminal import label_at_terminal  # lazy: imports JAX

    # Standard output is for the result, where that is wanted.
    label_at_terminal(labelling, labeller, console=Console(stderr=voice.as_json, highlight=False))


def _serve(
    labelling: "Labelling", voice: Voice, *, host: str, port: int, token: str | None, labeller: str | None
) -> None:
    try:
        from credo.labelling.server import serve
    except ModuleNotFoundError as error:
        raise ValueError(f"--page needs {error.name}, which is not installed; pip install 'credo[page]'") from error
    serve(labelling, host=host, port=port, token=token, labeller=labeller, say=voice.say)


def _conclude(voice: Voice, labelling: "Labelling", out: Path, target: str | None) -> None:
    """Say how far it has come, and what to do with the labels."""
    from dataclasses import asdict

    from credo.labelling.terminal import progress_line

    progress = labelling.progress()
    voice.say(progress_line(progress))
    voice.say(f"The labels are in {out}; go on with the same command.")
    if target is not None:
        voice.say(f"Next: credo fit {out} --target {target} --drop item,answer,labellers,disagreement --out run/")
    voice.result({"out": str(out), **asdict(progress)})
