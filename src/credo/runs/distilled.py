"""A student of a run, in a folder of its own that `credo predict`, `evaluate` and `inspect` take as any other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from credo._files import checksum
from credo.posterior.saving import write
from credo.runs.config import CONFIG, Config
from credo.runs.run import COLUMNS, Run, remove, require_free
from credo.simplifying.distill import distill
from credo.tables.encoding import Encoding, as_table


def distilled(
    run: Run,
    folder: str | Path,
    *,
    data: str | Path | None = None,
    unlabelled: str | Path | None = None,
    network: str | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Run:
    """Train a student of a run, and save it in a folder.

    Arguments:
        run: the teacher.
        folder: of the student, new or empty.
        data: a table with the inputs to ask the teacher about; by default the one that it was fitted to.
        unlabelled: a table with further inputs, whose target is not looked at.
        network: as in `credo.networks.from_text`; hidden layers like the teacher's by default.
        overwrite: replace a run that the folder holds.
    """
    target = Path(folder)
    require_free(target, resume=False, overwrite=overwrite)
    if overwrite and target.resolve() == run.folder.resolve():
        raise ValueError(f"{target} holds the teacher, which a student must not replace; choose another folder")
    files = [_own_table(run.config) if data is None else data, *([] if unlabelled is None else [unlabelled])]
    inputs = np.concatenate([_inputs(run.encoding, file) for file in files])
    student = distill(run.posterior, network, inputs, seed=seed, progress=progress)
    if overwrite:
        remove(target)
    target.mkdir(parents=True, exist_ok=True)
    config = replace(run.config, teacher=str(run.folder.resolve()), network=_in_words(student.model.config), seed=seed)
    run.encoding.save(target / COLUMNS)
    write(student, target)
    config.write(target / CONFIG)  # last: a folder with a config is a run
    return Run(target, config, run.encoding, student)


def _own_table(config: Config) -> Path:
    """The table that the teacher was fitted to, which must not have changed."""
    path = Path(config.data)
    if not path.exists():
        raise FileNotFoundError(
            f"{path}, which the run was fitted to, does not exist; pass a table with inputs: data=…"
        )
    if checksum(path) != config.data_sha256:
        raise ValueError(
            f"{path} is not the file that the run was fitted to: its checksum differs; pass a table with inputs: data=…"
        )
    return path


def _inputs(encoding: Encoding, file: str | Path) -> np.ndarray:
    return np.concatenate([x for _, x in encoding.inputs(as_table(file))])


def _in_words(config: Any) -> str:
    """The network of a student as text."""
    made = config["network"]
    return (
        ",".join(["mlp:" + ",".join(map(str, made["features"])), made["activation"]]) if made["features"] else "linear"
    )
