"""A run judged on a test table: beside what is simpler, and calibrated on rows held back."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from credo.data import Data
from credo.evaluation.baselines import baselines
from credo.evaluation.conformal import Conformal, conformal
from credo.evaluation.evaluate import Scores, evaluate
from credo.evaluation.recalibration import Recalibrated, recalibrate
from credo.runs.calibration import CALIBRATION, Calibration
from credo.runs.own_table import own_table
from credo.runs.run import Run
from credo.runs.simplified import free_folder, require_uncalibrated, saved_beside
from credo.tables.column import Unknown
from credo.tables.source import Source


@dataclass(frozen=True, eq=False)
class Judged:
    """What `judged_on` found.

    Arguments:
        run: with the calibration that was asked for.
        data: the test rows that were judged: half of the table, where sets were fitted to the other half.
        scores: on these rows, with those of the baselines.
        before: scores of the run as it was, where it was recalibrated; else None.
        without_baselines: why there are none, "" if there are.

    >>> import credo
    >>> found = credo.runs.judged_on(credo.runs.Run.load("run"), "houses.csv")
    >>> found.scores.num_rows, found.before is None, list(found.scores.baselines)
    (30, True, ['constant', 'linear'])
    """

    run: Run
    data: Data
    scores: Scores
    before: Scores | None = None
    without_baselines: str = ""

    @property
    def sets(self) -> dict[str, Any]:
        """How the conformal sets do on the rows that were judged; nothing where there are none."""
        found = self.run.calibration.sets if self.run.calibration else None
        if found is None:
            return {}
        rows = self.data.only_labelled()
        coverage, size = found.coverage(rows.x, rows.y), found.mean_size(rows.x)
        return {"level": found.level, "num_data": found.num_data, "coverage": coverage, "mean_size": size}


def judged_on(
    run: Run,
    file: str | Path | Source,
    *,
    held_out: str | Path | Source | None = None,
    level: float | None = None,
    unknown: Unknown = "error",
) -> Judged:
    """Judge a run on a test table, beside a constant and a line that were fitted to its own table.

    Arguments:
        run: a finished one.
        file: the test table.
        held_out: a table that it has not seen, to recalibrate it on before it is judged.
        level: of conformal sets, whose size is found on half of the held-out rows, of the test rows without any.
        unknown: "error", or "missing" to treat new categories as missing.

    >>> import credo
    >>> found = credo.runs.judged_on(credo.runs.Run.load("run"), "houses.csv")
    >>> found.scores.label("rmse"), found.scores.num_rows
    ('RMSE', 30)
    """
    if held_out is not None or level is not None:
        require_uncalibrated(run)
    data = run.test_data(file, unknown=unknown)
    rest = None if held_out is None else run.test_data(held_out, unknown=unknown)
    for_sets = None
    if level is not None and rest is not None:
        rest, for_sets = rest.split(0.5, seed=run.config.seed)
    elif level is not None:
        data, for_sets = data.split(0.5, seed=run.config.seed)
    posterior: Any = run.posterior if rest is None else recalibrate(run.posterior, rest)
    before = None if rest is None else evaluate(run.posterior, data)
    sets = None if for_sets is None else conformal(posterior, for_sets, level=level or 0.0)
    calibrated = _with(run, posterior, sets)
    try:
        simple = baselines(run.test_data(own_table(run.config), unknown="missing"), data)
        why = ""
    except (FileNotFoundError, ValueError) as error:
        simple, why = {}, str(error).split("; pass")[0]
    return Judged(calibrated, data, evaluate(posterior, data).beside(simple), before, why)


def _with(run: Run, posterior: Any, sets: Conformal | None) -> Run:
    map = posterior.map if isinstance(posterior, Recalibrated) else None
    if map is None and sets is None:
        return run
    return replace(run, posterior=posterior, calibration=Calibration(map, sets), verdict=None)


def save_calibrated(run: Run, folder: str | Path, *, overwrite: bool = False) -> Run:
    """Save a run that `judged_on` has calibrated as one of its own, whose predictions go through its calibration.

    >>> from tempfile import TemporaryDirectory
    >>> import credo
    >>> run = credo.runs.Run.load("run")
    >>> with TemporaryDirectory() as folder:
    ...     found = credo.runs.judged_on(run, "houses.csv", held_out="houses.csv")
    ...     credo.runs.save_calibrated(found.run, f"{folder}/calibrated").calibration is not None
    True
    """
    if run.calibration is None:
        raise ValueError(f"{run.folder} is not calibrated: pass held_out=… or level=… to judge it with")
    target = free_folder(run, folder, overwrite)
    bare = run.posterior.posterior if isinstance(run.posterior, Recalibrated) else run.posterior
    saved_beside(run, target, bare, overwrite, more={CALIBRATION: run.calibration.to_json()})
    return Run.load(target)
