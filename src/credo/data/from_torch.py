"""Arrays from sets of other libraries: PyTorch's datasets and loaders, and those of Hugging Face.

They are told by what they offer, so neither library has to be there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

# What columns are called that hold the inputs, and the labels, in sets of named columns.
INPUTS = ("x", "image", "img", "pixel_values", "input_ids", "features")
TARGETS = ("y", "label", "labels", "target", "fine_label")


def arrays_of(dataset: Any, columns: tuple[str, str] | None) -> tuple[np.ndarray, np.ndarray, Sequence[str] | None]:
    """x, y and the names of the classes, if the set knows them."""
    if isinstance(dataset, Mapping):
        raise ValueError(f"dataset holds several sets, {', '.join(map(repr, dataset))}; pass one of them")
    names = getattr(dataset, "column_names", None)
    if names is None:
        if columns is not None:
            raise ValueError(f"columns is {columns!r}, and the dataset has pairs (x, y) without names; leave it out")
        x, y = _of_pairs(dataset)
        return x, y, getattr(dataset, "classes", None)
    inputs, target = columns or _guessed(names)
    for name in (inputs, target):
        if name not in names:
            raise ValueError(f"columns: the dataset has no {name!r}, but {', '.join(names)}")
    label = (getattr(dataset, "features", None) or {}).get(target)
    return _stacked(inputs, dataset[inputs]), _stacked(target, dataset[target]), getattr(label, "names", None)


def _of_pairs(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    tensors = getattr(dataset, "tensors", None)
    if tensors is not None and len(tensors) == 2:  # a TensorDataset: all rows at once
        return _array(tensors[0]), _array(tensors[1])
    is_loader = hasattr(dataset, "batch_sampler") and dataset.batch_size is not None
    rows = list(_rows(dataset))
    if not rows or not all(isinstance(row, tuple | list) and len(row) == 2 for row in rows):
        got = f"rows of type {type(rows[0]).__name__}" if rows else "no rows"
        raise ValueError(f"dataset gives {got}, and should give pairs (x, y)")
    join = np.concatenate if is_loader else np.stack
    xs, ys = ([_array(row[side]) for row in rows] for side in (0, 1))
    return _joined("x", xs, join), _joined("y", ys, join)


def _rows(dataset: Any) -> Iterable[Any]:
    if hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__"):
        return (dataset[row] for row in range(len(dataset)))
    if hasattr(dataset, "__iter__"):
        return dataset
    raise ValueError(f"dataset is of type {type(dataset).__name__}; pass a torch Dataset, a DataLoader, or the like")


def _guessed(names: Sequence[str]) -> tuple[str, str]:
    target = next((name for name in TARGETS if name in names), None)
    inputs = next((name for name in INPUTS if name in names), None)
    if len(names) == 2 and target is not None:
        inputs = next(name for name in names if name != target)
    if inputs is None or target is None:
        raise ValueError(f"dataset has the columns {', '.join(names)}; say which to use, columns=(inputs, target)")
    return inputs, target


def _stacked(name: str, column: Iterable[Any]) -> np.ndarray:
    return _joined(name, [_array(value) for value in column], np.stack)


def _joined(name: str, arrays: Sequence[np.ndarray], join: Any) -> np.ndarray:
    shapes = sorted({array.shape[1:] if join is np.concatenate else array.shape for array in arrays})
    if len(shapes) > 1:
        raise ValueError(
            f"dataset: {name} has rows of different shapes, such as {shapes[0]} and {shapes[-1]}; bring them to one, "
            "by padding or by a transform"
        )
    return join(arrays)


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
