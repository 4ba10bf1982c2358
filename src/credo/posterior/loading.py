"""Loading posteriors: the inverse of `saving`, of whatever kind they are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from credo import models, networks
from credo._files import LoadError, group_of
from credo._folders import opened
from credo._version import __version__
from credo.data import Scaling
from credo.models.inputs import Inputs, in_model_units
from credo.models.program import Model
from credo.models.rows import RowShapes
from credo.posterior.base import Provenance
from credo.posterior.draws import Draws
from credo.posterior.dropout import Dropout
from credo.posterior.flow import Flow
from credo.posterior.gaussian import Gaussian
from credo.posterior.generator import Generator
from credo.posterior.mixture import Mixture, PointEnsemble
from credo.posterior.quantised import Quantised
from credo.posterior.saving import Stored
from credo.posterior.student import Student

_ALL = (Draws, PointEnsemble, Quantised, Gaussian, Flow, Dropout, Mixture, Generator, Student)
KINDS = {kind.stored_as: kind for kind in _ALL}


def load(
    folder: str | Path,
    *,
    network: Any = None,
    model: Model | Sequence[Model | None] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Any:
    """Read a posterior that `posterior.save(folder)` wrote.

    Arguments:
        network: the network it was fitted with, where that was not one of `credo.networks`.
        model: the model it was fitted with, where that was a program of the user's own.
        inputs: of the model's own, those that were saved by reference (the training inputs, and what is very large), in
            the user's units; predictions do without them, the prior's density does not.

    Where it was fitted with several models, both are lists, with None for those that need none.
    """
    source = Path(folder)
    whole = opened(source)
    if whole.posterior is None:
        raise LoadError(f"{source} holds a run that has not ended; fit it again with resume=True to continue")
    manifest = whole.posterior
    shapes: dict[str, Any] = manifest["rows"]
    shapes = {key: tuple(value) if isinstance(value, list) else value for key, value in shapes.items()}
    rows = RowShapes(**shapes)
    arrays = whole.arrays(source, manifest["arrays"])
    scaling = Scaling.from_dict(group_of(arrays, "scaling"))
    models = _rebuild_all(source, manifest["model"], network, model)
    inputs_of = partial(_inputs, arrays=arrays, scaling=scaling, row=rows.x_shape[1:], given=inputs or {})
    configs = manifest.get("inputs", [{}] * len(models))
    bound = tuple(
        replace(one, rows=rows, constants=inputs_of(index, config, one))
        for index, (one, config) in enumerate(zip(models, configs, strict=True))
    )
    stored = Stored(source, manifest, arrays, bound)
    return _unpacked(stored, scaling=scaling, probes=stored.arrays.get("probes"))


def _unpacked(stored: Stored, *, scaling: Scaling, probes: np.ndarray | None) -> Any:
    """A posterior, or a member of one, of the kind that its part of the manifest names."""
    if stored.config["kind"] not in KINDS:
        raise ValueError(
            f"{stored.source} holds a posterior of the kind {stored.config['kind']!r}, which credo {__version__} does "
            "not know; install a newer credo"
        )
    xi, model = stored.group("xi"), stored.models[stored.config.get("architecture", 0)]
    common: dict[str, Any] = {
        "model": model.freeze(xi) if xi else model,
        "provenance": Provenance.from_dict(stored.config["provenance"]),
        "trace": stored.group("trace"),
        "scaling": scaling,
        "probes": probes,
    }
    if "members" in stored.config:
        parts = [
            stored._replace(config=config, arrays=stored.group(f"members/{index}"))
            for index, config in enumerate(stored.config["members"])
        ]
        common["members"] = [_unpacked(part, scaling=scaling, probes=probes) for part in parts]
    return KINDS[stored.config["kind"]].from_parts(stored, **common)


def _inputs(
    index: int,
    config: Mapping[str, Any],
    model: Model,
    *,
    arrays: Mapping[str, np.ndarray],
    scaling: Scaling,
    row: tuple[int, ...],
    given: Mapping[str, Any],
) -> Inputs:
    """The own inputs of model number `index`: those that were saved, given now, or that the model still has."""
    declared = getattr(model.inputs, "arrays", {})
    passed = {name: array for name, array in {**declared, **given}.items() if not isinstance(array, str)}
    known = {name: in_model_units(name, array, scaling, row) for name, array in passed.items() if name in config}
    Inputs.from_config(config, known)  # refuses others than those that the model was fitted with
    return Inputs.from_config(config, known | model.constants.known() | group_of(arrays, f"inputs/{index}"))


def _rebuild_all(source: Path, configs: Any, network: Any, model: Any) -> list[Model]:
    """The models of a posterior: one, or as many as there are configurations."""
    if not isinstance(configs, list):
        return [_rebuild(source, configs, network, model)]
    num = len(configs)
    given = {"network": [None] * num if network is None else network, "model": [None] * num if model is None else model}
    for name, values in given.items():
        if not isinstance(values, list | tuple) or len(values) != num:
            raise ValueError(
                f"{name}: {source} was fitted with {num} models; pass a list of {num}, None where not needed"
            )
    return [_rebuild(source, *one) for one in zip(configs, given["network"], given["model"], strict=True)]


def _rebuild(source: Path, config: dict[str, Any] | None, network: Any, model: Model | None) -> Model:
    if model is not None:
        return model
    if config is None:
        raise ValueError(f"{source} was fitted with a program of its own; pass it: credo.load(folder, model=model)")
    if network is None:
        if config["network"] is None:
            raise ValueError(
                f"{source} was fitted with a network from outside credo.networks; pass it: "
                "credo.load(folder, network=net)"
            )
        network = networks.from_config(config["network"])
    return models.from_config(config, network)
