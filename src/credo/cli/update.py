"""`credo update`: new rows for a run that is there."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credo.cli.signals import advising
from credo.cli.voice import Json, Quiet, Unknown, Verbose, Voice
from credo.cli.written import Written, reads_tables

if TYPE_CHECKING:
    from credo.runs import Run


@reads_tables
def update(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit.")],
    file: Annotated[Path, typer.Argument(help="New rows, with the target: .csv, .xlsx, .parquet or .npz.")],
    forgetting: Annotated[
        float | None,
        typer.Option(help="What is kept of what is known, at most 1: 0.9 for a world that drifts. [default: 1]"),
    ] = None,
    new_classes: Annotated[
        bool, typer.Option("--new-classes", help="Learn classes that the run does not know as new ones.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Learn a file that has been learned already.")] = False,
    unknown: Unknown = "error",
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Learn new rows without the old ones: what the run knows is the prior, and the folder holds what it knows then.

    Where that cannot be, the run is fitted again to all its tables, which must be where they were. Says how well the
    rows were predicted before they were learned, and whether the world has changed since.
    """
    from credo.runs import updated  # lazy: imports JAX

    voice = Voice(as_json, quiet, verbose)
    with advising(lambda: f"nothing has been learned: {run} is as it was"):
        after = updated(
            run,
            written(file),
            forgetting=forgetting,
            new_classes=new_classes,
            again=again,
            unknown=unknown,  # type: ignore[arg-type]
            progress=voice.progress,
        )
    _conclude(voice, after)


def _conclude(voice: Voice, run: "Run") -> None:
    """Say what has been learned."""
    learned = run.updates[-1]
    voice.say(f"{learned.file}: {learned.num_rows:,} rows")
    if learned.refitted_because:
        voice.say(f"Fitted again to all {len(run.updates) + 1} tables, since {learned.refitted_because}")
    if learned.log_score is not None:
        voice.say(
            f"Log score of a row, in nats: {learned.log_score:.3f} before it was learned, "
            f"{learned.log_score_after:.3f} now"
        )
    if learned.new_classes:
        voice.say(f"New classes: {', '.join(learned.new_classes)}")
    voice.say(f"Drift: {learned.drift}")
    if learned.rang:
        voice.say("The world may have changed: if so, update with --forgetting 0.5, or fit again to recent rows")
    total = run.posterior.provenance.num_data
    voice.say(
        f"Saved in {run.folder}, which knows {total:,} rows now. Next: credo predict {run.folder} new.csv -o out.csv"
    )
    voice.result({"folder": str(run.folder), "rows": total, **learned.to_dict()})
