"""`credo compare`: which method is worth its cost on this table?"""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.completion import complete_methods, complete_network
from credo.cli.errors import require_folder
from credo.cli.voice import (
    Counts,
    Group,
    Json,
    Monotone,
    Precisions,
    Quiet,
    Seed,
    Smooth,
    Strength,
    Time,
    Verbose,
    Voice,
)
from credo.cli.written import Written, reads_tables


@reads_tables
def compare(
    file: Annotated[Path, typer.Argument(help="The table: .csv, .xlsx, .parquet or .npz.")],
    target: Annotated[str | None, typer.Option("--target", "-t", help="The column to predict.")] = None,
    methods: Annotated[
        str, typer.Option("--methods", "-m", help="Separated by commas.", autocompletion=complete_methods)
    ] = "map,deep_ensemble,laplace,nuts",
    test: Annotated[Path | None, typer.Option(help="A test table.")] = None,
    holdout: Annotated[float, typer.Option(help="Without a test table: the share of rows to judge on.")] = 0.2,
    network: Annotated[
        str, typer.Option("--network", "-n", help="linear, mlp:50,50, …", autocompletion=complete_network)
    ] = "mlp:50,50",
    task: Annotated[str, typer.Option(help="regression, binary or multi-class. [default: found from the target]")] = "",
    task_column: Annotated[str, typer.Option(help="The column whose levels are tasks: school.")] = "",
    group: Group = None,
    time: Time = None,
    counts: Counts = None,
    precisions: Precisions = None,
    drop: Annotated[str, typer.Option(help="Columns not to use: id,name.")] = "",
    monotone: Monotone = None,
    smooth: Smooth = None,
    strength: Strength = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the picture and the table.")] = Path("compare"),
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Fit several methods to one table and judge them on rows they have not seen: a table, a picture, and advice."""
    from credo import plot
    from credo._files import write_text
    from credo.runs import Config, directions  # lazy: imports JAX
    from credo.runs.comparing import compare_methods, recommend

    voice = Voice(as_json, quiet, verbose)
    require_folder(out)
    dropped = tuple(name.strip() for name in drop.split(",") if name.strip())
    config = Config(
        str(file),
        target,
        task=task,
        task_column=task_column,
        group=group or "",
        time=time or "",
        counts=counts or "",
        precisions=precisions or "",
        drop=dropped,
        network=network,
        monotone={} if monotone is None else directions(monotone),
        smooth=bool(smooth),
        strength=1.0 if strength is None else strength,
        seed=seed,
        **written(file).told,
    )
    result = compare_methods(
        config,
        [name.strip() for name in methods.split(",") if name.strip()],
        test=None if test is None else written(test),
        holdout=holdout,
        tell=voice.say,
        progress=voice.progress,
    )
    advice = recommend(result)
    out.mkdir(parents=True, exist_ok=True)
    plot.save(plot.comparison(result), out / "comparison.png")
    write_text(out / "comparison.csv", result.to_frame().to_csv())
    voice.say(result, markup=True)
    voice.say(advice)
    voice.say(f"Picture and table: {out / 'comparison.png'}, {out / 'comparison.csv'}")
    voice.result({"methods": result.to_dict(), "by": result.by, "recommendation": advice})
