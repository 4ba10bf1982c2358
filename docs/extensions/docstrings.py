"""The docstrings of the house as reStructuredText.

    One line.

        an indented block is an equation, as it stands

    Arguments:
        name, other: text, which may go on
            in further lines.

Nothing but backticks is markup: `*` is a wildcard, `|` a condition, a trailing `_` a name.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

from credo.evaluation.metric import Metric
from credo.inference.catalogue import Entry, arguments_of
from credo.inference.method import Method
from credo.inference.registry import METHODS, name_of

HEADING = re.compile(r"(Arguments|Returns|Example):$")
ENTRY = re.compile(r"    (\w+(?:, \w+)*): ?(.*)")
MARKUP = re.compile(r"([\\*|]|(?<=\w)_(?!\w))")
# What Python makes of `ArrayLike` and of numbers with bounds, which nobody writes.
ARRAY_LIKE = re.compile(r"[~\w.]*_Buffer \|.*?\| [~\w.]*_NestedSequence\[complex \| bytes \| str\]")
BOUNDED = re.compile(r"[~\w.]*Annotated\[((?:[^\[\]]|\[[^\[\]]*\])*?), [~\w.]*Meta\([^()]*\)\]")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-process-signature", _shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    if isinstance(obj, type) and issubclass(obj, Method):
        lines[:] = with_settings(lines, obj)
    lines[:] = as_rst(lines)


def with_settings(lines: list[str], method: type[Method]) -> list[str]:
    """A method's docstring, with the settings that it shares with others, and what is to be known about it."""
    entry = Entry(name_of(method()), method) if method in METHODS.values() else None
    if entry is None:
        return lines
    own = {name for names, _ in arguments_of("\n".join(lines)) for name in names}
    shared = [f"    {one.name}: {one.meaning}" for one in entry.settings if one.name not in own]
    at = lines.index("Arguments:") + 1 if own else _first_example(lines)
    return [*lines[:at], *([] if own else ["Arguments:"]), *shared, *([] if own else [""]), *lines[at:]]


def _first_example(lines: list[str]) -> int:
    return next((at for at, line in enumerate(lines) if line.startswith(">>>")), len(lines))


def _shorten(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Signatures as people read them; a metric is computed for weighted rows, and gives one number."""
    if what == "class" and is_dataclass(obj):
        signature = stringify_signature(signature_of(obj), unqualified_typehints=True)
    return shortened(signature), "float" if isinstance(obj, Metric) else shortened(returned)


def signature_of(kind: type) -> inspect.Signature:
    """The settings of a dataclass, whatever its `__new__` takes, with defaults that are made afresh as calls."""
    made = {one.name: one.default_factory for one in fields(kind) if one.default_factory is not MISSING}
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return inspect.Signature(
        [one.replace(default=_Call(made[one.name])) if one.name in made else one for one in parameters]
    )


class _Call:
    """Prints as the call of what makes a default."""

    def __init__(self, factory: Callable[[], object]) -> None:
        self.text = f"{type(factory()).__name__}()"

    def __repr__(self) -> str:
        return self.text


def shortened(signature: str | None) -> str | None:
    """Types by the names that they have in the source."""
    signature = signature and ARRAY_LIKE.sub("ArrayLike", signature)
    while signature and BOUNDED.search(signature):
        signature = BOUNDED.sub(r"\1", signature)
    return signature


def as_rst(lines: list[str]) -> Iterator[str]:
    """A docstring, line by line.

    >>> list(as_rst(["Arguments:", "    low, high: of `a*b`,", "        not a*b."]))
    [':Arguments:', '  - **low**, **high**: of `a*b`,', '    not a\\\\*b.']
    """
    part, before = "text", ""
    for line in lines:
        heading, entry = HEADING.match(line), ENTRY.match(line)
        if not line.strip():
            part = "text" if part == "example" else part
        elif line.lstrip().startswith(">>>"):
            part = "example"
        elif heading:
            part = heading[1]
        elif not line.startswith(" "):
            part = part if part == "example" else "text"
        elif part == "text" and not before.strip():
            part = "equation"
            yield from ("::", "")
        if heading:
            yield f":{part}:"
        elif part == "Arguments" and entry:
            yield f"  - {', '.join(f'**{name}**' for name in entry[1].split(', '))}: {escaped(entry[2])}"
        elif part == "Arguments":
            yield escaped(line[4:])
        else:
            yield line if part in ("equation", "example") else escaped(line)
        before = line


def escaped(line: str) -> str:
    """Text without markup, but for what stands between backticks.

    >>> escaped("log p(y|x, theta_) of `a|b`")
    'log p(y\\\\|x, theta\\\\_) of `a|b`'
    """
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if part.startswith("`") else MARKUP.sub(r"\\\1", part) for part in parts)
