"""The models by name, and how to build them again from their configuration."""

from collections.abc import Callable, Mapping
from typing import Any

from credo._checks import require_one_of
from credo.models import augmentations, likelihoods, priors
from credo.models.activations import activations, activations_from_config
from credo.models.augmented import augmented
from credo.models.classification import classification
from credo.models.counts import counts
from credo.models.noisy_labels import noisy_labels, noisy_labels_from_config
from credo.models.ordinal import ordinal
from credo.models.positive import positive
from credo.models.program import Model
from credo.models.regression import regression
from credo.models.self_supervised import self_supervised, self_supervised_from_config
from credo.models.shares import shares
from credo.models.student import student, student_from_config
from credo.models.task_heads import task_heads, task_heads_from_config
from credo.models.tasks import tasks, tasks_from_config

MODELS: dict[str, Callable[..., Model]] = {
    "regression": regression,
    "classification": classification,
    "counts": counts,
    "positive": positive,
    "shares": shares,
    "ordinal": ordinal,
    "activations": activations,
    "augmented": augmented,
    "self_supervised": self_supervised,
    "tasks": tasks,
    "task_heads": task_heads,
    "noisy_labels": noisy_labels,
    "student": student,
}

# How to build those again that are not made of a network, a prior and a noise alone, from their configuration.
REBUILT: dict[str, Callable[[Mapping[str, Any], Any], Model]] = {
    "activations": lambda config, _: activations_from_config(config),
    "augmented": lambda config, net: augmented(
        from_config(config["inner"], net),
        augmentations.from_config(config["transform"]),
        num_draws=config["num_draws"],
        average=config["average"],
    ),
    "self_supervised": self_supervised_from_config,
    "tasks": tasks_from_config,
    "task_heads": task_heads_from_config,
    "noisy_labels": noisy_labels_from_config,
    "student": student_from_config,
}


def from_config(config: Mapping[str, Any], net: Any = None) -> Model:
    """The model that `config` describes, around the network `net`; stochastic activations are their own network.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([5], out=1, inputs=1), noise=0.3)
    >>> again = credo.models.from_config(model.config, credo.networks.MLP([5], out=1, inputs=1))
    >>> again.config == model.config
    True
    """
    name = config.get("model", "")
    require_one_of(MODELS, model=name)
    if name in REBUILT:
        return REBUILT[name](config, net)
    arguments = {key: value for key, value in config.items() if key not in ("model", "network")}
    arguments["prior"] = priors.from_config(config["prior"])
    if "noise" in config:
        arguments["noise"] = likelihoods.from_config(config["noise"])
    return MODELS[name](net, **arguments)
