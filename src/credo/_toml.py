"""Writing TOML, which the standard library only reads."""

import json
from collections.abc import Mapping
from typing import Any


def to_toml(values: Mapping[str, Any], *, table: str = "") -> str:
    """Text, numbers, truth values, lists of them, and tables of those.

    >>> print(to_toml({"seed": 1, "rate": 1e-3, "start": {"name": "map"}}), end="")
    seed = 1
    rate = 0.001
    <BLANKLINE>
    [start]
    name = "map"
    """
    plain = {name: value for name, value in values.items() if not isinstance(value, Mapping)}
    lines = [f"[{table}]\n"] if table and plain else []
    lines += [f"{_key(name)} = {_value(value)}\n" for name, value in plain.items()]
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            path = f"{table}.{_key(name)}" if table else _key(name)
            inner = to_toml(value, table=path)
            lines.append(inner if inner.startswith("\n") or not (lines or table) else f"\n{inner}")
    return "".join(lines)


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)  # the shortest text that reads back as the same number; nan and inf are TOML too
    if isinstance(value, int):
        return str(value)
    # A JSON string is a TOML string, but for the one control character that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
