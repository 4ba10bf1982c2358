"""Runs: a network fitted to a table, in a folder with everything needed to use it and to repeat it.

run/config.toml                     every setting, readable by people and by `Config.read`
run/columns.json                    what was done with each column of the table
run/updates.json, online.json       what it has learned since its fit, and what it takes to go on
run/manifest.json, arrays…          the posterior, as `posterior.save` writes it, and the checksums of all files
run/checkpoint/                     the state from which an unfinished run continues
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from credo import networks
from credo._files import PARTIAL, LoadError, checksum
from credo._folders import NEXT, holds_a_run, locked, opened, read_whole
from credo._manifest import Manifest
from credo._text import nearest
from credo._version import __version__
from credo.data import Data
from credo.evaluation.evaluate import Scores, evaluate
from credo.inference.auto import Choice, choose
from credo.inference.engine.fit_folder import Place
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.inference.registry import name_of
from credo.inference.settings import build, settings_of
from credo.models import classification, regression, tasks
from credo.models.program import Model
from credo.posterior import Posterior
from credo.posterior.loading import read_posterior
from credo.runs.config import CONFIG, Config
from credo.runs.history import UPDATES, Update, read_updates, to_json
from credo.runs.prior import prior_in_words, prior_of
from credo.tables.columns import Unknown
from credo.tables.encoding import Encoding, as_table
from credo.tables.predictions import prediction_frame, regrouped

COLUMNS = "columns.json"
# Rows to predict at once.
BATCH_ROWS = 2**15


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run before it starts: the table as numbers, the model, the method."""

    config: Config
    encoding: Encoding
    data: Data
    model: Model
    choice: Choice

    def fit(
        self, folder: str | Path, *, resume: bool = False, overwrite: bool = False, progress: bool | None = None
    ) -> "Run":
        """Fit, and save the run in a folder.

        Arguments:
            folder: of the run, new or empty.
            resume: continue the same run, if the folder holds it.
            overwrite: replace a run that the folder holds.
        """
        target = Path(folder)
        require_free(target, resume=resume, overwrite=overwrite)
        if resume and not overwrite and is_run(target):
            self._require_same(target)
        posterior = fit(
            self.model,
            self.data,
            self.choice,
            seed=self.config.seed,
            progress=progress,
            checkpoint=Place(target, files_of(self.config, self.encoding), overwrite),
            resume=resume,
        )
        return Run(target, self.config, self.encoding, posterior)

    def _require_same(self, folder: Path) -> None:
        """Refuse to go on with the run of another config, and say what differs."""
        mine, held = asdict(self.config), asdict(_begun(folder, opened(folder))[0])
        different = [name for name in mine if mine[name] != held[name]]
        if different:
            raise ValueError(
                f"{folder} holds another run: its {', '.join(different)} differ; pass the config that it was "
                "started with, or choose another folder"
            )


@dataclass(frozen=True, eq=False)
class Run:
    """A network fitted to a table, with the rules that turn the table's columns into numbers."""

    folder: Path
    config: Config
    encoding: Encoding
    posterior: Posterior
    updates: tuple[Update, ...] = ()

    @classmethod
    def fit(cls, config: Config, folder: str | Path, **options: Any) -> "Run":
        """Read the table, fit, and save the run in a folder; options as in `Prepared.fit`."""
        return prepare(config).fit(folder, **options)

    @classmethod
    def load(cls, folder: str | Path) -> "Run":
        """The finished run in a folder."""
        source = Path(folder)
        if not source.exists():
            raise FileNotFoundError(f"{source} does not exist; name the folder of a run")
        if not is_run(source):
            raise LoadError(f"{source} is not a run of credo: it has no {CONFIG}")

        def read(held: Manifest) -> "Run":
            return cls(source, *_begun(source, held), read_posterior(source, held), read_updates(source, held))

        return read_whole(source, read)

    def predict(
        self, file: str | Path, *, level: float = 0.95, keep: Sequence[str] = (), unknown: Unknown = "error"
    ) -> Iterator[pl.DataFrame]:
        """Predictions for the rows of a table, some at a time, as in `prediction_frame`.

        Arguments:
            file: with the columns of the training table; the target is not needed.
            level: the probability between lower and upper.
            keep: columns to copy from the table.
            unknown: "error", or "missing" to treat new categories as missing.
        """
        table = as_table(file)
        for name in keep:
            if name not in table.columns:
                raise ValueError(f"{table.path} has no column {name!r} to keep{nearest(name, table.columns)}")
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it is a probability, between 0 and 1")
        parts = ((rows.select(keep), x) for rows, x in self.encoding.inputs(table, unknown=unknown))
        for kept, x in regrouped(parts, BATCH_ROWS):
            said = prediction_frame(self.posterior.predict(x), self.encoding.target, level=level)
            if twice := [name for name in keep if name in said.columns]:
                raise ValueError(f"the column {twice[0]!r} cannot be kept: the predictions have one of that name")
            yield kept.hstack(said) if keep else said

    def evaluate(self, file: str | Path, *, unknown: Unknown = "error") -> Scores:
        """Every score on a test table."""
        return evaluate(self.posterior, self.test_data(file, unknown=unknown))

    def test_data(self, file: str | Path, *, unknown: Unknown = "error") -> Data:
        """A test table as numbers."""
        return self.encoding.data(file, unknown=unknown)


