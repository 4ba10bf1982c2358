"""`credo distill`: a run made small and fast."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credo._text import size_in_words
from credo.cli.completion import complete_network
from credo.cli.voice import Json, Overwrite, Quiet, Seed, Verbose, Voice
from credo.cli.written import Written, reads_tables

if TYPE_CHECKING:
    from credo.runs import Run


@reads_tables
def distill(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit: the teacher.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the student.")] = Path("small"),
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            "-n",
            help="mlp:100,100 or mlp:50,50,relu. [default: like the teacher's]",
            autocompletion=complete_network,
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A table with inputs to ask about. [default: the one of the run]")
    ] = None,
    unlabelled: Annotated[Path | None, typer.Option(help="A table with more inputs; no target is needed.")] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train one network to answer as a run does, in one pass in place of one for each draw.

    The student is a run of its own: credo predict, evaluate and inspect take it as any other.
    """
    from credo.runs import Run, distilled  # lazy: imports JAX

    voice = Voice(as_json, quiet, verbose)
    teacher = Run.load(run)
    student = distilled(
        teacher,
        out,
        data=None if data is None else written(data),
        unlabelled=None if unlabelled is None else written(unlabelled),
        network=network,
        seed=seed,
        overwrite=overwrite,
        progress=voice.progress,
    )
    _conclude(voice, teacher, student)


def _conclude(voice: Voice, teacher: "Run", student: "Run") -> None:
    """Say how close it came, and where it is."""
    found = student.posterior.diagnostics
    before, after = teacher.posterior.num_bytes, student.posterior.num_bytes
    voice.say(f"Network: {student.config.network}, {student.posterior.model.num_parameters:,} parameters")
    voice.say(f"Size: {size_in_words(after)} in place of {size_in_words(before)}")
    for line in found.figures[1:]:
        voice.say(line[0].upper() + line[1:])
    voice.say(f"Health: {found.verdict}")
    seconds = student.posterior.provenance.seconds
    voice.say(
        f"Saved in {student.folder} after {seconds:.1f} s. Next: credo predict {student.folder} new.csv -o out.csv"
    )
    voice.result(
        {
            "folder": str(student.folder),
            "teacher": str(teacher.folder),
            "network": student.config.network,
            "bytes": after,
            "teacher_bytes": before,
            "seconds": seconds,
            **found.to_dict(),
        }
    )
