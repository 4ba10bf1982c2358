"""The folder of a run: what it holds beside the posterior, and whether a run may be written there."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from credo._files import PARTIAL, LoadError
from credo._folders import NEXT, holds_a_run, locked
from credo._manifest import Manifest
from credo.runs.config import CONFIG, Config
from credo.runs.history import UPDATES, Update, to_json
from credo.tables.encoding import Encoding

COLUMNS = "columns.json"


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


def begun(folder: Path, held: Manifest) -> tuple[Config, Encoding]:
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
