"""Runs: a network fitted to a table, in a folder with everything needed to use it and to repeat it.

run/config.toml                     every setting, readable by people and by `Config.read`
run/columns.json                    what was done with each column of the table
run/verdict.json                    whether its uncertainties may be trusted
run/updates.json, online.json       what it has learned since its fit, and what it takes to go on
run/manifest.json, arrays…          the posterior, as `posterior.save` writes it, and the checksums of all files
run/checkpoint/                     the state from which an unfinished run continues
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from credo import models, networks
from credo._files import PARTIAL, LoadError
from credo._folders import NEXT, holds_a_run, locked, opened, read_whole
from credo._manifest import Manifest
from credo._processes import by_one_of
from credo._text import nearest
from credo._version import __version__
from credo.data import Data, FileData
from credo.evaluation.check import Check, in_lines
from credo.evaluation.evaluate import Scores, evaluate
from credo.inference.auto import Choice, choose
from credo.inference.engine.fit_folder import Place
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.inference.registry import name_of
from credo.inference.settings import build, settings_of
from credo.models.program import Model
from credo.posterior import Posterior
from credo.posterior.loading import read_posterior
from credo.runs.calibration import Calibration
from credo.runs.config import CONFIG, Config
from credo.runs.from_file import ROWS_JUDGED, in_file, some_of
from credo.runs.history import UPDATES, Update, read_updates, to_json
from credo.runs.likelihood import settled_likelihood, task_of
from credo.runs.prior import prior_in_words, prior_of
from credo.runs.verdict import how_to_mend, judged, read_verdict
from credo.tables.column import Unknown
from credo.tables.costs import costs_from, decisions
from credo.tables.encoding import Encoding
from credo.tables.files import open_table
from credo.tables.frames import TableFile, as_table
from credo.tables.predictions import FarRows, prediction_frame, regrouped
from credo.tables.roles import ROLES, Precisions
from credo.tables.source import Source
from credo.tables.streamed import file_data, is_too_large
from credo.tables.table import Table

COLUMNS = "columns.json"
NETWORK_OF_TASKS = "mlp:50,50"
NETWORK_OF_IMAGES = "resnet20"
# Below so many seconds a second layer costs more than it gives: most of them go into compiling.
HASTE, NETWORK_IN_HASTE = 15.0, "table:20"
# Rows to predict at once.
BATCH_ROWS = 2**15


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run before it starts: the table as numbers, the model, the method.

    >>> import credo
    >>> prepared = credo.runs.prepare(credo.runs.Config("houses.csv", "price"))
    >>> prepared.data.size, type(prepared.choice.method).__name__
    (30, 'MCLMC')
    """

    config: Config
    encoding: Encoding
    data: Data | FileData
    model: Model
    choice: Choice

    def fit(
        self,
        folder: str | Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
        progress: bool | None = None,
        mesh: Any = None,
    ) -> "Run":
        """Fit, and save the run in a folder.

        Arguments:
            folder: of the run, new or empty.
            resume: continue the same run, if the folder holds it.
            overwrite: replace a run that the folder holds.
            mesh: the devices to fit on, as for `credo.fit`.
        """
        target, done = Path(folder), by_one_of(mesh)

        def require() -> None:
            require_free(target, resume=resume, overwrite=overwrite)
            if resume and not overwrite and is_run(target):
                self._require_same(target)

        done(require)
        posterior = fit(
            self.model,
            self.data,
            self.choice,
            seed=self.config.seed,
            progress=progress,
            checkpoint=Place(target, files_of(self.config, self.encoding), overwrite),
            resume=resume,
            mesh=mesh,
        )
        interrupted, verdict = posterior.provenance.interrupted, None
        if not interrupted:
            seen, held_out = self._to_judge
            verdict = done(lambda: judged(target, posterior, seen, held_out, progress=progress))
        return Run(target, self.config, self.encoding, posterior, verdict=verdict)

    @property
    def _to_judge(self) -> tuple[Data, Data | None]:
        """Rows of the fit, and those that training was only stopped by; of rows in a file some from anywhere."""
        if isinstance(self.data, FileData):
            return some_of(self.data, ROWS_JUDGED), None
        return self.data, self.data.split(self.choice.validation)[1] if self.choice.validation else None

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
    """A network fitted to a table, with the rules that turn the table's columns into numbers.

    `verdict` is what `credo.check` found at the end of the fit; None where nobody has looked since.
    `calibration` is what its predictions go through, if anything: see `runs.calibration`.

    >>> import credo
    >>> run = credo.runs.Run.load("run")
    >>> run.config.target, next(run.predict("houses.csv")).columns[:2]
    ('price', ['mean', 'sd'])
    """

    folder: Path
    config: Config
    encoding: Encoding
    posterior: Posterior
    updates: tuple[Update, ...] = ()
    verdict: Check | None = None
    calibration: Calibration | None = None

    @property
    def to_mend(self) -> list[str]:
        """What would mend what its verdict is not content with: the command, and what else may help."""
        return how_to_mend(self.folder, self.config, self.verdict)

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
            begun, verdict = _begun(source, held), read_verdict(source, held)
            posterior, calibration = Calibration.read(source, held, read_posterior(source, held))
            return cls(source, *begun, posterior, read_updates(source, held), verdict, calibration)

        return read_whole(source, read)

    def predict(
        self,
        file: TableFile,
        *,
        level: float = 0.95,
        keep: Sequence[str] = (),
        unknown: Unknown = "error",
        cost: str = "",
    ) -> Iterator[pl.DataFrame]:
        """Predictions for the rows of a table, some at a time, as in `prediction_frame`, and how far outside they are.

        The column `outside` is the largest distance of an input from its training range, in widths of that range. A
        warning counts the rows that are further than a tenth of it.

        Arguments:
            file: with the columns of the training table; the target is not needed. With a column of precisions, if the
                fit had one, the noise is that of each row; without, that of a typical one.
            level: the probability between lower and upper.
            keep: columns to copy from the table.
            unknown: "error", or "missing" to treat new categories as missing.
            cost: what wrong decisions cost, as for `credo.tables.costs.costs_from`; adds the decision of least expected
                cost, and that cost.
        """
        table = self.table(file)
        costs = costs_from(cost, self.encoding.target.labels) if cost else None
        for name in keep:
            if name not in table.columns:
                raise ValueError(f"{table.path} has no column {name!r} to keep{nearest(name, table.columns)}")
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it is a probability, between 0 and 1")
        weighed = next((one for one in self.encoding.columns if isinstance(one, Precisions)), None)
        weighed = weighed if weighed is not None and weighed.name in table.columns else None
        named = list(dict.fromkeys([*keep, *([weighed.name] if weighed else [])]))
        parts = ((rows.select(named), x) for rows, x in self.encoding.inputs(table, unknown=unknown))
        far, done = FarRows(self.encoding.names), 0
        for kept, x in regrouped(parts, BATCH_ROWS):
            prediction: Any = self.posterior.predict(x)
            if weighed:
                rows, done = range(done + 1, done + 1 + len(x)), done + len(x)
                prediction = prediction.with_precisions(weighed.values(kept[weighed.name], rows))
            said = prediction_frame(prediction, self.encoding.target, level=level)
            if costs is not None:
                said = said.with_columns(**decisions(prediction, costs, self.encoding.target.labels))
            said = said.with_columns(outside=far.see(*self.encoding.outside(x)))
            if self.calibration is not None:
                said = said.with_columns(**self.calibration.columns(x, self.encoding.target))
            if twice := [name for name in keep if name in said.columns]:
                raise ValueError(f"the column {twice[0]!r} cannot be kept: the predictions have one of that name")
            yield kept.select(keep).hstack(said) if keep else said
        far.warn()

    def evaluate(self, file: TableFile, *, unknown: Unknown = "error") -> Scores:
        """Every score on a test table, which stays in a file where memory has no room for it."""
        table = self.table(file)
        if is_too_large(self.encoding, table):
            return evaluate(self.posterior, file_data(self.encoding, table, unknown=unknown))
        return evaluate(self.posterior, self.encoding.data(table, unknown=unknown))

    def test_data(self, file: TableFile, *, unknown: Unknown = "error") -> Data:
        """A test table as numbers."""
        return self.encoding.data(self.table(file), unknown=unknown)

    def table(self, file: TableFile) -> Table:
        """A table in a file that is written as that of the fit, where nothing else is said of it."""
        if not isinstance(file, str | Path | Source):
            return as_table(file)
        return open_table(Source.of(file).like(self.config.source))


