"""What a run has learned since its fit: a record of each table, in updates.json."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from credo._files import LoadError, parsed, require_unaltered, signed
from credo._manifest import Manifest
from credo._schema import Count, Sha256, checked

UPDATES = "updates.json"
FORMAT, FORMAT_VERSION = "credo-updates", 1


@dataclass(frozen=True)
class Update:
    """What a run has learned from one table.

    Arguments:
        file: the table.
        sha256: its checksum.
        num_rows: with a target.
        log_score: mean log density of its targets before it was learned, in nats; None where no class was known.
        log_score_after: the same after it was learned.
        new_classes: that the run had not known.
        drift: what the alarm says.
        rang: whether it rang in this table.
        refitted_because: why the run could not go on by itself, and was fitted again to all its tables; "" if it could.
        written: how the file is written, as in `credo.tables.Source`, where the user said so.
    """

    file: str
    sha256: Sha256
    num_rows: Count
    log_score: float | None
    log_score_after: float | None
    new_classes: tuple[str, ...]
    drift: str
    rang: bool
    refitted_because: str = ""
    written: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        new = f"; new classes: {', '.join(self.new_classes)}" if self.new_classes else ""
        score = (
            ""
            if self.log_score is None
            else f", log score {self.log_score:.3f} before and {self.log_score_after:.3f} after"
        )
        again = f"; fitted again to all tables so far, since {self.refitted_because}" if self.refitted_because else ""
        return f"{self.file}: {self.num_rows:,} rows{score}{new}; drift: {self.drift}{again}"


def to_json(updates: Sequence[Update]) -> bytes:
    """All records, with a checksum."""
    stored = {"updates": [one.to_dict() for one in updates]}
    return signed({"format": FORMAT, "format_version": FORMAT_VERSION} | stored)


def read_updates(folder: Path, held: Manifest) -> tuple[Update, ...]:
    """What the run in a folder with that manifest has learned since its fit."""
    if UPDATES not in held.files:
        return ()
    path = folder / UPDATES
    stored = require_unaltered(path, parsed(path, held.file(folder, UPDATES)))
    if (stored.get("format"), stored.get("format_version")) != (FORMAT, FORMAT_VERSION):
        raise LoadError(f"{path} was not written by this version of credo, or it is damaged; install a newer credo")
    return checked(path, stored.get("updates"), tuple[Update, ...])
