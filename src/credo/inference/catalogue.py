"""Every method with all that is known about it: the table of `credo methods` and of docs/methods.md.

A method says in its own file what only people can say (`Guide`); everything else is read off its code: the settings
with their defaults and meanings, what it will store for a given model, whether it takes minibatches.
"""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, asdict, dataclass, fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from credo import models, networks
from credo._text import size_in_words
from credo.inference.auto import ROWS_PER_POINT, rules
from credo.inference.guide import EXACTNESS
from credo.inference.method import Method, Wrapper
from credo.inference.needs import Needs
from credo.inference.registry import METHODS, method_name
from credo.models.program import Model

LABELS = {"benefits": "benefits", "limits": "limits", "use_cases": "use it for", "stores": "stores", "costs": "costs"}
REACHES = "reaches, at its defaults"
REACHES_MEANS = (
    f"*{REACHES}*: how far it is, with no setting changed, from the exact posterior of a regression that is linear in "
    "six weights, with known noise, from 300 rows: functions at 50 inputs, the worst of them. Figures are bounds that "
    "a test holds (`tests/contract/test_defaults.py`). On networks it is another matter."
)
AUTO = "The method “auto” chooses one of them by the size of model and data, and says why"


class Setting(NamedTuple):
    """An argument of a method: its default as one would write it, and what it means."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Entry:
    """A method of the registry, with all that is known about it."""

    name: str
    type: type[Method]

    @property
    def title(self) -> str:
        """The method as one would write it."""
        return f"credo.{self.type.__name__}()"

    @property
    def what(self) -> str:
        """What it is: the first sentence of its docstring."""
        return re.split(r"(?<=\.)\s", self.type.__doc__ or "")[0]

    @property
    def settings(self) -> list[Setting]:
        return [Setting(one.name, _default(one), _meaning(self.type, one.name)) for one in fields(self.type)]

    @property
    def abilities(self) -> dict[str, bool]:
        """What some methods can do and others cannot."""
        inner: Method = self.type()
        plan = inner.plan()
        while isinstance(inner, Wrapper):
            inner = inner.inner
        return {
            "runs on minibatches": hasattr(inner, "batch_size"),
            "stops early by held-out data": plan.uses_held_out,
            "learns the parameters of a prior": plan.learns_xi,
        }

    @property
    def example(self) -> Needs:
        """What it stores for two hidden layers of 50 units on ten columns, with its default settings."""
        return self.type().describe(_example_model(), None)

    @property
    def facts(self) -> dict[str, str]:
        """What there is to say about it beside its settings, by label."""
        guide, example = self.type.guide, self.example
        said = {label: getattr(guide, name) for name, label in LABELS.items()}
        size = size_in_words(example.num_bytes)
        said["stores"] += f": {example.stored}, {size}, for a model of {example.num_parameters:,} parameters"
        able = [what for what, can in self.abilities.items() if can]
        exactness = {"exact?": f"{guide.exact}: {EXACTNESS[guide.exact]}"}
        reached = {"reaches": str(guide.reaches)}
        trouble = {"if it fails": self.type().words.if_non_finite}
        return exactness | reached | said | trouble | ({"also": ", ".join(able)} if able else {})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "class": self.type.__name__,
            "what": self.what,
            **asdict(self.type.guide),
            "example": asdict(self.example),
            "abilities": self.abilities,
            "settings": [setting._asdict() for setting in self.settings],
        }


def entries() -> list[Entry]:
    """All methods, in the order of the registry."""
    return [Entry(name, kind) for name, kind in METHODS.items()]


def entry(name: str) -> Entry:
    """The method of that name; an unknown name is refused with the nearest one.

    >>> entry("nuts").settings[0]
    Setting(name='num_samples', default='1000', meaning='draws kept per chain.')
    """
    found = method_name(name)
    return Entry(found, METHODS[found])


@cache
def _example_model() -> Model:
    return models.regression(networks.MLP([50, 50], out=1)).bind((np.zeros((2, 10)), np.zeros(2)))


# -- settings, from the fields and the docstrings of a class ---------------------------------------------------


def _default(setting: Field) -> str:
    if setting.default is not MISSING:
        return repr(setting.default)
    if setting.default_factory is MISSING:
        return "(required)"
    value = setting.default_factory()
    return f"{type(value).__name__}()" if value == type(value)() else repr(value)


def _meaning(kind: type, name: str) -> str:
    """What the docstring of a class, or of the one it inherits the setting from, says about it."""
    for one in kind.__mro__:
        for names, meaning in arguments_of(one.__doc__ or ""):
            if name in names:
                return meaning
    raise ValueError(f"{kind.__name__}: no docstring says what {name} means; add it to the Arguments")


def arguments_of(docstring: str) -> Iterator[tuple[list[str], str]]:
    """The entries of a docstring's "Arguments:": names that share a text, and the text.

    >>> list(arguments_of('''One line.
    ...
    ...     Arguments:
    ...         rate: how fast,
    ...             in steps.
    ...         low, high: bounds.
    ... '''))
    [(['rate'], 'how fast, in steps.'), (['low', 'high'], 'bounds.')]
    """
    block = re.search(r"^( *)Arguments:\n(.*?)(?=\n *\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    if block is None:
        return
    margin = " " * (len(block[1]) + 4)
    for item in re.split(rf"^{margin}(?=\S)", block[2], flags=re.MULTILINE)[1:]:
        names, _, text = item.partition(":")
        yield [name.strip() for name in names.split(",")], " ".join(text.split())


# -- Markdown --------------------------------------------------------------------------------------------------


def markdown() -> str:
    """The contents of docs/methods.md."""
    rows = [
        [f"[{one.name}](#{one.name})", guide.exact, str(guide.reaches), *(getattr(guide, name) for name in LABELS)]
        for one in entries()
        for guide in [one.type.guide]
    ]
    parts = [
        "# Methods",
        "What `credo.fit(model, data, method)` takes as its method, by name or as an object with settings. "
        f"{AUTO} (see [below](#auto)). This page is written by `credo methods --markdown`.",
        "\n".join(f"- *{name}*: {meaning}" for name, meaning in EXACTNESS.items()),
        REACHES_MEANS,
        _markdown_table(["method", "exact?", REACHES, *LABELS.values()], rows),
        *(_section(one) for one in entries()),
        "## auto",
        f"{AUTO}. The first line that fits decides; a point of a condition counts as {ROWS_PER_POINT:g} rows:",
        _markdown_table(["model and data", "method"], [[case, method] for case, method in rules().items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _section(one: Entry) -> str:
    facts = "\n".join(f"- **{label}**: {text}" for label, text in one.facts.items())
    rows = [[f"`{setting.name}`", f"`{setting.default}`", setting.meaning] for setting in one.settings]
    settings = _markdown_table(["setting", "default", "meaning"], rows)
    return "\n\n".join([f"## {one.name}", f"`{one.title}`: {one.what}", facts, settings])


def _markdown_table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
