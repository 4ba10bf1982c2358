"""Covariance roots as JSON and named arrays, for storage."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from credo.covariance.layers import Layer
from credo.covariance.layout import Layout
from credo.covariance.roots import Blocks, Diagonal, Joined, Kronecker, LowRank, Root, Shrunk
from credo.typing import Theta

ROOTS: dict[str, Any] = {kind.__name__: kind for kind in (Diagonal, LowRank, Blocks, Kronecker, Shrunk, Joined)}


def root_config(root: Root) -> dict[str, Any]:
    """What JSON must know of a root, beside its arrays."""
    config: dict[str, Any] = {"kind": type(root).__name__}
    if isinstance(root, Joined):
        config["parts"] = [root_config(part) for part in root.parts]
    if isinstance(root, Blocks):
        config["layout"] = root.layout.groups
    if isinstance(root, Kronecker):
        config["layers"] = [asdict(layer) for layer in root.layers]
    return config


def root_arrays(root: Root) -> dict[str, np.ndarray]:
    """The arrays of a root, by field and name."""
    if isinstance(root, Joined):
        parts = [root_arrays(part) for part in root.parts]
        return {f"{index}/{path}": leaf for index, part in enumerate(parts) for path, leaf in part.items()}
    trees = {field.name: getattr(root, field.name) for field in fields(root)}  # type: ignore[arg-type]
    return {
        f"{part}/{name}": np.asarray(leaf)
        for part, tree in trees.items()
        if isinstance(tree, dict)
        for name, leaf in tree.items()
    }


def root_from_arrays(config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Root:
    """The inverse of `root_config` and `root_arrays`."""
    kind = ROOTS[config["kind"]]
    if kind is Joined:
        return Joined(
            tuple(root_from_arrays(part, _under(str(index), arrays)) for index, part in enumerate(config["parts"]))
        )
    # A model without theta, all of whose weights are parameters, has empty trees.
    trees: dict[str, Theta] = {
        field.name: _under(field.name, arrays) for field in fields(kind) if field.name not in ("layout", "layers")
    }
    if kind is Blocks:
        return Blocks(**trees, layout=Layout(_tuples(config["layout"])))
    if kind is Kronecker:
        layers = tuple(Layer(**{name: _tuples(value) for name, value in layer.items()}) for layer in config["layers"])
        return Kronecker(**trees, layers=layers)
    return kind(**trees)


def _under(part: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    start = f"{part}/"
    return {path.removeprefix(start): leaf for path, leaf in arrays.items() if path.startswith(start)}


def _tuples(value: Any) -> Any:
    """JSON knows lists only."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