def prepare(config: Config) -> Prepared:
    """Read the table of a run, and settle everything left open: the task, the method and why, the checksum.

    >>> import credo
    >>> prepared = credo.runs.prepare(credo.runs.Config("houses.csv", "price", network="linear"))
    >>> prepared.encoding.target.task, prepared.encoding.names
    ('regression', ('city=Bern', 'city=Rome', 'city=Ulm', 'size'))
    """
    if config.made_from:
        raise ValueError(
            f"the config is that of a simpler form of the run in {config.made_from}, which is not fitted to a table; "
            "make it again from that run, with credo distill or credo compress"
        )
    table = open_table(config.source)
    found = table.checksum
    if config.data_sha256 not in ("", found):
        raise ValueError(
            f"{table.path} is not the file that the run was made from: its checksum differs; get that file, or set "
            "data_sha256 to '' to fit this one"
        )
    encoding = encoding_of(config, table)
    config = replace(config, network=_settled_network(config, encoding))
    data: Data | FileData
    if is_too_large(encoding, table):
        data, seen, config = in_file(config, encoding, table)
    else:
        data = seen = encoding.training_data(table)
    config = settled_likelihood(config, encoding, seen)
    model = model_of(config, encoding, seen)
    choice = chosen(config, model, data)
    settled = replace(
        config,
        data=str(table.path.resolve()),
        data_sha256=found,
        target=",".join(encoding.target.columns),
        task=encoding.target.task,
        why=choice.why,
        validation=choice.validation or 0.0,
        credo_version=__version__,
        **_named(choice.method),
    )
    return Prepared(settled, encoding, data, model, choice)


