"""Every setting of a run, in a file that people can read: config.toml."""

import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import tomli_w

from credo._text import nearest
from credo._version import __version__
from credo.inference.settings import as_value

CONFIG = "config.toml"
HEADING = "# How this run was made. Pass this file to `credo fit` as its config to repeat it, to the bit.\n\n"
# What TOML may hold where a setting is not a text.
NUMBER = (int, float)
TYPES: dict[str, Any] = {
    "drop": list,
    "prior_scale": NUMBER,
    "smooth": bool,
    "strength": NUMBER,
    "monotone": dict,
    "seed": int,
    "settings": dict,
}


@dataclass(frozen=True)
class Config:
    """Every setting of a run.

    Arguments:
        data: the file with the table.
        target: the column to predict.
        task: "regression", "binary" or "multi-class"; "" finds it from the target.
        task_column: the column whose levels are tasks, "" for none: see `credo.models.tasks`.
        drop: columns not to use.
        network: as in `credo.networks.from_text`.
        prior_scale: σ of the prior N(0, σ²) of the weights.
        monotone: "+" for each column with which the prediction rises, "-" with which it falls.
        smooth: whether the prediction changes slowly with all columns.
        strength: of these two, as a multiple of their usual strengths.
        method: its name, or "auto".
        settings: of the method, where they differ from its defaults.
        seed: the same seed gives the same bits.
        made_from: the folder of the run that this one is a simpler form of, "" for none: see `runs.simplified`.
        why: the reason for the method, if "auto" chose it.
        data_sha256: the checksum that the file must have; "" accepts any.
        credo_version: the version that made the run.
    """

    data: str
    target: str | None = None
    task: str = ""
    task_column: str = ""
    drop: tuple[str, ...] = ()
    network: str = "mlp:50,50"
    prior_scale: float = 1.0
    smooth: bool = False
    strength: float = 1.0
    method: str = "auto"
    seed: int = 0
    made_from: str = ""
    why: str = ""
    data_sha256: str = ""
    credo_version: str = __version__
    settings: dict[str, Any] = field(default_factory=dict)
    monotone: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("data", self.data), ("target", self.target or "")):
            if any("\ud800" <= letter <= "\udfff" for letter in value):
                raise ValueError(f"{name} is {value!r}, a name that is not UTF-8 and cannot be written down; rename it")

    @classmethod
    def read(cls, path: str | Path) -> "Config":
        """Read a TOML file; settings that it does not name keep their defaults."""
        source = Path(path)
        try:
            return cls.parse(source.read_bytes(), source)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{source} does not exist; check the name and the folder") from error

    @classmethod
    def parse(cls, content: bytes, source: Path) -> "Config":
        """The settings that a TOML file holds."""
        try:
            stored = tomllib.loads(content.decode())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{source} is not TOML: {error}") from error
        known = {item.name: item.default for item in fields(cls)}
        for name, value in stored.items():
            if name not in known:
                raise ValueError(
                    f"{source} has an unknown {name!r}{nearest(name, known)}; it may have {', '.join(known)}"
                )
            _require_type(source, name, value)
        if "data" not in stored:
            raise ValueError(f"{source} does not say which table to fit; add data = 'train.csv'")
        stored = as_value(stored)
        return cls(**(stored | {"target": stored.get("target") or None}))

    def to_toml(self) -> bytes:
        """All settings as TOML."""
        return (HEADING + tomli_w.dumps(asdict(self) | {"target": self.target or ""})).encode()


def _require_type(source: Path, name: str, value: Any) -> None:
    expected: Any = TYPES.get(name, str)
    if not isinstance(value, expected):
        raise ValueError(f"{source}: {name} cannot be {value!r}; see the {CONFIG} of any run")
