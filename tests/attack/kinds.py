"""The kinds of attack: each is a file with a function `prepare(folder)`, which gives a function of one case."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from tests.attack.outcomes import Outcome

Case = Callable[[np.random.Generator], Outcome]


@dataclass(frozen=True)
class Kind:
    """What is attacked, and the share of the time that goes into it."""

    says: str
    share: float


KINDS = {
    "folders": Kind("saved posteriors and finished runs, damaged, also with checksums made anew", 28),
    "checkpoints": Kind("unfinished runs, damaged likewise, and resumed", 4),
    "tables": Kind("hostile CSV, Parquet and NPZ files, read and predicted from", 10),
    "writes": Kind("a simulated kill at any write of any method: fit, overwrite, resume, save, distill", 22),
    "kills": Kind("SIGKILL of real processes at random moments, for every method, resumed to the end", 22),
    "signals": Kind("SIGINT and SIGTERM at random moments of real command lines", 6),
    "races": Kind("several processes on one folder", 3),
    "disk": Kind("a disk that is full after so many bytes", 3),
    "threads": Kind("eight threads that fit, load, predict and evaluate at once", 2),
    "layouts": Kind("dtypes, memory layouts and containers of arrays", 2),
    "x64": Kind("every method in double precision", 1.5),
    "memory": Kind("fits under a limit of the address space", 1.5),
}


def prepare(kind: str, folder: Path) -> Case:
    """The function of one case of a kind; what is shared by cases and by kinds is kept in the folder."""
    return import_module(f"tests.attack.{kind}").prepare(folder)
