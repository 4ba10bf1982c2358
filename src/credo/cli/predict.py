"""`credo predict`: what a run says about new rows."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from credo.cli.voice import Json, Quiet, Unknown, Verbose, Voice
from credo.cli.written import Written, reads_tables


@reads_tables
def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit.")],
    file: Annotated[Path, typer.Argument(help="New rows: .csv, .xlsx, .parquet or .npz; or a folder of images.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .csv, .parquet or .npz file. [default: CSV to the terminal]")
    ] = None,
    level: Annotated[float, typer.Option(help="The probability that the target lies between lower and upper.")] = 0.95,
    keep: Annotated[str, typer.Option(help="Columns to copy from the file: id,name.")] = "",
    unknown: Unknown = "error",
    cost: Annotated[
        str,
        typer.Option(help="What wrong decisions cost, sick->well:10, or a file: adds the one of least expected cost."),
    ] = "",
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Predict new rows, with uncertainty.

    Regression: mean, sd, epistemic_sd, aleatoric_sd, lower, upper. The sds, epistemic (more data would settle it) and
    aleatoric (the noise that remains), are in the unit of the target: sd² = epistemic_sd² + aleatoric_sd².

    Classes: the probability of each (p_…), the most probable label, entropy and mutual_information in nats: the whole
    uncertainty, and its epistemic part.

    With --cost also decision, the class that costs least on average, and expected_cost: truth->decision:cost, several
    separated by commas, or a CSV with columns truth, decision and cost. What is not named costs 1.

    Both: outside, how far a row lies beyond the training rows: the largest distance of a number from its range there,
    in widths of that range, 0 inside. Nobody has seen what happens there: do not trust the intervals of such rows.

    Every row of the file has one row, in its place. A blank line is no row, except in a CSV of one column, where it is
    a missing value. In a CSV that is written, a text that a spreadsheet would run as a formula begins with ': '=1+1.
    """
    from credo.runs import Run  # lazy: imports JAX
    from credo.tables.predictions import write, write_csv

    voice = Voice(as_json, quiet, verbose)
    loaded = Run.load(run)
    kept = [name.strip() for name in keep.split(",") if name.strip()]
    frames = loaded.predict(written(file), level=level, keep=kept, unknown=unknown, cost=cost)  # type: ignore[arg-type]
    if as_json and out is None:
        voice.result([row for frame in frames for row in frame.to_dicts()])
    elif out is None:
        write_csv(frames, sys.stdout.buffer)
        sys.stdout.buffer.flush()  # here, where an error is told
    else:
        num_rows = write(frames, out)
        voice.say(f"Predicted {num_rows:,} rows: {out}")
        voice.result({"rows": num_rows, "file": str(out)})
