"""Data sets: those of scikit-learn, toy problems, and readers for UCI, MNIST, CIFAR and folders of images."""

import gzip
import os
from pathlib import Path

import numpy as np

from credo._checks import require_at_least, require_one_of
from credo.data.data import Data
from credo.data.images import image_files, stacked, usual_shape
from credo.data.missing import MISSING_LABEL

_TARGETS = {
    "diabetes": "disease progression",
    "digits": "digit",
    "breast_cancer": "benign",
    "wine": "cultivar",
    "iris": "species",
}

_UCI_SOURCE = "an archive of arrays <name>_X and <name>_y, made with np.savez from the files of the UCI repository"
_MNIST_SOURCE = "the four gzipped IDX files of MNIST"
_CIFAR_SOURCE = "the binary version of CIFAR, as its archive unpacks"
_FASHION_SOURCE = "the four gzipped IDX files of Fashion-MNIST"


def load(name: str, *, standardise: bool = False) -> Data:
    """A small real data set that comes with scikit-learn, in natural units.

    Arguments:
        name: "diabetes" (442 × 10, regression), "digits" (1,797 images of 8 × 8 in [0, 1], 10 classes),
            "breast_cancer" (569 × 30, 2 classes), "wine" (178 × 13, 3 classes), "iris" (150 × 4, 3 classes).
        standardise: as for `Data`.

    >>> load("wine")
    Data(178 rows; x: shape (13,); y: cultivar labels 0 to 2)
    """
    require_one_of(_TARGETS, name=name)
    from sklearn import datasets

    if name == "digits":
        digits = datasets.load_digits()
        return Data(digits.images / 16, digits.target, target="digit", standardise=standardise)
    options = {"scaled": False} if name == "diabetes" else {}
    bunch = getattr(datasets, f"load_{name}")(**options)
    names, classes = list(bunch.feature_names), bunch.get("target_names")
    return Data(bunch.data, bunch.target, names=names, target=_TARGETS[name], classes=classes, standardise=standardise)


