"""Methods by name with settings by name, as a command line or a configuration file gives them."""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from credo._text import nearest
from credo.inference.method import Method
from credo.inference.registry import METHODS, method_name, name_of
from credo.inference.sgmcmc.schedules import Constant, Cosine, Polynomial, Settling

# TOML has no None: this text stands for it, where the setting is not a text by default.
NONE = "none"
SCHEDULED = Constant | Cosine | Polynomial | Settling
SCHEDULES: dict[str, Any] = {"constant": Constant, "cosine": Cosine, "polynomial": Polynomial, "settling": Settling}


def build(name: str, settings: Mapping[str, Any] | None = None) -> Method:
    """A method of the registry with some of its settings changed.

    Arguments:
        name: of the method, or one that people use for it.
        settings: by name; those of a method within it as a table, which may name another method.

    >>> build("ensemble", {"members": 3, "method": {"num_steps": 10}}).method.num_steps
    10
    """
    return with_settings(METHODS[method_name(name)](), settings or {})


def with_settings(method: Method, settings: Mapping[str, Any]) -> Method:
    """The method with some settings changed, each checked against its fields."""
    known = [item.name for item in fields(method)]
    kinds = get_type_hints(type(method))
    changes = {}
    for name, value in settings.items():
        method.refuse_renamed(name)
        if name not in known:
            raise ValueError(
                f"{type(method).__name__} has no setting {name!r}{nearest(name, known)}; it has {', '.join(known)}"
            )
        changes[name] = _checked(f"{type(method).__name__}.{name}", value, getattr(method, name), kinds[name])
    return replace(method, **changes)


def settings_of(method: Method) -> dict[str, Any]:
    """All settings that text can hold: `build(name, settings_of(method))` is the method again, where those are all.

    >>> settings_of(build("ensemble"))["method"]["name"]
    'map'
    """
    return {
        item.name: _as_settings(value)
        for item in fields(method)
        if isinstance(value := getattr(method, item.name), str | int | float | bool | None | tuple | Method | SCHEDULED)
    }


def parse(text: str) -> dict[str, Any]:
    """Settings from `name=value`, where `outer.inner=value` is one of a method within.

    >>> parse("method.num_steps=100"), parse("prediction=linear"), parse("batch_size=none")
    ({'method': {'num_steps': 100}}, {'prediction': 'linear'}, {'batch_size': 'none'})
    """
    path, equals, written = text.partition("=")
    if not equals or not path.strip():
        raise ValueError(f"a setting is written name=value, and this is {text!r}")
    try:
        table = tomllib.loads(f"value = {written}")
    except (tomllib.TOMLDecodeError, RecursionError):
        table = {}
    # What goes on in further lines is no value of TOML.
    value: Any = table["value"] if table.keys() == {"value"} else written.strip()
    for name in reversed(path.strip().split(".")):
        value = {name: as_value(value)}
    return value


def merged(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables of settings in one; the second wins."""
    result = dict(first)
    for name, value in then.items():
        now = result.get(name)
        result[name] = merged(now, value) if isinstance(now, Mapping) and isinstance(value, Mapping) else value
    return result


def as_value(value: Any) -> Any:
    """What a value of TOML is among settings: its lists are our tuples."""
    if isinstance(value, Mapping):
        return {name: as_value(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return tuple(map(as_value, value))
    return value


def _as_settings(value: Any) -> Any:
    if value is None:
        return NONE
    if isinstance(value, Method):
        return {"name": name_of(value)} | settings_of(value)
    if isinstance(value, SCHEDULED):
        return {"schedule": type(value).__name__.lower()} | asdict(value)
    return value


def _scheduled(name: str, settings: Mapping[str, Any]) -> Any:
    """A schedule of the number that a setting else is."""
    kind = str(settings["schedule"]).lower()
    if kind not in SCHEDULES:
        raise ValueError(
            f"{name}: unknown schedule {kind!r}{nearest(kind, SCHEDULES)}; known are {', '.join(SCHEDULES)}"
        )
    try:
        return SCHEDULES[kind](**{key: value for key, value in settings.items() if key != "schedule"})
    except TypeError as error:
        known = ", ".join(item.name for item in fields(SCHEDULES[kind]))
        raise ValueError(f"{name}: a {kind} schedule has the settings {known}, got {dict(settings)}") from error


def _built(name: str, value: Any, now: Any) -> Any:
    """What a text or a table stands for: a method, a schedule or None; else the value itself."""
    if isinstance(value, Mapping):
        inner = dict(value)
        if "schedule" in inner:
            return _scheduled(name, inner)
        if "name" in inner:
            return build(str(inner.pop("name")), inner)
        if not isinstance(now, Method):
            raise ValueError(f"{name} is {now!r}, which has no settings of its own; name a method: {name}.name=map")
        return with_settings(now, inner)
    if value == NONE and not isinstance(now, str):
        return None
    if isinstance(now, Method) and isinstance(value, str):
        return METHODS[method_name(value)]()
    if name.endswith(".start") and isinstance(value, str) and value in METHODS:
        return METHODS[value]()
    return value


def _checked(name: str, value: Any, now: Any, kind: Any) -> Any:
    """A value of a setting, which must be of a kind, as annotations write it."""
    value = _built(name, as_value(value), now)
    if not _fits(value, kind):
        raise ValueError(f"{name} is {now!r} by default, and cannot be {value!r}; pass a value of that type")
    return float(value) if type(now) is float and isinstance(value, int) else value


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, as annotations write it."""
    outer, parts = get_origin(kind) or kind, get_args(kind)
    if outer in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if outer is Literal:
        return isinstance(value, str)  # which ones there are the method says better
    if outer in (tuple, Sequence):
        return isinstance(value, tuple) and all(_fits(one, parts[0]) for one in value)
    if outer is float and isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, outer) and (outer is bool or not isinstance(value, bool))
