"""`credo simplify`: how simple can a run be?"""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.errors import require_folder
from credo.cli.voice import Json, Quiet, Seed, Verbose, Voice
from credo.cli.written import Written, reads_tables


@reads_tables
def simplify(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit.")],
    test: Annotated[
        Path | None, typer.Option(help="A table to judge on. [default: a fifth of what the run was fitted to]")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="The most it may take: 1%, 200000 (bytes) or '200 kB'.")] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the picture and the table.")] = Path("simplify"),
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Try every way to make a run smaller and faster: what each saves, what it loses, and which one to take."""
    from credo import plot
    from credo._files import write_text
    from credo.runs import Run, trade_off_of  # lazy: imports JAX

    voice = Voice(as_json, quiet, verbose)
    require_folder(out)
    judged = None if test is None else written(test)
    result = trade_off_of(Run.load(run), budget=budget, test=judged, seed=seed, progress=voice.progress)
    out.mkdir(parents=True, exist_ok=True)
    plot.save(plot.trade_off(result), out / "trade_off.png")
    write_text(out / "trade_off.csv", result.to_frame().to_csv())
    voice.say(result, markup=True)
    voice.say(f"Picture and table: {out / 'trade_off.png'}, {out / 'trade_off.csv'}")
    voice.result(result.to_dict())
