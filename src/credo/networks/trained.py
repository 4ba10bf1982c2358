"""Parameters of a network that was trained elsewhere, matched by name with those of a network here."""

import warnings
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from flax import linen, nnx
from safetensors import SafetensorError
from safetensors.numpy import load_file

from credo.networks.functional import by_path, functional, is_inexact
from credo.typing import Theta

# PyTorch's names for flax's arrays; its kernels also have another order of axes.
_IN_PYTORCH = {"kernel": "weight", "scale": "weight", "embedding": "weight"}
# A report names this many of each kind of mismatch.
_NUM_NAMED = 6


def load_params(net: Any, source: Any, x: Any = None) -> Theta:
    """Parameters for a network from a trained one, matched by name; a ValueError lists whatever does not fit.

    Names are dotted paths as in `functional(net).params`. "/" may stand for ".", and a prefix that all names share
    ("params.", "module.") is dropped. A "weight" where the network has a "kernel" is taken to be PyTorch's or
    equinox's, (out, in, …), and its axes are reordered.

    Arguments:
        net: anything that `functional` takes.
        source: a flax.nnx module or state, linen variables or parameters, an equinox module, a dict of arrays, flat or
            nested, or the path of a safetensors file. Arrays that are not of a floating type are ignored.
        x: an example batch, for a network that does not know its input shape yet.

    Returns:
        Arrays by path, ready for `params=` of the methods that take a trained network.

    >>> from credo.networks import MLP, load_params
    >>> net, trained = MLP([4], 1, inputs=2), MLP([4], 1, inputs=2, seed=7)
    >>> params = load_params(net, nnx.state(trained))
    >>> bool(np.all(params["head.kernel"] == trained.head.kernel[...]))
    True
    """
    return matched(functional(net, x).params, source)


def matched(expected: Mapping[str, Any], source: Any, *, optional: Collection[str] = ()) -> Theta:
    """The arrays of a source with the names, shapes and dtypes of `expected`; else a ValueError.

    Arguments:
        optional: names that may be missing, or of another shape; then they are left out.

    >>> matched({"w": np.zeros(3)}, {"net/w": [1.0, 2.0, 3.0]})
    {'w': array([1., 2., 3.])}
    """
    found = _without_prefix(arrays_by_name(source), expected)
    renamed = _renamed(found, expected)
    missing = [name for name in expected if name not in renamed and name not in optional]
    left_over = [name for name in found if name not in {other for other, _ in renamed.values()}]
    shapes = {name: renamed[name][1].shape for name in expected if name in renamed}
    wrong = [name for name, shape in shapes.items() if shape != expected[name].shape and name not in optional]
    if missing or left_over or wrong:
        problems = [
            _listed("missing", missing),
            _listed("left over", left_over),
            _listed("of the wrong shape", [f"{name}: {shapes[name]} for {expected[name].shape}" for name in wrong]),
        ]
        raise ValueError(
            f"params do not fit the network. {' '.join(filter(None, problems))} The network has "
            f"{_shortened(list(expected))}."
        )
    _warn_of_flattening(renamed)
    fitting = [name for name, shape in shapes.items() if shape == expected[name].shape]
    return {name: np.asarray(renamed[name][1], expected[name].dtype) for name in fitting}


def arrays_by_name(source: Any) -> dict[str, np.ndarray]:
    """All floating-point arrays of a source, by dotted path."""
    if isinstance(source, str | PathLike):
        source = _from_file(Path(source))
    if isinstance(source, nnx.Module):
        source = nnx.state(source)
    if isinstance(source, nnx.State):
        source = nnx.to_pure_dict(nnx.filter_state(source, nnx.Param))
    if isinstance(source, Mapping):
        source = linen.unbox(dict(source))
        # Linen's other collections, such as batch statistics, are not parameters.
        if isinstance(source.get("params"), Mapping):
            source = source["params"]
        source = {name: _as_array(value) for name, value in source.items()}
    named, _ = by_path(source)
    arrays = {name.replace("/", "."): np.asarray(leaf) for name, leaf in named if is_inexact(leaf)}
    if not arrays:
        raise ValueError(
            f"params: found no arrays of a floating type in {type(source).__name__}; pass an nnx state, linen "
            "variables, an equinox module, a dict of arrays, or the path of a safetensors file"
        )
    return arrays


def _as_array(value: Any) -> Any:
    """Numbers and lists of numbers as arrays; anything else as it is."""
    return np.asarray(value) if isinstance(value, list | float) and np.asarray(value).dtype.kind == "f" else value


def _from_file(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise FileNotFoundError(f"params: there is no file {path}")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"params: {path} is not a safetensors file, or is damaged: {error}") from error


def _without_prefix(arrays: dict[str, np.ndarray], expected: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Without that part of the prefix all names share whose loss makes most of them fit."""
    paths = [name.split(".") for name in arrays]
    first, last = min(paths), max(paths)
    num_shared = next(
        (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first)
    )
    candidates = [
        dict(zip((".".join(path[cut:]) for path in paths), arrays.values(), strict=True))
        for cut in range(min(num_shared, min(map(len, paths)) - 1) + 1)
    ]
    return max(candidates, key=lambda candidate: len(_renamed(candidate, expected)))


def _renamed(arrays: dict[str, np.ndarray], expected: Mapping[str, Any]) -> dict[str, tuple[str, np.ndarray]]:
    """For each expected name that is found: its name in the source, and its array in our order of axes."""
    result = {}
    for name, array in expected.items():
        layer, dot, kind = name.rpartition(".")
        foreign = f"{layer}{dot}{_IN_PYTORCH.get(kind, kind)}"
        if name in arrays:
            result[name] = (name, arrays[name])
        elif foreign in arrays:
            own = arrays[foreign]
            # (out, in, window…) becomes (window…, in, out).
            is_kernel = kind == "kernel" and own.ndim == array.ndim > 1
            result[name] = (foreign, np.transpose(own, (*range(2, own.ndim), 1, 0)) if is_kernel else own)
    return result


def _warn_of_flattening(renamed: dict[str, tuple[str, np.ndarray]]) -> None:
    moved = {array.ndim for name, (other, array) in renamed.items() if name != other}
    if max(moved, default=0) > 2 and 2 in moved:
        warnings.warn(
            "params: kernels of convolutions and dense layers have their outputs first, as in PyTorch. Where a "
            "convolution is flattened into a dense layer, PyTorch counts channels first and flax last: reorder the "
            "inputs of that layer by hand",
            stacklevel=4,
        )


def _listed(what: str, items: list[str]) -> str:
    return f"{len(items)} {what}: {_shortened(items)}." if items else ""


def _shortened(items: list[str]) -> str:
    more = f" and {len(items) - _NUM_NAMED} more" if len(items) > _NUM_NAMED else ""
    return ", ".join(items[:_NUM_NAMED]) + more
