"""`credo evaluate`: is a run right on a test table, and does it know when it is not?"""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.voice import Json, Quiet, Unknown, Verbose, Voice


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit.")],
    file: Annotated[Path, typer.Argument(help="A test table with the target: .csv, .parquet or .npz.")],
    report: Annotated[Path | None, typer.Option(help="Also write an HTML page, to open in a browser.")] = None,
    unknown: Unknown = "error",
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Judge a run on a test table: every score with its standard error, calibration in words, and a report."""
    import credo
    from credo.runs import Run  # lazy: imports JAX

    voice = Voice(as_json, quiet, verbose)
    loaded = Run.load(run)
    data = loaded.test_data(file, unknown=unknown)  # type: ignore[arg-type]
    scores = credo.evaluate(loaded.posterior, data)
    voice.say(str(scores))
    voice.result(scores.to_dict())
    if report is not None:
        title = f"What the network knows about {loaded.encoding.target.name}"
        columns = loaded.encoding.says_in_short
        path = credo.report(loaded.posterior, data, report, title=title, scores=scores, columns=columns)
        voice.say(f"Report to open in a browser: {path.resolve()}")
