"""The verdict of a run, in its folder: what was found at the end of its fit.

run/verdict.json    the answers of `credo.check`, with their figures
"""

import json
import shlex
from pathlib import Path

import msgspec

from credo._files import checksum_of, parsed, put_bytes
from credo._folders import VERDICT, locked, unwritable
from credo._manifest import Manifest
from credo._progress import working
from credo.data import Data
from credo.evaluation.check import Check, check
from credo.posterior import Posterior
from credo.runs.config import CONFIG, Config


def judged(
    folder: Path, posterior: Posterior, data: Data, held_out: Data | None = None, *, progress: bool | None = None
) -> Check:
    """The verdict on the finished run in a folder: what the folder holds, or else found now and written into it.

    Arguments:
        data: the rows of the fit.
        held_out: those of them that training was only stopped by.
    """
    held = Manifest.read(folder)
    if found := read_verdict(folder, held):
        return found
    with working("Judging the fit on rows left out", show=progress):
        found = check(posterior, data, held_out=held_out)
    content = json.dumps(found.to_dict(), indent=2).encode()
    with locked(folder):
        # Another process may have replaced the run meanwhile.
        if Manifest.read(folder) == held:
            try:
                put_bytes(folder / VERDICT, content)
                msgspec.structs.replace(held, files=held.files | {VERDICT: checksum_of(content)}).write(folder)
            except OSError as error:
                raise unwritable(folder, error) from error
    return found


def read_verdict(folder: Path, held: Manifest) -> Check | None:
    """The verdict that a folder holds; None where there is none."""
    if VERDICT not in held.files:
        return None
    return Check.from_dict(parsed(folder / VERDICT, held.file(folder, VERDICT)), folder / VERDICT)


def how_to_mend(folder: Path, config: Config, found: Check | None) -> list[str]:
    """What would mend the run in a folder: the command, and what else may help."""
    if found is None:
        return []
    changes = [f"--method {found.other_method}"] if found.other_method else []
    if not changes and config.method != "auto":
        changes = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in found.remedy.items()]
    own, target = shlex.quote(str(folder / CONFIG)), shlex.quote(str(folder))
    command = f"To mend it: credo fit --config {own} {' '.join(changes)} --out {target} --overwrite"
    return [*([command] if changes else []), *(f"What may help: {words}" for words in found.mend)]
