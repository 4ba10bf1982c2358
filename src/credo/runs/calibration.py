"""What was learned from held-out rows about a run: a map of its predictions, and the size of conformal sets.

run/calibration.json    the map and the threshold, with which the predictions of the run go on

A run that has one predicts through it; what it was fitted to the table with stays as it was.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import polars as pl

from credo._files import LoadError, parsed
from credo._manifest import Manifest
from credo._schema import checked
from credo.evaluation.class_maps import IsotonicClasses, Temperature, VectorScaling
from credo.evaluation.conformal import BANDS, CLASS_SCORES, Conformal
from credo.evaluation.quantile_map import IsotonicQuantiles
from credo.evaluation.recalibration import Map, Recalibrated
from credo.tables.predictions import named
from credo.tables.target import Target

CALIBRATION = "calibration.json"
MAPS: dict[str, Any] = {one.__name__: one for one in (IsotonicQuantiles, IsotonicClasses, Temperature, VectorScaling)}
# How JSON has the fields of maps.
STORED_AS: dict[Any, Any] = {np.ndarray: list[float], tuple[np.ndarray, ...]: list[list[list[float]]]}


@dataclass(frozen=True, eq=False)
class Calibration:
    """What predictions go through.

    Arguments:
        map: of the marginal; None leaves it as it is.
        sets: conformal sets of the posterior that they were made for; None for none.
    """

    map: Map | None = None
    sets: Conformal | None = None

    def to_json(self) -> bytes:
        """As JSON."""
        recalibration = None if self.map is None else {"kind": type(self.map).__name__, **_listed(self.map)}
        names = [] if self.sets is None else [one.name for one in fields(self.sets) if one.name != "posterior"]
        sets = {name: getattr(self.sets, name) for name in names} or None
        return json.dumps({"recalibration": recalibration, "conformal": sets}, indent=2).encode()

    @classmethod
    def read(cls, folder: Path, held: Manifest, posterior: Any) -> tuple[Any, "Calibration | None"]:
        """The posterior of a run, seen through the calibration in its folder, if there is one, and that."""
        if CALIBRATION not in held.files:
            return posterior, None
        source = folder / CALIBRATION
        stored = parsed(source, held.file(folder, CALIBRATION))
        found = cls(_map(source, stored.get("recalibration")))
        seen = posterior if found.map is None else Recalibrated(posterior, found.map)
        return seen, replace(found, sets=_sets(source, stored.get("conformal"), seen))

    def columns(self, x: np.ndarray, target: Target) -> dict[str, pl.Series]:
        """What conformal sets add to a table of predictions: an interval, or the classes that are in the set."""
        if self.sets is None:
            return {}
        if not target.is_classes:
            ends = dict(zip(("conformal_lower", "conformal_upper"), self.sets.interval(x), strict=True))
            return {name: pl.Series(values) for name, values in named(ends, target).items()}
        held = self.sets.labels(x)
        names = np.array(target.labels, dtype=object)
        return {"conformal_set": pl.Series(["|".join(names[row]) for row in held], dtype=pl.String)}


def _listed(map: Any) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        return [plain(one) for one in value] if isinstance(value, tuple) else np.asarray(value).tolist()

    return {name: plain(value) for name, value in asdict(map).items()}


def _map(source: Path, stored: Any) -> Map | None:
    if stored is None:
        return None
    own = checked(source, stored, dict[str, Any])
    kind = own.get("kind")
    if kind not in MAPS:
        raise LoadError(f"{source} has a map of kind {kind!r}, which this version does not know; install a newer credo")
    hints = get_type_hints(MAPS[kind])
    values = {name: checked(source, own.get(name), STORED_AS.get(hint, hint)) for name, hint in hints.items()}
    return MAPS[kind](**{name: _arrays(value) for name, value in values.items()})


def _arrays(value: Any) -> Any:
    """Lists as arrays, and lists of tables as tuples of arrays."""
    if not isinstance(value, list):
        return value
    nested = value and isinstance(value[0], list)
    return tuple(np.array(one) for one in value) if nested else np.array(value)


def _sets(source: Path, stored: Any, posterior: Any) -> Conformal | None:
    if stored is None:
        return None
    own = checked(source, stored, dict[str, Any])
    hints = {name: hint for name, hint in get_type_hints(Conformal).items() if name != "posterior"}
    found = Conformal(posterior, **{name: checked(source, own.get(name), hint) for name, hint in hints.items()})
    if found.score not in BANDS | CLASS_SCORES:
        raise LoadError(f"{source} has conformal sets by {found.score!r}, which this version does not know")
    return found
