"""`credo inspect`: what was fitted, on what, and how healthy it is."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.voice import Json, Quiet, Verbose, Voice, how_to_continue


def inspect(
    run: Annotated[Path, typer.Argument(help="The folder of a run, made by credo fit; it need not have ended.")],
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Describe a run: the table and its columns, the network, the method, and its health."""
    from credo.runs import describe  # lazy: imports JAX

    voice = Voice(as_json, quiet, verbose)
    found = describe(run)
    hint = "" if found["finished"] else f"; {how_to_continue(run)}"
    voice.say(f"{run}: {found['state']}{hint}")
    voice.table(("", "setting"), [(name, str(value)) for name, value in found["settings"].items()])
    voice.say(f"Prior: {found['prior']}")
    voice.table(("column", "what was done with it"), found["columns"].items())
    for line in found["updates"]:
        voice.say(f"Learned since: {line}")
    for line in (found["model"], found["diagnostics"]):
        voice.detail(line)
    if found["status"]:
        voice.verdict(found["status"], found["answers"], found["to_mend"])
    voice.result(found)
