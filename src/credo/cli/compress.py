"""`credo compress`: a run in fewer bytes."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.voice import Json, Overwrite, Quiet, Seed, Verbose, Voice
from credo.cli.written import Written, reads_tables


@reads_tables
def compress(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the compressed run.")] = Path("small"),
    to: Annotated[str, typer.Option(help="Its new size: 2%, 200000 (bytes) or '200 kB'.")] = "2%",
    by: Annotated[
        str | None, typer.Option(help="coreset, coreset+int8, int8, mixture, … [default: what loses least]")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A table with inputs like those to predict on. [default: the one of the run]")
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Keep a run in fewer bytes: few draws with weights, fewer bits, or whatever loses least of its predictions.

    The result is a run of its own: credo predict, evaluate and inspect take it as any other.
    """
    from credo.runs import Run, compressed  # lazy: imports JAX

    voice = Voice(as_json, quiet, verbose)
    inputs = None if data is None else written(data)
    small = compressed(Run.load(run), out, to=to, by=by, data=inputs, seed=seed, overwrite=overwrite)
    found = small.posterior.diagnostics
    voice.say(str(found))
    voice.say(f"Saved in {small.folder}. Next: credo predict {small.folder} new.csv -o out.csv")
    voice.result({"folder": str(small.folder), "made_from": str(run), **found.to_dict()})
