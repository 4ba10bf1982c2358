"""`credo plan`: what a fit of a table will cost, before it starts."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.completion import complete_method, complete_network
from credo.cli.voice import Json, Quiet, Verbose, Voice
from credo.cli.written import Written, reads_tables


@reads_tables
def plan(
    file: Annotated[Path, typer.Argument(help="The table, as for credo fit.", show_default=False)],
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The column to predict, or several: height,weight.")
    ] = None,
    method: Annotated[
        str, typer.Option("--method", "-m", help="Its name, or auto.", autocompletion=complete_method)
    ] = "auto",
    network: Annotated[
        str, typer.Option("--network", "-n", help="As for credo fit.", autocompletion=complete_network)
    ] = "table",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method, name=value; may be repeated.")
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Columns not to use: id,name.")] = None,
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say what a fit will cost: memory, gradients, and seconds on this machine, for this and for other sizes."""
    from credo.inference.cost import plan as cost_of  # lazy: imports JAX
    from credo.inference.settings import merged, parse
    from credo.runs import Config, prepare

    voice = Voice(as_json, quiet, verbose)
    config = Config(
        data=str(file),
        target=target,
        method=method,
        network=network,
        drop=() if drop is None else tuple(name.strip() for name in drop.split(",")),
        **written(file).told,
    )
    for text in settings or ():
        config = Config(**{**vars(config), "settings": merged(config.settings, parse(text))})
    prepared = prepare(config)
    found = cost_of(prepared.model, prepared.data, prepared.choice, seed=config.seed)
    voice.say(str(found))
    voice.result(found.to_dict())