def gap(num: int = 100, *, seed: int = 0) -> Data:
    """Noisy values of a curve on two intervals: what does a model believe in the gap between them?

    y = cos(4x + 0.8) + 0.1 ε, half of the x uniform on [−1, −0.7] and half on [0.5, 1].

    >>> gap(num=40).x.shape
    (40, 1)

    Reference: Foong et al., "In-between" uncertainty in Bayesian neural networks, 2019.
    """
    require_at_least(1, num=num)
    rng = np.random.default_rng(seed)
    left = rng.uniform(-1.0, -0.7, num // 2)
    right = rng.uniform(0.5, 1.0, num - num // 2)
    x = np.concatenate([left, right])
    return Data(x, np.cos(4 * x + 0.8) + 0.1 * rng.standard_normal(num), names=["x"], target="y")


def moons(num: int = 200, *, noise: float = 0.1, seed: int = 0) -> Data:
    """Two classes in the plane: half circles, each reaching into the other.

    >>> moons(num=10).y
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    require_at_least(1, num=num)
    _require_scale(noise)
    rng = np.random.default_rng(seed)
    label = (np.arange(num) >= num // 2).astype(int)
    angle = rng.uniform(0, np.pi, num)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x = np.where(label[:, None] == 0, upper, [1.0, 0.5] - upper)
    return Data(x + noise * rng.standard_normal(x.shape), label)


def linear(num: int = 100, *, inputs: int = 3, noise: float = 0.1, seed: int = 0) -> Data:
    """A linear regression without intercept, whose posterior is known in closed form.

    y = x·w + noise · ε, with every entry of x, w and ε from N(0, 1).

    >>> linear(num=20, inputs=2).x.shape
    (20, 2)
    """
    require_at_least(1, num=num, inputs=inputs)
    _require_scale(noise)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num, inputs))
    return Data(x, x @ rng.standard_normal(inputs) + noise * rng.standard_normal(num))


def paperfold() -> Data:
    """Eight points that a sheet of paper, folded once, meets in exactly two ways (Practical Example III).

    Fold A is z = |x|/√2 and fold B is z = 1 − |y|/√2: two modes that differ most in the centre.

    >>> paperfold()
    Data(8 rows; x: x, y; y: z float)
    """
    far, near = np.sqrt(2), np.sqrt(0.5)
    points = [
        *[(far, 0, 1), (0, far, 0), (-far, 0, 1), (0, -far, 0)],
        *[(a, b, 0.5) for a in (near, -near) for b in (near, -near)],
    ]
    x, y, z = np.asarray(points).T
    return Data(np.stack([x, y], axis=1), z, names=["x", "y"], target="z")


def uci(name: str, folder: str | Path | None = None, *, standardise: bool = True) -> Data:
    """A set of the UCI regression benchmark, from `uci.npz`; `uci_split` gives its standard splits.

    Arguments:
        name: boston, concrete, energy, kin8nm, naval, power, protein, wine or yacht.
        folder: the folder that holds `uci.npz`; by default the environment variable CREDO_DATA.
        standardise: the benchmark's protocol asks for it, by the training part alone.

    >>> train, test = uci_split(uci("boston"), 0)  # doctest: +SKIP

    Reference: Hernández-Lobato and Adams, Probabilistic backpropagation, 2015.
    """
    with np.load(_require_file(folder, "uci.npz", _UCI_SOURCE)) as arrays:
        require_one_of([key.removesuffix("_X") for key in arrays.files if key.endswith("_X")], name=name)
        return Data(arrays[f"{name}_X"], arrays[f"{name}_y"], standardise=standardise)


def uci_split(data: Data, split: int) -> tuple[Data, Data]:
    """Standard split number `split` into (train, test), 9 to 1: each UCI set has 20 of them, protein 5.

    >>> train, test = uci_split(linear(num=50), 0)
    >>> train.size, test.size
    (45, 5)
    """
    if not 0 <= split < 20:
        raise ValueError(f"split is {split}; the standard splits are numbered 0 to 19")
    # The published splits are consecutive draws from one stream of this legacy generator, seeded with 1.
    rng = np.random.RandomState(1)
    for _ in range(split + 1):
        order = rng.permutation(data.size)
    num_train = round(0.9 * data.size)
    return data.partition(order[:num_train], order[num_train:])


def mnist(folder: str | Path | None = None, *, fashion: bool = False, standardise: bool = False) -> tuple[Data, Data]:
    """MNIST or Fashion-MNIST as (train, test): images (N, 28, 28) in [0, 1], labels 0 to 9.

    Arguments:
        folder: the folder that holds `mnist/` and `fashion_mnist/`; by default the environment variable CREDO_DATA.
        fashion: clothes instead of digits.
        standardise: both parts by the mean and standard deviation of all training pixels.

    >>> train, test = mnist()  # doctest: +SKIP

    Reference: LeCun et al., Gradient-based learning applied to document recognition, 1998; Xiao et al., 2017.
    """
    place, source = ("fashion_mnist", _FASHION_SOURCE) if fashion else ("mnist", _MNIST_SOURCE)
    target = "article" if fashion else "digit"

    def part(prefix: str, standardise: bool) -> Data:
        images, labels = (
            _read_idx(_require_file(folder, f"{place}/{prefix}-{kind}-ubyte.gz", source))
            for kind in ("images-idx3", "labels-idx1")
        )
        x, y = images / np.float32(255), labels.astype(np.int32)
        return Data(x, y, target=target, standardise=standardise)

    train = part("train", standardise)
    return train, part("t10k", False).with_scaling(train.scaling)


def cifar(folder: str | Path | None = None, *, classes: int = 10, standardise: bool = False) -> tuple[Data, Data]:
    """CIFAR-10 or CIFAR-100 as (train, test): images (N, 32, 32, 3) in [0, 1], and labels.

    Arguments:
        folder: the folder that holds `cifar-10-batches-bin/` or `cifar-100-binary/`, as their archives unpack; by
            default the environment variable CREDO_DATA.
        classes: 10, or 100.
        standardise: both parts by the mean and standard deviation of each channel in training.

    >>> train, test = cifar()  # doctest: +SKIP

    Reference: Krizhevsky, Learning multiple layers of features from tiny images, 2009.
    """
    if classes not in (10, 100):
        raise ValueError(f"classes must be 10 or 100, got {classes!r}")
    names = ["train"] if classes == 100 else [f"data_batch_{number}" for number in range(1, 6)]
    place, test = ("cifar-100-binary", "test") if classes == 100 else ("cifar-10-batches-bin", "test_batch")

    def part(names: list[str], standardise: bool) -> Data:
        parts = [_read_cifar(_require_file(folder, f"{place}/{name}.bin", _CIFAR_SOURCE), classes) for name in names]
        x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return Data(x, y, target="object", standardise=standardise)

    train = part(names, standardise)
    return train, part([test], False).with_scaling(train.scaling)


def images(
    folder: str | Path,
    *,
    size: tuple[int, int] | None = None,
    cache: str | Path | None = None,
    standardise: bool = False,
) -> Data:
    """Pictures in a folder for each class: images (N, height, width, channels) in [0, 1], and labels by folder.

    Arguments:
        folder: with one folder for each class. Pictures beside these are unlabelled.
        size: (height, width) of all; by default the most frequent one, to which the others are brought.
        cache: an .npy file to write the numbers to: then only those of the minibatches at hand are in memory.
        standardise: as for `Data`; needs all of them in memory.

    >>> train = images("cats_and_dogs", size=(32, 32))  # doctest: +SKIP
    """
    files = image_files(folder)
    classes = sorted({file.label for file in files if file.label is not None})
    if not classes:
        raise ValueError(f"{folder} holds images, and no folders of them: put those of each class into one of its own")
    height, width, channels = usual_shape(files)
    x = stacked(files, (*(size or (height, width)), channels), None if cache is None else Path(cache))
    y = [MISSING_LABEL if file.label is None else classes.index(file.label) for file in files]
    return Data(x, np.asarray(y, np.int32), target="class", classes=classes, standardise=standardise)


def _read_cifar(path: Path, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """A binary file of CIFAR: for each image its labels, the last of them the finest, then red, green and blue."""
    num_labels = 1 if classes == 10 else 2
    content = np.fromfile(path, np.uint8)
    if not content.size or content.size % (num_labels + 3072):
        raise ValueError(f"{path} is not a binary file of CIFAR-{classes}; download it again")
    rows = content.reshape(-1, num_labels + 3072)
    x = rows[:, num_labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) / np.float32(255)
    return x, rows[:, num_labels - 1].astype(np.int32)


def _read_idx(path: Path) -> np.ndarray:
    """An IDX file of bytes: 0, 0, 8 for the type, the number of axes, their sizes (big-endian), the data."""
    with gzip.open(path) as file:
        content = file.read()
    if content[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is not an IDX file of bytes; download it again")
    header = 4 + 4 * content[3]
    shape = tuple(int(size) for size in np.frombuffer(content[4:header], dtype=">u4"))
    if len(content) != header + int(np.prod(shape)):
        raise ValueError(f"{path} holds {len(content) - header} bytes and claims shape {shape}; download it again")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def _require_file(folder: str | Path | None, name: str, source: str) -> Path:
    place = folder if folder is not None else os.environ.get("CREDO_DATA")
    if not place:
        raise FileNotFoundError(
            f"{name} is looked for in the argument `folder`, or else in the environment variable CREDO_DATA, "
            f"and neither is set; name the folder that holds it ({source})"
        )
    path = Path(place) / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; put {name} there ({source}), or name another folder")
    return path


def _require_scale(noise: float) -> None:
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise is {noise}; it is a standard deviation, zero or positive")
