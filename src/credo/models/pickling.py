"""Models in other processes: what credo made is made again there, a program of the user's own is carried as it is."""

import copyreg
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from credo import networks
from credo._pickling import carried
from credo.models.program import Model
from credo.models.registry import from_config

# What a model has become since it was made.
SINCE = ("rows", "xi", "constants", "local", "predicts")


def _reduced(model: Model) -> tuple[Any, ...]:
    """A model for `pickle`: a function, and what it is to be called with."""
    own = {item.name: getattr(model, item.name) for item in fields(model)}
    if model.config is None or not _is_configured(model):
        return _of_fields, (carried("the model's program", own),)
    is_outside = model.config["network"] is None
    net = carried("the network", model.recipe.net) if is_outside and model.recipe is not None else None
    since = {name: own[name] for name in SINCE}
    # Once there are data, its own inputs are constants.
    declared = {} if model.rows is not None else {"inputs": model.inputs}
    return remade, (dict(model.config), net, since | declared)


def _is_configured(model: Model) -> bool:
    """Whether the configuration, with the network, is all that there is to a model that credo made."""
    if model.trained is not None or (model.config["network"] is None and model.recipe is None):  # type: ignore[index]
        return False
    try:
        _made(model.config, None if model.recipe is None else model.recipe.net)  # type: ignore[arg-type]
    except ValueError:  # a prior, a condition or a second network of the user's own
        return False
    return True


def remade(config: Mapping[str, Any], net: Any, since: Mapping[str, Any]) -> Model:
    """The model of a configuration, as it was when it was pickled."""
    return replace(_made(config, net), **since)


def _made(config: Mapping[str, Any], net: Any) -> Model:
    return _shared(json.dumps(config)) if config["network"] is not None else from_config(config, net)


@lru_cache(maxsize=32)  # the same model is the same program, which is compiled once however often it arrives
def _shared(config: str) -> Model:
    found = json.loads(config)
    return from_config(found, networks.from_config(found["network"]))


def _of_fields(own: dict[str, Any]) -> Model:
    return Model(**own)


copyreg.pickle(Model, _reduced)
