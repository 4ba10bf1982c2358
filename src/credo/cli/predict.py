"""`credo predict`: what a run says about new rows."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from credo.cli.voice import Json, Quiet, Unknown, Verbose, Voice


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit.")],
    file: Annotated[Path, typer.Argument(help="New rows: .csv, .parquet or .npz.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .csv, .parquet or .npz file. [default: CSV to the terminal]")
    ] = None,
    level: Annotated[float, typer.Option(help="The probability that the target lies between lower and upper.")] = 0.95,
    keep: Annotated[str, typer.Option(help="Columns to copy from the file: id,name.")] = "",
    unknown: Unknown = "error",
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Predict new rows, with uncertainty.

    Regression: mean, sd, epistemic, aleatoric, lower, upper. Epistemic (more data would settle it) and aleatoric (the
    noise that remains) are standard deviations, in the unit of the target: sd² = epistemic² + aleatoric².

    Classes: the probability of each (p_…), the most probable label, entropy and mutual_information in nats: the whole
    uncertainty, and its epistemic part.

    Every row of the file has one row, in its place. A blank line is no row, except in a CSV of one column, where it is
    a missing value. In a CSV that is written, a text that a spreadsheet would run as a formula begins with ': '=1+1.
    """
    from credo.runs import Run  # lazy: imports JAX
    from credo.tables.predictions import write, write_csv

    voice = Voice(as_json, quiet, verbose)
    loaded = Run.load(run)
    kept = [name.strip() for name in keep.split(",") if name.strip()]
    frames = loaded.predict(file, level=level, keep=kept, unknown=unknown)  # type: ignore[arg-type]
    if as_json and out is None:
        voice.result([row for frame in frames for row in frame.to_dicts()])
    elif out is None:
        write_csv(frames, sys.stdout.buffer)
        sys.stdout.buffer.flush()  # here, where an error is told
    else:
        num_rows = write(frames, out)
        voice.say(f"Predicted {num_rows:,} rows: {out}")
        voice.result({"rows": num_rows, "file": str(out)})
