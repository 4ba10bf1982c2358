"""`credo evaluate`: is a run right on a test table, and does it know when it is not?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credo.cli.voice import Json, Overwrite, Quiet, Unknown, Verbose, Voice
from credo.cli.written import Written, reads_tables

if TYPE_CHECKING:
    from credo.runs import Judged


@reads_tables
def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit.")],
    file: Annotated[
        Path,
        typer.Argument(
            help="A test table with the target: .csv, .xlsx, .parquet or .npz; or a folder of images by class."
        ),
    ],
    report: Annotated[Path | None, typer.Option(help="Also write an HTML page, to open in a browser.")] = None,
    recalibrate: Annotated[
        Path | None, typer.Option(help="A table that the run has not seen, to calibrate it on before it is judged.")
    ] = None,
    conformal: Annotated[
        float | None,
        typer.Option(
            help="Also find sets that hold the target with this probability, however wrong the network is: 0.9. Half "
            "of the rows to calibrate on are for that; without such rows, half of the test rows."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Save the calibrated run in this folder, for credo predict.")
    ] = None,
    overwrite: Overwrite = False,
    unknown: Unknown = "error",
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Judge a run on a test table: every score with its standard error, calibration in words, and a report.

    Beside each score stand those of two predictions that know less, if the table of the fit is where it was: a
    constant, and a line. A score that is not better has learned nothing, or nothing that a line does not say.
    """
    import credo
    from credo.runs import Run, judged_on, require_free, save_calibrated  # lazy: imports JAX

    voice = Voice(as_json, quiet, verbose)
    if out is not None:
        if recalibrate is None and conformal is None:
            raise ValueError("--out saves a calibrated run; pass --recalibrate or --conformal too")
        require_free(out, resume=False, overwrite=overwrite)
    loaded = Run.load(run)
    held_out = None if recalibrate is None else written(recalibrate)
    found = judged_on(loaded, written(file), held_out=held_out, level=conformal, unknown=unknown)  # type: ignore[arg-type]
    _say(voice, found)
    saved = {} if out is None else {"folder": str(save_calibrated(found.run, out, overwrite=overwrite).folder)}
    if out is not None:
        voice.say(f"Saved in {out}. Next: credo predict {out} new.csv -o out.csv")
    before = {} if found.before is None else {"before_recalibration": found.before.to_dict()["scores"]}
    voice.result(found.scores.to_dict() | before | ({"conformal": found.sets} if found.sets else {}) | saved)
    if report is not None:
        title = f"What the network knows about {loaded.encoding.target.title}"
        columns = loaded.encoding.says_in_short
        path = credo.report(found.run.posterior, found.data, report, title=title, scores=found.scores, columns=columns)
        voice.say(f"Report to open in a browser: {path.resolve()}")


def _say(voice: Voice, found: "Judged") -> None:
    """The scores as a table, and what is to be known of them."""
    scores = found.scores
    voice.say("\n".join([f"{scores.task} on {scores.rows_judged}", *filter(None, [scores.site_judged])]))
    voice.table(*scores.cells())
    for detection in scores.detection.values():
        voice.say(f"foreign inputs by {detection}")
    if found.without_baselines:
        voice.say(f"No baselines: {found.without_baselines}")
    voice.say(scores.verdict)
    if found.before is not None:
        name = "lpd"
        voice.say(f"Recalibrated: {scores.label(name)} {scores[name]}, before {found.before[name]}")
        voice.say(f"Before it was recalibrated: {found.before.verdict}")
    if found.sets:
        sets = found.sets
        held = f"{sets['coverage']:.1%} of {found.scores.num_rows:,} rows"
        size = f"mean size {sets['mean_size']:.4g}"
        voice.say(f"Conformal sets of {sets['level']:.0%}, from {sets['num_data']:,} rows: hold {held}, {size}")
