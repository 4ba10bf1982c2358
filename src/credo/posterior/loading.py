"""Loading posteriors: the inverse of `saving`, of whatever kind they are."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from credo import models, networks
from credo._compilation_cache import keep_programs
from credo._concurrency import require_own_jax
from credo._files import LoadError, group_of
from credo._folders import read_whole
from credo._manifest import MANIFEST, Manifest
from credo._precision import working_precision
from credo._schema import Count, FileName, checked, reading
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
# Rows of more numbers, two of them, are no rows: they would be an image of 5,000 by 5,000 pixels.
MAX_ROW_NUMBERS = 2**26
DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")


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

    >>> import tempfile
    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     posterior.save(f"{folder}/run")
    ...     again = credo.load(f"{folder}/run")
    >>> bool((again.predict([[0.0]]).mean == posterior.predict([[0.0]]).mean).all())
    True
    """
    source = Path(folder)
    return read_whole(source, lambda whole: read_posterior(source, whole, network=network, model=model, inputs=inputs))


def read_posterior(
    source: Path, whole: Manifest, *, network: Any = None, model: Any = None, inputs: Mapping[str, Any] | None = None
) -> Any:
    """The posterior in a folder with that manifest; the others as in `load`."""
    require_own_jax()
    keep_programs()
    if whole.posterior is None:
        raise LoadError(f"{source} holds a run that has not ended; fit it again with resume=True to continue")
    arrays = whole.arrays(source, checked(source / MANIFEST, whole.posterior.get("arrays"), FileName))
    stored = Stored(source, whole.posterior, arrays, ())
    # The first version did not write the shapes down.
    if whole.covers_all and stored.field("shapes", dict[str, tuple[Count, ...]]) != _shapes(arrays):
        raise LoadError(f"{source} is damaged: it has other arrays than the {MANIFEST} says, or of other shapes")
    rows = _rows(stored)
    scaling = _scaling(stored, rows)
    models = _rebuild_all(stored, rows, network, model)
    configs = stored.field("inputs", list[dict[str, dict[str, Any]]], [{}] * len(models))
    if len(configs) != len(models):
        raise LoadError(f"{source} is damaged: it has inputs of {len(configs)} models, and {len(models)} models")
    inputs_of = partial(_inputs, arrays=arrays, scaling=scaling, row=rows.x_shape[1:], given=inputs or {})
    bound = tuple(
        replace(one, rows=rows, constants=inputs_of(index, config, one))
        for index, (one, config) in enumerate(zip(models, configs, strict=True))
    )
    posterior = _unpacked(stored._replace(models=bound), scaling=scaling, probes=arrays.get("probes"))
    _tell_precision(source, posterior.provenance)
    return posterior


def _tell_precision(source: Path, provenance: Provenance) -> None:
    """The other way round nothing is lost: double precision holds what a fit in single precision has found."""
    if provenance.precision == "float64" and working_precision() != np.float64:
        warnings.warn(
            f"{source} was fitted in double precision, and JAX is set to single: predictions are rounded to about "
            'seven digits; for all of them, call jax.config.update("jax_enable_x64", True) first, or set '
            "JAX_ENABLE_X64=1",
            stacklevel=5,
        )


def _shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}


def _scaling(stored: Stored, rows: RowShapes) -> Scaling:
    """Between the user's units and the model's, one number for all of a row or for each of its own."""
    found = Scaling.from_dict(stored.group("scaling"), stored.source)
    row_of_x = rows.x_shape[1:]
    # What a student says of a row of y is no such row.
    row_of_y = None if rows.y_shape is None or stored.config.get("kind") == Student.stored_as else rows.y_shape[1:]
    for row, name in ((row_of_x, "x_mean"), (row_of_x, "x_scale"), (row_of_y, "y_mean"), (row_of_y, "y_scale")):
        shape = stored.arrays[f"scaling/{name}"].shape
        if row is not None and not _fits(shape, row):
            raise LoadError(f"{stored.source} is damaged: {name} has the shape {shape}, and a row has {row}")
    if found.y_mean.shape != found.y_scale.shape or not found.y_scale.size:
        shapes = f"{found.y_mean.shape} and {found.y_scale.shape}"
        raise LoadError(f"{stored.source} is damaged: y_mean and y_scale have the shapes {shapes}")
    return found


def _fits(shape: tuple[int, ...], row: tuple[int, ...]) -> bool:
    """Whether an array of a shape can be spread over a row."""
    last = row[len(row) - len(shape) :]
    return len(shape) <= len(row) and all(own in (1, size) for own, size in zip(shape, last, strict=True))