def encoding_of(config: Config, file: Any) -> Encoding:
    """What a run learns about the columns of its table."""
    roles = {role: name for role in ROLES if (name := getattr(config, role))}
    return Encoding.learn(
        file,
        config.target,
        task=task_of(config),
        drop=config.drop,
        task_column=config.task_column,
        censored=config.censored,
        roles=roles,
    )


def _settled_network(config: Config, encoding: Encoding) -> str:
    """The network that is asked for; else one that a budget allows, and one with a head where heads are to vary."""
    if config.network != Config.network:
        return config.network
    if encoding.tasks is not None:
        return NETWORK_OF_TASKS
    if len(encoding.row) > 1:
        return NETWORK_OF_IMAGES
    return NETWORK_IN_HASTE if 0 < config.budget < HASTE else config.network


def model_of(config: Config, encoding: Encoding, data: Data) -> Model:
    """The network of a run, with its prior and its likelihood."""
    if networks.is_table(config.network) and encoding.tasks is None:
        own = partial(prior_of, config, encoding)
        return models.table(data, config.network, prior=own, likelihood=config.likelihood)
    network = networks.from_text(config.network, encoding.target.num_outputs)
    prior = prior_of(config, encoding)
    if encoding.tasks is not None:
        likelihood = "classification" if encoding.target.is_classes else "regression"
        return models.tasks(network, varying="head.*", prior=prior, likelihood=likelihood)
    return models.MODELS["classification" if encoding.target.is_classes else "regression"](network, prior=prior)


def chosen(config: Config, model: Model, data: Data | FileData) -> Choice:
    """The method of a run with its settings, and why it was chosen if the user left that open."""
    if config.method != "auto":
        return Choice(build(config.method, config.settings), config.why, config.validation or None)
    if config.settings:
        raise ValueError(f"settings ({', '.join(config.settings)}) belong to a method; name it with method=…")
    return choose(model, data, budget=config.budget or None)


def describe(folder: str | Path) -> dict[str, Any]:
    """A run, finished or not, in plain values: state, settings, prior, columns, model, diagnostics, verdict.

    >>> import credo
    >>> found = credo.runs.describe("run")
    >>> found["finished"], list(found["columns"])
    (True, ['city', 'size', 'price'])
    """
    source = Path(folder)
    begun = is_run(source) and (held := opened(source)).posterior is None
    run = None if begun else Run.load(source)
    config, encoding = (run.config, run.encoding) if run else _begun(source, held)
    state, judgement = "not ended yet", None
    if run:
        made, judgement = run.posterior.provenance, run.verdict or run.posterior.diagnostics
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
        "status": str(judgement.status) if judgement else "",
        "answers": in_lines(judgement.answers) if judgement else [],
        "verdict": judgement.verdict if judgement else "",
        "to_mend": run.to_mend if run else [],
    }


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, finished or not, or what an earlier version left of one before it began.

    >>> from pathlib import Path
    >>> import credo
    >>> credo.runs.is_run(Path("run")), credo.runs.is_run(Path("."))
    (True, False)
    """
    return holds_a_run(folder) or all((folder / name).exists() for name in (CONFIG, COLUMNS))


def require_free(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder that holds anything else, or a run that is neither to be continued nor replaced.

    What a process that was stopped has left undone in it is done first.

    >>> from pathlib import Path
    >>> import credo
    >>> credo.runs.require_free(Path("another"), resume=False, overwrite=False)
    >>> try:
    ...     credo.runs.require_free(Path("run"), resume=False, overwrite=False)
    ... except ValueError as error:
    ...     print(error)
    run holds a run already; choose another folder, continue it (resume=True), or replace it (overwrite=True)
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
