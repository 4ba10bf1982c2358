"""Every setting of a run, in a file that people can read: config.toml."""

import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import tomli_w

from credo._text import nearest
from credo._version import __version__
from credo.inference.settings import as_value
from credo.tables.source import Source

CONFIG = "config.toml"
HEADING = "# How this run was made. Pass this file to `credo fit` as its config to repeat it, to the bit.\n\n"
# What TOML may hold where a setting is not a text.
NUMBER = (int, float)
TYPES: dict[str, Any] = {
    "drop": list,
    "prior_scale": NUMBER,
    "validation": NUMBER,
    "budget": NUMBER,
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
        sep, decimal, encoding, sheet: how it is written, as in `credo.tables.Source`; "" is found.
        target: the column to predict, or several of numbers, "height,weight".
        task: "regression", "binary" or "multi-class"; "" finds it from the target.
        likelihood: of the model for tables, "counts", "positive", "shares" or "ordinal"; "any" for numbers that may be
            anything, and for classes without an order; "auto" finds it from the target.
        found: why it is this likelihood, if it was found.
        censored: the column that says yes where the target is only a lower bound, "" for none.
        task_column: the column whose levels are tasks, "" for none: see `credo.models.tasks`.
        group: the column that says which rows belong together, "" for none: no split cuts a group.
        time: the column that orders the rows in time, "" for none: rows that are held out are the latest.
        counts: the column that says how often each row was seen, "" for none: its likelihood to that power.
        precisions: the column that says how precisely each row was measured, "" for none: w of the variance σ²/w of its
            noise, of which only ratios matter.
        drop: columns not to use.
        network: as in `credo.networks.from_text`; "table" is that of `credo.models.table`, with its prior and noise.
        prior_scale: σ of the prior N(0, σ²) of the weights; the scales of "table" are drawn.
        monotone: "+" for each column with which the prediction rises, "-" with which it falls.
        smooth: whether the prediction changes slowly with all columns.
        strength: of these two, as a multiple of their usual strengths.
        method: its name, or "auto".
        settings: of the method, where they differ from its defaults.
        validation: the share of the rows that training stops by, 0 for none.
        budget: seconds on the clock that "auto" may spend, 0 for what suits the table.
        seed: the same seed gives the same bits.
        made_from: the folder of the run that this one is a simpler form of, "" for none: see `runs.simplified`.
        why: the reason for the method, if "auto" chose it.
        data_sha256: the checksum that the file must have; "" accepts any.
        credo_version: the version that made the run.

    >>> import credo
    >>> config = credo.runs.Config("houses.csv", "price", method="map", settings={"num_steps": 50})
    >>> config.target, config.likelihood, config.seed
    ('price', 'auto', 0)
    """

    data: str
    target: str | None = None
    sep: str = ""
    decimal: str = ""
    encoding: str = ""
    sheet: str = ""
    task: str = ""
    likelihood: str = "auto"
    found: str = ""
    censored: str = ""
    task_column: str = ""
    group: str = ""
    time: str = ""
    counts: str = ""
    precisions: str = ""
    drop: tuple[str, ...] = ()
    network: str = "table"
    prior_scale: float = 1.0
    smooth: bool = False
    strength: float = 1.0
    method: str = "auto"
    validation: float = 0.0
    budget: float = 0.0
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

    @property
    def source(self) -> Source:
        """The file with the table, and how it is written."""
        return Source(self.data, self.sep, self.decimal, self.encoding, self.sheet)

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
        # Earlier versions had no word for numbers that may be anything.
        likelihood = {"likelihood": "any"} if stored.get("likelihood") == "" else {}
        return cls(**(stored | likelihood | {"target": stored.get("target") or None}))

    def to_toml(self) -> bytes:
        """All settings as TOML."""
        return (HEADING + tomli_w.dumps(asdict(self) | {"target": self.target or ""})).encode()


def _require_type(source: Path, name: str, value: Any) -> None:
    expected: Any = TYPES.get(name, str)
    if not isinstance(value, expected):
        raise ValueError(f"{source}: {name} cannot be {value!r}; see the {CONFIG} of any run")
