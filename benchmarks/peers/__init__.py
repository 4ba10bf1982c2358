"""Programs that run in the peers' own environment: `make .venv-peers/.installed`."""

import os
from pathlib import Path
from typing import Any

from benchmarks.timing import in_new_process

FOLDER = Path(__file__).parent


def interpreter() -> str | None:
    """Python of the peers' environment, or the one that CREDO_PEERS names; None where there is none."""
    path = Path(os.environ.get("CREDO_PEERS", FOLDER.parents[1] / ".venv-peers" / "bin" / "python"))
    return str(path) if path.exists() else None


def measure(program: str, *arguments: str) -> Any:
    """What one of the programs of this folder prints as JSON."""
    return in_new_process([str(interpreter()), "-W", "ignore", str(FOLDER / program), *arguments])
