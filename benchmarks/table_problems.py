"""What is fitted and what is predicted: rows of real tables, by splits, by gaps, and of classes."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import peers
from credo import datasets

SETS = (
    "servo",
    "machine",
    "autompg",
    "concreteslump",
    "autos",
    "pendulum",
    "stock",
    "forest",
    "parkinsons",
    "elevators",
)
CLASS_SETS = (
    "iris",
    "wine",
    "penguins",
    "birth_weight",
    "glass",
    "pima",
    "breast_cancer",
    "orange_juice",
    "digits",
    "spam",
)
# Of the UCI benchmark, and a function of six of twelve inputs, with noise of its own size everywhere.
LARGE_SETS = ("kin8nm", "power", "naval", "protein", "waves")
WAVES_ROWS, WAVES_TEST_ROWS = 200_000, 20_000
NUM_SPLITS = 5
TEST_SHARE = 0.2
# A block of whole values that stands for the middle third of the rows, and what is left on each side of it, has at
# least this share of the rows; an input of which that is not true is skipped.
LEAST_SHARE = 1 / 6
CLASSES = Path(__file__).parent / "results" / "classes.npz"


class Parts(NamedTuple):
    """Rows to learn from, (rows, inputs) and (rows,), and rows to predict."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def splits(name: str, num: int) -> dict[int, Parts]:
    """The first `num` splits that come with a set of tables.npz."""
    x, y, test = _table(name)
    return {split: _parts(x, y, test[:, split]) for split in range(num)}


def large(name: str, num: int) -> dict[int, Parts]:
    """The first `num` standard splits of a UCI set; or as many drawings of `waves`."""
    if name == "waves":
        return {split: waves(split) for split in range(num)}
    data = datasets.uci(name)
    halves = {split: datasets.uci_split(data, split) for split in range(num)}
    return {split: Parts(train.x, train.y, test.x, test.y) for split, (train, test) in halves.items()}


def waves(seed: int) -> Parts:
    """y = sin 2x₀ + x₁x₂ + |x₃|/2 + 0.3 x₄ + s(x) t,  log s(x) = −1 + 0.6 x₅ + 0.3 sin x₀,  t ~ StudentT(5)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((WAVES_ROWS + WAVES_TEST_ROWS, 12))
    mean = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.abs(x[:, 3]) / 2 + 0.3 * x[:, 4]
    y = mean + np.exp(-1 + 0.6 * x[:, 5] + 0.3 * np.sin(x[:, 0])) * rng.standard_t(5, len(x))
    return _parts(x, y, np.arange(len(x)) >= WAVES_ROWS)


def gaps(name: str, num: int | None) -> dict[int, Parts]:
    """By the number of an input: rows from the middle third of its values are predicted from those to either side.

    Arguments:
        num: of inputs, the first in an order that is drawn once; all by default.
    """
    x, y, _ = _table(name)
    found = {}
    for column in np.random.default_rng(0).permutation(x.shape[1]).tolist():
        if (middle := middle_third(x[:, column])) is not None:
            found[column] = _parts(x, y, middle)
    return dict(list(found.items())[:num])


def middle_third(values: np.ndarray) -> np.ndarray | None:
    """Which rows hold the middle third of the values: equal ones stay together, so it is the block nearest to that.

    None where there is no such block: an input of two values has no middle.

    >>> middle_third(np.array([5, 1, 2, 3, 4, 6])).astype(int)
    array([0, 0, 0, 1, 1, 0])
    """
    distinct, counts = np.unique(values, return_counts=True)
    ends = np.cumsum(counts) / len(values)
    first, last = (int(np.argmin(np.abs(ends - third))) for third in (1 / 3, 2 / 3))
    if min(ends[first], ends[last] - ends[first], 1 - ends[last]) < LEAST_SHARE:
        return None
    return (values > distinct[first]) & (values <= distinct[last])


def classes(name: str, num: int) -> dict[int, Parts]:
    """The first `num` splits of a set of classes, each with the same share of every class."""
    from sklearn.model_selection import StratifiedShuffleSplit

    if not CLASSES.exists():
        if peers.interpreter() is None:
            raise FileNotFoundError("the sets of classes come inside packages of the peers' environment")
        CLASSES.parent.mkdir(parents=True, exist_ok=True)
        peers.measure("embedded_classes.py", str(CLASSES))
    archive = np.load(CLASSES)
    x, y = archive[f"{name}/x"], archive[f"{name}/y"]
    found = {}
    for split, (_, rows) in enumerate(StratifiedShuffleSplit(num, test_size=TEST_SHARE, random_state=0).split(x, y)):
        found[split] = _parts(x, y, np.isin(np.arange(len(y)), rows))
    return found


def _parts(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> Parts:
    return Parts(x[~test], y[~test], x[test], y[test])


def _table(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, target and the test rows of its splits, (rows, splits)."""
    folder = os.environ.get("CREDO_DATA")
    path = Path(folder or ".") / "tables.npz"
    if folder is None or not path.exists():
        raise FileNotFoundError(
            "no tables.npz; CREDO_DATA names the folder of an archive of arrays <name>/x, <name>/y and <name>/test "
            f"(rows × splits, true where a row is predicted) of {', '.join(SETS)}"
        )
    archive = np.load(path)
    x, y, test = (archive[f"{name}/{part}"] for part in ("x", "y", "test"))
    return x, y, test
