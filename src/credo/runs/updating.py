"""A run that goes on learning: new rows of its table, in the folder of the run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from credo._files import checksum_of, put_bytes
from credo._folders import locked, put_together
from credo._manifest import Manifest
from credo.data import Data
from credo.inference.method import Method
from credo.inference.settings import build
from credo.learning.drift import DriftAlarm
from credo.learning.going_on import NothingToGoOnFrom
from credo.learning.judgement import judged_before
from credo.learning.learned import Learned, Settings
from credo.learning.online import Online
from credo.learning.online_folder import ONLINE, get_learned, put_learner
from credo.models.priors.from_posterior import DRAWS_PER_NUMBER, MAX_FULL
from credo.posterior import Draws
from credo.runs.config import Config
from credo.runs.history import Update
from credo.runs.refitting import refitted
from credo.runs.run import Run, files_of
from credo.runs.simplified import require_uncalibrated
from credo.tables.column import Unknown
from credo.tables.encoding import Encoding
from credo.tables.files import open_table
from credo.tables.source import Source


def updated(
    folder: str | Path,
    file: str | Path | Source,
    *,
    forgetting: float | None = None,
    new_classes: bool = False,
    again: bool = False,
    unknown: Unknown = "error",
    progress: bool | None = None,
) -> Run:
    """Learn the rows of a table: the posterior of a run becomes the prior of these rows, and then theirs.

    Where it cannot, because it is made of points, or of draws that the new rows leave without weight, the run is fitted
    again to all tables that it has learned and the new one, which must be where they were. The folder holds the old run
    until the new one is whole. What was done is in `run.updates[-1]`.

    Arguments:
        folder: of the run.
        file: with the columns of the table that the run was fitted to, and its target.
        forgetting: what is kept of what was known, as in `credo.online`; as at the last update by default, 1 at first.
        new_classes: whether a class that the run does not know is learned as a new one.
        again: whether a table is learned once more that has been learned already.
        unknown: "error", or "missing" to treat new categories as missing.

    >>> import shutil
    >>> from tempfile import TemporaryDirectory
    >>> import credo
    >>> with TemporaryDirectory() as folder:
    ...     _ = shutil.copytree("run", f"{folder}/run")
    ...     run = credo.runs.updated(f"{folder}/run", "houses.csv", again=True)
    >>> len(run.updates)
    1
    """
    Run.load(folder)  # which says what is wrong with a folder before anything is written to it
    with locked(Path(folder)):
        run = Run.load(folder)
        require_uncalibrated(run)
        source = Source.of(file).like(run.config.source)
        table = open_table(source)
        digest = table.checksum
        if not again:
            _require_new(run, table.path, digest)
        encoding = _with_classes(run.encoding, table, new_classes)
        data = encoding.data(table, unknown=unknown)
        before, settings = _standing(run, forgetting)
        learned, method, because = _learned(run, data, encoding, before, settings, progress)
        posterior, judgement, drift = learned.posterior, learned.judgement, learned.drift
        if posterior.provenance.interrupted:
            raise KeyboardInterrupt
        record = Update(
            file=str(table.path.resolve()),
            sha256=digest,
            num_rows=data.num_labelled,
            log_score=judgement.log_score,
            log_score_after=judged_before(posterior, data, DriftAlarm())[0].log_score,
            new_classes=encoding.target.labels[len(run.encoding.target.labels) :],
            drift=str(drift),
            rang=len(drift.rings) > len(before.drift.rings),
            refitted_because=because,
            written=source.told,
        )
        seen = replace(
            encoding,
            num_rows=encoding.num_rows + data.num_labelled,
            num_without_target=encoding.num_without_target + data.size - data.num_labelled,
        )
        config = replace(run.config, task=seen.target.task)
        after = Run(run.folder, config, seen, posterior, (*run.updates, record))

        def write(fresh: Path) -> None:
            files = files_of(after.config, after.encoding, after.updates)
            for name, content in files.items():
                put_bytes(fresh / name, content)
            held = Manifest({name: checksum_of(content) for name, content in files.items()})
            put_learner(learned, method, settings, fresh, held)

        put_together(run.folder, write)
    return after


def _standing(run: Run, forgetting: float | None) -> tuple[Learned, Settings]:
    """Where a run stands as a learner: as the last update left it, or going on from the fit."""
    held = Manifest.read(run.folder)
    if ONLINE in held.files:
        learned, settings, _ = get_learned(run.folder, held)
        return learned, settings if forgetting is None else replace(settings, forgetting=forgetting)
    kept = 1.0 if forgetting is None else forgetting
    settings = Settings(kept, density=_density(run.posterior), seed=run.config.seed)
    return Learned.of(run.posterior, settings), settings


def _learned(
    run: Run, new: Data, encoding: Encoding, before: Learned, settings: Settings, progress: bool | None
) -> tuple[Learned, Method, str]:
    """Where a run stands after new rows, the method that learned them, and why it had to learn all tables again."""
    try:
        method = _method(run.config)
        learner = Online(before.belief.model, method, settings, before)
        learner.update(new, progress=progress)
    except NothingToGoOnFrom as reason:
        return *refitted(run, new, encoding, before, settings, reason, progress=progress), reason.why
    return learner.learned, method, ""  # type: ignore[return-value]


def _method(config: Config) -> Method:
    if config.method == "auto":
        raise NothingToGoOnFrom(
            "the method of the run has settings that its config cannot hold, so it cannot go on",
            "fit again with method='laplace' or method='bayes_by_backprop'",
        )
    if config.precisions:
        raise NothingToGoOnFrom(
            "rows of unequal precisions are not learned batch by batch", "fit again with method='laplace', to all rows"
        )
    return build(config.method, config.settings)


def _density(posterior: Any) -> Any:
    """Draws that are too few for the covariance of all their numbers go on by their weights."""
    if not isinstance(posterior, Draws):
        return "gaussian"
    num, num_draws = posterior.model.num_parameters, posterior.num_chains * posterior.num_draws
    return "gaussian" if num <= MAX_FULL and num_draws >= DRAWS_PER_NUMBER * num else "weights"


def _require_new(run: Run, path: Path, digest: str) -> None:
    if digest in (run.config.data_sha256, *(one.sha256 for one in run.updates)):
        raise ValueError(
            f"{run.folder} has learned {path} already, and to learn its rows twice would make it too sure of them; "
            "pass again=True if these are new rows that happen to be equal"
        )


def _with_classes(encoding: Encoding, table: Any, allowed: bool) -> Encoding:
    """The encoding with classes that are new in a table; a ValueError if they are not to be learned."""
    new = encoding.new_classes(table)
    if new and not allowed:
        raise ValueError(
            f"{table.path} has the class {new[0]!r} in {encoding.target.name!r}, which the run does not know: it has "
            f"{', '.join(encoding.target.labels)}; correct it, or pass new_classes=True to learn it as a new class"
        )
    return replace(encoding, target=encoding.target.with_classes(new)) if new else encoding
