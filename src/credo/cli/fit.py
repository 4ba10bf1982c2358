"""`credo fit`: a network with uncertainty from a table in a file."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credo._text import seconds_of
from credo.cli.completion import complete_method, complete_network
from credo.cli.signals import advising
from credo.cli.together import Distributed, NumProcesses, Others, ProcessId, speaks, together
from credo.cli.voice import (
    Counts,
    Group,
    Json,
    Monotone,
    Overwrite,
    Precisions,
    Quiet,
    Smooth,
    Strength,
    Time,
    Verbose,
    Voice,
    how_to_continue,
)
from credo.cli.written import Written, reads_tables

if TYPE_CHECKING:
    from credo.runs import Config, Prepared, Run


@reads_tables
def fit(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="The table: .csv, .xlsx, .parquet or .npz; or a folder of images, one folder for each class.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The column to predict, or several: height,weight.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the run.")] = Path("run"),
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="Its name (see credo methods), or auto. [default: auto]",
            autocompletion=complete_method,
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            "-n",
            help="table, linear, mlp:50,50 or mlp:50,50,relu; of images cnn, resnet20. [default: table]",
            autocompletion=complete_network,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method, name=value; may be repeated.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="regression, binary or multi-class. [default: found from the target]")
    ] = None,
    likelihood: Annotated[
        str | None,
        typer.Option(
            help="What the target holds: counts, positive, shares, ordinal (classes in an order) or any. "
            "[default: found from the target]"
        ),
    ] = None,
    censored: Annotated[
        str | None, typer.Option(help="The column that says yes where the target is only a lower bound.")
    ] = None,
    task_column: Annotated[
        str | None, typer.Option(help="The column whose levels are tasks that resemble each other: school.")
    ] = None,
    group: Group = None,
    time: Time = None,
    counts: Counts = None,
    precisions: Precisions = None,
    drop: Annotated[str | None, typer.Option(help="Columns not to use: id,name.")] = None,
    prior_scale: Annotated[
        float | None, typer.Option(help="σ of the weights' prior N(0, σ²), for networks but table. [default: 1]")
    ] = None,
    monotone: Monotone = None,
    smooth: Smooth = None,
    strength: Strength = None,
    budget: Annotated[
        str | None, typer.Option(help="The time that auto may take: 10s, 2m. [default: what suits the table]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same bits. [default: 0]")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with these settings; flags override it.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")] = False,
    overwrite: Overwrite = False,
    distributed: Distributed = None,
    num_processes: NumProcesses = None,
    process_id: ProcessId = None,
    *,
    written: Written,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Fit a network to a table and save it in a folder. Says what it did with each column, and why this method."""
    began = perf_counter()
    given = {
        "data": None if file is None else str(file),
        "target": target,
        "method": method,
        "network": network,
        "task": task,
        "likelihood": likelihood,
        "censored": censored,
        "task_column": task_column,
        "group": group,
        "time": time,
        "counts": counts,
        "precisions": precisions,
        "drop": None if drop is None else tuple(name.strip() for name in drop.split(",")),
        "prior_scale": prior_scale,
        "smooth": smooth,
        "strength": strength,
        "budget": None if budget is None else seconds_of("budget", budget),
        "seed": seed,
    }
    if resume and file is None and config is None:
        config = out / "config.toml"
    settled: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    with together(Others(distributed, num_processes, process_id), how_to_continue(out)) as mesh:
        voice = Voice(as_json, quiet, verbose) if speaks() else Voice(quiet=True)
        from credo._processes import by_one_of  # lazy: imports JAX, which must not compute before processes meet
        from credo.runs import directions, is_run, prepare, require_free

        by_one_of(mesh)(lambda: require_free(out, resume=resume, overwrite=overwrite))
        if monotone is not None:
            settled["monotone"] = directions(monotone)
        prepared = prepare(_config(config, settled, settings, written))
        _describe(voice, prepared)
        with advising(lambda: how_to_continue(out) if is_run(out) else ""):
            run = prepared.fit(out, resume=resume, overwrite=overwrite, progress=voice.progress, mesh=mesh)
            if run.posterior.provenance.interrupted:
                raise KeyboardInterrupt
        _conclude(voice, run, perf_counter() - began)


def _config(path: Path | None, given: dict[str, Any], settings: list[str] | None, written: Written) -> "Config":
    """The settings of a file, overridden by those of the command line."""
    from credo.inference.settings import merged, parse  # lazy: imports JAX
    from credo.runs import Config

    if path is None:
        if "data" not in given:
            raise ValueError("name the table to fit: credo fit train.csv --target price")
        config = Config(**given)
    else:
        config = Config.read(path)
        if "data" in given:
            config = replace(config, data_sha256="")  # another file is welcome
        if "method" in given:
            config = replace(config, settings={}, why="")  # they belonged to the other method
        config = replace(config, **given)
    config = replace(config, **written(Path(config.data)).told)
    for text in settings or ():
        config = replace(config, settings=merged(config.settings, parse(text)))
    return config


def _describe(voice: Voice, prepared: "Prepared") -> None:
    """Say what is about to be fitted, and to what."""
    from credo.data import Data, FileData  # lazy: imports JAX
    from credo.runs import likelihood_in_words, prior_in_words, unlabelled_in_words

    encoding, config = prepared.encoding, prepared.config
    data = prepared.data
    if isinstance(data, FileData):
        rounded = ", too many for memory: they stay in a file, and minibatches are read from it"
    else:
        rounded = "" if data.x.dtype == "float64" else ", held in single precision because they are many"
    voice.say(f"{config.data}: {data.size:,} rows{rounded}")
    if isinstance(data, Data) and (said := unlabelled_in_words(data, config)):
        voice.say(said)
    voice.table(("column", "what was done with it"), encoding.says_in_short)
    bound = prepared.model.bind(data)
    voice.say(f"Task: {encoding.target.says}")
    if said := likelihood_in_words(config):
        voice.say(f"Likelihood: {said}")
    inputs = "1 input" if encoding.num_inputs == 1 else f"{encoding.num_inputs} inputs"
    voice.say(f"Network: {config.network}, {inputs}, {bound.num_parameters:,} parameters")
    voice.say(f"Prior: {prior_in_words(config, encoding)}")
    voice.say(f"Method: {config.method}{f', {config.why}' if config.why else ', as requested'}")
    for name, value in config.settings.items():
        voice.detail(f"  {name} = {value}")


def _conclude(voice: Voice, run: "Run", seconds: float) -> None:
    """Say how it went, and where the run is, so many seconds after the command began."""
    from credo.evaluation.check import in_lines  # lazy: imports JAX
    from credo.runs import prior_in_words

    judgement = run.verdict or run.posterior.diagnostics
    voice.detail(str(run.posterior.diagnostics))
    voice.verdict(judgement.status, in_lines(judgement.answers), run.to_mend)
    voice.say(f"Saved in {run.folder} after {seconds:.1f} s. Next: credo predict {run.folder} new.csv -o out.csv")
    voice.result(
        {
            "folder": str(run.folder),
            "task": run.encoding.target.task,
            "likelihood": run.config.likelihood,
            "prior": prior_in_words(run.config, run.encoding),
            "method": run.config.method,
            "why": run.config.why,
            "rows": run.encoding.num_rows,
            "unlabelled": run.encoding.num_without_target,
            "columns": dict(run.encoding.says),
            "seconds": seconds,
            "status": str(judgement.status),
            "verdict": judgement.verdict,
            "to_mend": run.to_mend,
        }
    )
