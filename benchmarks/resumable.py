"""Results that survive a kill: one JSON object per line, found again by the fit and all that it depends on."""

import json
import os
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple


class Fit(NamedTuple):
    """One fit to be made, or made."""

    name: str
    method: str
    split: int


class Results:
    """A file of one JSON object per line: a run that is killed loses the fit it was at, and no other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_bytes().splitlines() if path.exists() else []
        self.rows = [row for row in map(_parsed, lines) if row is not None]

    def find(self, fit: Fit, settings: dict[str, Any]) -> dict[str, float] | None:
        """The scores of a fit with these settings; None if it has not been made."""
        for row in reversed(self.rows):
            if row["fit"] == list(fit) and row["settings"] == settings:
                return row["scores"]
        return None

    def add(self, fit: Fit, settings: dict[str, Any], scores: dict[str, float]) -> None:
        row = {"fit": list(fit), "settings": settings, "scores": scores}
        self.rows.append(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            # Half a line, left by a kill, is ended: it spoils nothing that follows it.
            file.write((b"" if _is_whole(file) else b"\n") + json.dumps(row).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _is_whole(file: BinaryIO) -> bool:
    """Whether a file ends where a line does."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        return json.loads(line)
    except ValueError:  # half a line
        return None