def _rows(stored: Stored) -> RowShapes:
    """The shapes of the data, which the probes must have, and which nothing may be made of that is too large."""
    rows = stored.field("rows", RowShapes)
    probes = stored.arrays.get("probes")
    if not rows.x_shape or (probes is not None and (probes.dtype.kind not in "fiub" or not probes.size)):
        raise LoadError(f"{stored.source} is damaged: its rows or its probes are none")
    if probes is not None and probes.shape[1:] != rows.x_shape[1:]:
        raise LoadError(
            f"{stored.source} is damaged: rows have the shape {rows.x_shape[1:]}, its probes {probes.shape}"
        )
    if probes is not None and probes.dtype.kind == "f":
        stored.numbers("probes")
    for shape, dtype in ((rows.x_shape, rows.x_dtype), (rows.y_shape or (), rows.y_dtype)):
        if math.prod(shape) > MAX_ROW_NUMBERS or dtype not in DTYPES:
            raise LoadError(f"{stored.source} is damaged: there are no rows of shape {shape} of {dtype}")
    return rows


def _unpacked(stored: Stored, *, scaling: Scaling, probes: np.ndarray | None, is_member: bool = False) -> Any:
    """A posterior, or a member of one, of the kind that its part of the manifest names."""
    kind = stored.field("kind", str)
    if kind not in KINDS or (is_member and KINDS[kind] is Mixture):
        raise LoadError(
            f"{stored.source} holds a posterior of the kind {kind!r}, which credo {__version__} does not know there; "
            "install a newer credo"
        )
    number = stored.field("architecture", Count, 0)
    if number >= len(stored.models):
        raise LoadError(f"{stored.source} is damaged: it has no model number {number}")
    xi, model = stored.group("xi"), stored.models[number]
    with reading(stored.source, "model"):
        common: dict[str, Any] = {
            "model": model.freeze(xi) if xi else model,
            "provenance": stored.field("provenance", Provenance),
            "trace": stored.figures("trace"),
            "scaling": scaling,
            "probes": probes,
        }
        _ = common["model"].template
    if KINDS[kind] is Mixture:
        common["members"] = [
            _unpacked(
                stored._replace(config=config, arrays=stored.group(f"members/{index}")),
                scaling=scaling,
                probes=probes,
                is_member=True,
            )
            for index, config in enumerate(stored.field("members", list[dict[str, Any]]))
        ]
    with reading(stored.source, kind):
        return KINDS[kind].from_parts(stored, **common)


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
    known = {
        # In the precision of the fit: what is given must be what was fitted with, to the bit.
        name: in_model_units(name, array, scaling, row, config[name]["dtype"])
        for name, array in passed.items()
        if name in config
    }
    Inputs.from_config(config, known)  # refuses others than those that the model was fitted with
    return Inputs.from_config(config, known | model.constants.known() | group_of(arrays, f"inputs/{index}"))


def _rebuild_all(stored: Stored, rows: RowShapes, network: Any, model: Any) -> list[Model]:
    """The models of a posterior: one, or as many as there are configurations."""
    source, configs = stored.source, stored.field("model", list[dict[str, Any] | None] | dict[str, Any] | None)
    if not isinstance(configs, list):
        return [_rebuild(stored, rows, configs, network, model)]
    num = len(configs)
    given = {"network": [None] * num if network is None else network, "model": [None] * num if model is None else model}
    for name, values in given.items():
        if not isinstance(values, list | tuple) or len(values) != num:
            raise ValueError(
                f"{name}: {source} was fitted with {num} models; pass a list of {num}, None where not needed"
            )
    return [_rebuild(stored, rows, *one) for one in zip(configs, given["network"], given["model"], strict=True)]


def _rebuild(
    stored: Stored, rows: RowShapes, config: dict[str, Any] | None, network: Any, model: Model | None
) -> Model:
    if model is not None:
        return model
    if config is None:
        raise LoadError(
            f"{stored.source} was fitted with a program of its own; pass it: credo.load(folder, model=model)"
        )
    with reading(stored.source, "model"):
        if network is None:
            if config["network"] is None:
                raise LoadError(
                    f"{stored.source} was fitted with a network from outside credo.networks; pass it: "
                    "credo.load(folder, network=net)"
                )
            _require_small(stored, networks.num_numbers(config["network"], rows.x_shape))
            network = networks.from_config(config["network"])
        return models.from_config(config, network)


def _require_small(stored: Stored, num: int) -> None:
    """A network has no more numbers than were saved: before it is made, which takes memory."""
    num_saved = sum(array.size for array in stored.arrays.values())
    if num > num_saved:
        raise LoadError(
            f"{stored.source} does not fit the model: its network has {num:,} numbers, and {num_saved:,} were saved"
        )