def prepare(config: Config) -> Prepared:
    """Read the table of a run, and settle everything left open: the task, the method and why, the checksum."""
    if config.made_from:
        raise ValueError(
            f"the config is that of a simpler form of the run in {config.made_from}, which is not fitted to a table; "
            "make it again from that run, with credo distill or credo compress"
        )
    table = as_table(config.data)
    found = checksum(table.path)
    if config.data_sha256 not in ("", found):
        raise ValueError(
            f"{table.path} is not the file that the run was made from: its checksum differs; get that file, or set "
            "data_sha256 to '' to fit this one"
        )
    encoding = encoding_of(config, table)
    data, model = encoding.data(table), model_of(config, encoding)
    choice = chosen(config, model, data)
    settled = replace(
        config,
        data=str(table.path.resolve()),
        data_sha256=found,
        target=encoding.target.name,
        task=encoding.target.task,
        why=choice.why,
        credo_version=__version__,
        **_named(choice.method),
    )
    return Prepared(settled, encoding, data, model, choice)


def encoding_of(config: Config, file: Any) -> Encoding:
    """What a run learns about the columns of its table."""
    task = config.task or None
    return Encoding.learn(file, config.target, task=task, drop=config.drop, task_column=config.task_column)


def model_of(config: Config, encoding: Encoding) -> Model:
    """The network of a run, with its prior and its likelihood."""
    network = networks.from_text(config.network, encoding.target.num_outputs)
    prior = prior_of(config, encoding)
    if encoding.tasks is not None:
        likelihood = "classification" if encoding.target.is_classes else "regression"
        return tasks(network, varying="head.*", prior=prior, likelihood=likelihood)
    return classification(network, prior=prior) if encoding.target.is_classes else regression(network, prior=prior)


def chosen(config: Config, model: Model, data: Data) -> Choice:
    """The method of a run with its settings, and why it was chosen if the user left that open."""
    if config.method != "auto":
        return Choice(build(config.method, config.settings), config.why)
    if config.settings:
        raise ValueError(f"settings ({', '.join(config.settings)}) belong to a method; name it with method=…")
    return choose(model, data)


def describe(folder: str | Path) -> dict[str, Any]:
    """A run, finished or not, in plain values: state, settings, prior, columns, model, diagnostics, verdict."""
    source = Path(folder)
    begun = is_run(source) and (held := opened(source)).posterior is None
    run = None if begun else Run.load(source)
    config, encoding = (run.config, run.encoding) if run else _begun(source, held)
    state = "not ended yet"
    if run:
        made = run.posterior.provenance
        num = run.posterior.model.num_parameters
        state = f"{num:,} parameters, fitted to {made.num_data:,} rows in {made.seconds:.1f} s"
        state += f", {len(run.updates)} update(s) included" if run.updates else ""
    return {
        "state": state,
        "finished": run is not None,
        "settings": {name: value for name, value in asdict(config).items() if value not in ("", (), {})},
        "prior": prior_in_words(config, encoding),
        "columns": dict(encoding.says),
        "updates": [str(one) for one in run.updates] if run else [],
        "model": str(run.posterior.model.describe()) if run else "",
        "diagnostics": str(run.posterior.diagnostics) if run else "",
        "verdict": run.posterior.diagnostics.verdict if run else "",
    }


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, finished or not, or what an earlier version left of one before it began."""
    return holds_a_run(folder) or all((folder / name).exists() for name in (CONFIG, COLUMNS))


def require_free(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder that holds anything else, or a run that is neither to be continued nor replaced.

    What a process that was stopped has left undone in it is done first.
    """
    if (folder / NEXT).is_dir():
        with locked(folder):
            pass
    if is_run(folder):
        if not (resume or overwrite):
            raise ValueError(
                f"{folder} holds a run already; choose another folder, continue it (resume=True), or replace it "
                "(overwrite=True)"
            )
    elif folder.exists() and (not folder.is_dir() or any(path.suffix != PARTIAL for path in folder.iterdir())):
        raise ValueError(f"{folder} exists and is not a run of credo; choose a new or empty folder")


def files_of(config: Config, encoding: Encoding, updates: Sequence[Update] = ()) -> dict[str, bytes]:
    """The files that a run has beside its posterior, by name."""
    files = {CONFIG: config.to_toml(), COLUMNS: encoding.to_json()}
    return files | {UPDATES: to_json(updates)} if updates else files


def _begun(folder: Path, held: Manifest) -> tuple[Config, Encoding]:
    """What a run has from its beginning on."""
    if held.covers_all and CONFIG not in held.files:
        raise LoadError(f"{folder} is not a run of credo: it has no {CONFIG}")
    if not held.covers_all:
        warnings.warn(
            f"{folder} is of an earlier version, in which no checksum covers {CONFIG} and {COLUMNS}: should they be "
            "another run's, nobody would notice; fit again to be sure",
            stacklevel=3,
        )
    config, columns = (held.file(folder, name) for name in (CONFIG, COLUMNS))
    try:
        return Config.parse(config, folder / CONFIG), Encoding.from_json(columns, folder / COLUMNS)
    except LoadError:
        raise
    except ValueError as error:
        raise LoadError(str(error)) from error


def _named(method: Method) -> dict[str, Any]:
    """A method as name and settings; "auto" again if they cannot rebuild it."""
    name, settings = name_of(method), settings_of(method)
    complete = build(name, settings) == method
    return {"method": name, "settings": settings} if complete else {"method": "auto", "settings": {}}
