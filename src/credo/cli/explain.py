"""`credo explain`: what a run goes by, and what makes it unsure."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credo.cli.errors import require_folder
from credo.cli.voice import Json, Quiet, Seed, Unknown, Verbose, Voice
from credo.cli.written import Written, reads_tables

if TYPE_CHECKING:
    from credo import Explanation


@reads_tables
def explain(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit.")],
    file: Annotated[Path, typer.Argument(help="A test table with the target: .csv, .xlsx, .parquet or .npz.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also draw it, into this folder.")] = None,
    rows: Annotated[int, typer.Option(help="How many of the most uncertain rows to explain.")] = 5,
    seed: Seed = 0,
    unknown: Unknown = "error",
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say which columns matter, how the prediction depends on them, and what makes single rows uncertain.

    Importance is the fall of R² when a column is shuffled: how much worse the network predicts without it. Its error is
    that of the network, which could have learned another function, and of the table, which could have other rows.

    All of it is about what the network does, and no proof of causes. It costs at most 20 predictions of the table.
    """
    import credo
    from credo.runs import Run  # lazy: imports JAX

    voice = Voice(as_json, quiet, verbose)
    if out is not None:
        require_folder(out)
    loaded = Run.load(run)
    found = credo.explain(loaded.posterior, loaded.test_data(written(file), unknown=unknown), num_rows=rows, seed=seed)  # type: ignore[arg-type]
    voice.say(f"How much R² falls when a column is shuffled, on {found.num_rows:,} rows of {file}")
    voice.table(("column", "fall of R²", "standard error", "in plain words"), found.table())
    for row in found.rows:
        voice.say(f"{str(row)[0].upper()}{str(row)[1:]}")
    if out is not None:
        voice.say(f"Pictures: {', '.join(str(path) for path in _drawn(found, out))}")
    voice.result(found.to_dict())


def _drawn(found: "Explanation", folder: Path) -> list[Path]:
    """Pictures of all of it: importance, each curve, each row."""
    from credo import plot

    pictures = {"importance": plot.importance(found)}
    for number, name in enumerate(found.dependence, start=1):
        pictures[f"dependence-{number}"] = plot.dependence(found, name)
    for row in found.rows:
        pictures[f"row-{row.index + 1}"] = plot.unsure(row)
    folder.mkdir(parents=True, exist_ok=True)
    for name, ax in pictures.items():
        plot.save(ax, folder / f"{name}.png")
    return [folder / f"{name}.png" for name in pictures]
