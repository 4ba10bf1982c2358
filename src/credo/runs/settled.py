"""What a config leaves open, settled by the table: its columns, the network, the model, the method."""

from functools import partial
from typing import Any

from credo import models, networks
from credo.data import Data, FileData
from credo.inference.auto import Choice, choose
from credo.inference.method import Method
from credo.inference.registry import name_of
from credo.inference.settings import build, settings_of
from credo.models.program import Model
from credo.runs.config import Config
from credo.runs.likelihood import task_of
from credo.runs.prior import prior_of
from credo.tables.encoding import Encoding
from credo.tables.roles import ROLES

NETWORK_OF_TASKS = "mlp:50,50"
NETWORK_OF_IMAGES = "resnet20"
# Below so many seconds a second layer costs more than it gives: most of them go into compiling.
HASTE, NETWORK_IN_HASTE = 15.0, "table:20"


def encoding_of(config: Config, file: Any) -> Encoding:
    """What a run learns about the columns of its table."""
    roles = {role: name for role in ROLES if (name := getattr(config, role))}
    return Encoding.learn(
        file,
        config.target,
        task=task_of(config),
        drop=config.drop,
        task_column=config.task_column,
        censored=config.censored,
        roles=roles,
    )


def settled_network(config: Config, encoding: Encoding) -> str:
    """The network that is asked for; else one that a budget allows, and one with a head where heads are to vary."""
    if config.network != Config.network:
        return config.network
    if encoding.tasks is not None:
        return NETWORK_OF_TASKS
    if len(encoding.row) > 1:
        return NETWORK_OF_IMAGES
    return NETWORK_IN_HASTE if 0 < config.budget < HASTE else config.network


def model_of(config: Config, encoding: Encoding, data: Data) -> Model:
    """The network of a run, with its prior and its likelihood."""
    if networks.is_table(config.network) and encoding.tasks is None:
        own = partial(prior_of, config, encoding)
        return models.table(data, config.network, prior=own, likelihood=config.likelihood)
    network = networks.from_text(config.network, encoding.target.num_outputs)
    prior = prior_of(config, encoding)
    if encoding.tasks is not None:
        likelihood = "classification" if encoding.target.is_classes else "regression"
        return models.tasks(network, varying="head.*", prior=prior, likelihood=likelihood)
    return models.MODELS["classification" if encoding.target.is_classes else "regression"](network, prior=prior)


def chosen(config: Config, model: Model, data: Data | FileData) -> Choice:
    """The method of a run with its settings, and why it was chosen if the user left that open."""
    if config.method != "auto":
        return Choice(build(config.method, config.settings), config.why, config.validation or None)
    if config.settings:
        raise ValueError(f"settings ({', '.join(config.settings)}) belong to a method; name it with method=…")
    return choose(model, data, budget=config.budget or None)


def as_settings(method: Method) -> dict[str, Any]:
    """A method as name and settings; "auto" again if they cannot rebuild it."""
    name, settings = name_of(method), settings_of(method)
    complete = build(name, settings) == method
    return {"method": name, "settings": settings} if complete else {"method": "auto", "settings": {}}
