"""Datasets of PyTorch and of Hugging Face become data, told by what they offer."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from credo import Data

X, Y = torch.arange(12.0).reshape(6, 2), torch.tensor([0, 1, 2, 0, 1, 2])


class Pairs(Dataset):
    classes = ("a", "b", "c")

    def __len__(self):
        return len(X)

    def __getitem__(self, row):
        return X[row], int(Y[row])


class Stream(IterableDataset):
    def __iter__(self):
        return zip(X, Y, strict=True)


class Features(dict):
    pass


class Label:
    names = ("no", "yes", "maybe")


class Named:
    """What a Hugging Face dataset offers."""

    def __init__(self, **columns):
        self.columns, self.column_names = columns, list(columns)
        self.features = {"label": Label()}

    def __getitem__(self, name):
        return self.columns[name]


SETS = {
    "a TensorDataset": lambda: TensorDataset(X, Y),
    "pairs": Pairs,
    "a stream": Stream,
    "a loader": lambda: DataLoader(TensorDataset(X, Y), batch_size=4),
    "a loader of single rows": lambda: DataLoader(TensorDataset(X, Y), batch_size=None),
    "named columns": lambda: Named(idx=[0] * 6, image=X.tolist(), label=Y.tolist()),
    "two columns": lambda: Named(text_vector=X.tolist(), label=Y.tolist()),
}


@pytest.mark.parametrize("name", SETS)
def test_sets_become_data(name):
    data = Data.from_torch(SETS[name]())
    np.testing.assert_array_equal(data.x, X.numpy())
    np.testing.assert_array_equal(data.y, Y.numpy())


def test_classes_come_along():
    assert Data.from_torch(Pairs()).classes == ("a", "b", "c")
    assert Data.from_torch(Named(x=X.tolist(), label=Y.tolist())).classes == ("no", "yes", "maybe")
    assert Data.from_torch(Pairs(), classes=("d", "e", "f"), standardise=True).classes == ("d", "e", "f")


def test_tensors_that_require_gradients_are_taken():
    assert Data.from_torch(TensorDataset(X.clone().requires_grad_(), Y)).size == 6


REFUSED = {
    "several sets": (lambda: {"train": 1, "test": 2}, {}, "several sets, 'train', 'test'"),
    "columns of nobody's name": (lambda: Named(one=[1], two=[2], three=[3]), {}, r"columns=\(inputs, target\)"),
    "an unknown column": (lambda: Named(x=[1], y=[2]), {"columns": ("x", "z")}, "no 'z', but x, y"),
    "columns of pairs": (Pairs, {"columns": ("x", "y")}, "without names"),
    "rows of different shapes": (lambda: Named(x=[[1], [1, 2]], y=[0, 1]), {}, "rows of different shapes"),
    "triples": (lambda: [(1, 2, 3)], {}, r"pairs \(x, y\)"),
    "nothing": (list, {}, "no rows"),
    "no set at all": (lambda: 3, {}, "of type int"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused(name):
    make, options, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        Data.from_torch(make(), **options)
