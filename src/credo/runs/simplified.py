"""A run made simpler, in a folder of its own that `credo predict`, `evaluate` and `inspect` take as any other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from credo._files import checksum, checksum_of, put_bytes
from credo._folders import locked, put_together
from credo._manifest import Manifest
from credo.posterior import Posterior
from credo.posterior.saving import write
from credo.runs.config import Config
from credo.runs.run import Run, files_of, require_free
from credo.simplifying.compress import compress
from credo.simplifying.distill import distill
from credo.simplifying.simplify import simplify
from credo.simplifying.trade_off import TradeOff
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
    target = _free(run, folder, overwrite)
    files = [_own_table(run.config) if data is None else data, *([] if unlabelled is None else [unlabelled])]
    inputs = np.concatenate([_inputs(run.encoding, file) for file in files])
    student = distill(run.posterior, network, inputs, seed=seed, progress=progress)
    return _saved(run, target, student, overwrite, network=_in_words(student.model.config), seed=seed)


def compressed(
    run: Run,
    folder: str | Path,
    *,
    to: Any = "2%",
    by: str | None = None,
    data: str | Path | None = None,
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
    """
    target = _free(run, folder, overwrite)
    known = run.test_data(_own_table(run.config)) if data is None else None
    inputs = None if data is None else _inputs(run.encoding, data)
    small = compress(run.posterior, to, inputs=inputs, data=known, by=by, seed=seed)
    return _saved(run, target, small, overwrite)


def trade_off_of(run: Run, *, budget: Any = None, test: str | Path | None = None, **options: Any) -> TradeOff:
    """Every way to make a run simpler, side by side: `credo.simplify` on the table that the run was fitted to.

    Arguments:
        test: a table to judge on; without it a fifth of the rows that the run was fitted to.
        options: seed and progress, as in `credo.simplify`.
    """
    data = run.test_data(_own_table(run.config))
    return simplify(run.posterior, data, budget=budget, test=None if test is None else run.test_data(test), **options)


def _free(run: Run, folder: str | Path, overwrite: bool) -> Path:
    """The folder, if a simpler run may be written there."""
    target = Path(folder)
    require_free(target, resume=False, overwrite=overwrite)
    if overwrite and target.resolve() == run.folder.resolve():
        raise ValueError(f"{target} holds the run itself, which a simpler one must not replace; choose another folder")
    return target


def _saved(run: Run, folder: Path, posterior: Posterior, overwrite: bool, **changes: Any) -> Run:
    """Another posterior of the same table as a run of its own."""
    config = replace(run.config, made_from=str(run.folder.resolve()), **changes)
    files = files_of(config, run.encoding, run.updates)

    def save(fresh: Path) -> None:
        for name, content in files.items():
            put_bytes(fresh / name, content)
        write(posterior, fresh, Manifest({name: checksum_of(content) for name, content in files.items()}))

    with locked(folder):
        # Others may have come first while the posterior was made simpler.
        require_free(folder, resume=False, overwrite=overwrite)
        put_together(folder, save)
    return Run(folder, config, run.encoding, posterior, run.updates)


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
