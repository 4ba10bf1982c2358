"""A run made simpler, in a folder of its own that `credo predict`, `evaluate` and `inspect` take as any other."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from credo._files import checksum_of, put_bytes
from credo._folders import locked, put_together
from credo._manifest import Manifest
from credo.posterior import Posterior
from credo.posterior.saving import write
from credo.runs.own_table import own_table
from credo.runs.run import Run, files_of, require_free
from credo.simplifying.compress import compress
from credo.simplifying.distill import distill
from credo.simplifying.simplify import simplify
from credo.simplifying.trade_off import TradeOff
from credo.tables.source import Source


def distilled(
    run: Run,
    folder: str | Path,
    *,
    data: str | Path | Source | None = None,
    unlabelled: str | Path | Source | None = None,
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

    >>> from tempfile import TemporaryDirectory
    >>> import credo
    >>> with TemporaryDirectory() as folder:
    ...     student = credo.runs.distilled(credo.runs.Run.load("run"), f"{folder}/student", network="linear")
    >>> type(student.posterior).__name__
    'Student'
    """
    require_uncalibrated(run)
    target = free_folder(run, folder, overwrite)
    files = [own_table(run.config) if data is None else data, *([] if unlabelled is None else [unlabelled])]
    inputs = np.concatenate([_inputs(run, file) for file in files])
    student = distill(run.posterior, network, inputs, seed=seed, progress=progress)
    return saved_beside(run, target, student, overwrite, network=_in_words(student.model.config), seed=seed)


def compressed(
    run: Run,
    folder: str | Path,
    *,
    to: Any = "2%",
    by: str | None = None,
    data: str | Path | Source | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Run:
    """Keep a run in fewer bytes, and save it in a folder.

    Arguments:
        run: one whose posterior is made of draws.
        folder: of the compressed run, new or empty.
        to, by: the size and the compressor, as in `credo.compress`.
        data: a table with inputs like those to predict on; by default the one that the run was fitted to.
        overwrite: replace a run that the folder holds.

    >>> from tempfile import TemporaryDirectory
    >>> import credo
    >>> with TemporaryDirectory() as folder:
    ...     small = credo.runs.compressed(credo.runs.Run.load("run"), f"{folder}/small", to="30%", by="int8")
    >>> small.posterior.num_bytes < credo.runs.Run.load("run").posterior.num_bytes
    True
    """
    require_uncalibrated(run)
    target = free_folder(run, folder, overwrite)
    known = run.test_data(own_table(run.config)) if data is None else None
    inputs = None if data is None else _inputs(run, data)
    small = compress(run.posterior, to, inputs=inputs, data=known, by=by, seed=seed)
    return saved_beside(run, target, small, overwrite)


def trade_off_of(run: Run, *, budget: Any = None, test: str | Path | Source | None = None, **options: Any) -> TradeOff:
    """Every way to make a run simpler, side by side: `credo.simplify` on the table that the run was fitted to.

    Arguments:
        test: a table to judge on; without it a fifth of the rows that the run was fitted to.
        options: seed and progress, as in `credo.simplify`.

    >>> import credo
    >>> list(credo.runs.trade_off_of(credo.runs.Run.load("run"), ways=["quantised"]).options)
    ['full', 'quantised']
    """
    data = run.test_data(own_table(run.config))
    return simplify(run.posterior, data, budget=budget, test=None if test is None else run.test_data(test), **options)


def require_uncalibrated(run: Run) -> None:
    """Refuse a run whose predictions go through a calibration, which is of these predictions alone."""
    if run.calibration is not None:
        raise ValueError(
            f"{run.folder} is calibrated already; use the run that it was made from, {run.config.made_from}, and "
            "calibrate what comes of it"
        )


def free_folder(run: Run, folder: str | Path, overwrite: bool) -> Path:
    """The folder, if a simpler run may be written there."""
    target = Path(folder)
    require_free(target, resume=False, overwrite=overwrite)
    if overwrite and target.resolve() == run.folder.resolve():
        raise ValueError(f"{target} holds the run itself, which a simpler one must not replace; choose another folder")
    return target


def saved_beside(
    run: Run,
    folder: Path,
    posterior: Posterior,
    overwrite: bool,
    *,
    more: Mapping[str, bytes] | None = None,
    **changes: Any,
) -> Run:
    """Another posterior of the same table as a run of its own, with more files by name."""
    config = replace(run.config, made_from=str(run.folder.resolve()), **changes)
    files = files_of(config, run.encoding, run.updates) | dict(more or {})

    def save(fresh: Path) -> None:
        for name, content in files.items():
            put_bytes(fresh / name, content)
        write(posterior, fresh, Manifest({name: checksum_of(content) for name, content in files.items()}))

    with locked(folder):
        # Others may have come first while the posterior was made simpler.
        require_free(folder, resume=False, overwrite=overwrite)
        put_together(folder, save)
    return Run(folder, config, run.encoding, posterior, run.updates)


def _inputs(run: Run, file: str | Path | Source) -> np.ndarray:
    return np.concatenate([x for _, x in run.encoding.inputs(run.table(file))])


def _in_words(config: Any) -> str:
    """The network of a student as text."""
    made = config["network"]
    return (
        ",".join(["mlp:" + ",".join(map(str, made["features"])), made["activation"]]) if made["features"] else "linear"
    )
