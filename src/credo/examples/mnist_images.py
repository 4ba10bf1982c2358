"""The images of the example "Bayesian MNIST": MNIST if it is available, else small embedded digits."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import credo
from credo.networks.cnn import CNN

SEEN, UNSEEN = 4, 5
NUM_CLASSES, NUM_NOISE = 10, 1000


@dataclass(frozen=True)
class Images:
    """Images for training and testing, and a network for images of their size.

    Arguments:
        source: what they are, in words.
        epochs: enough passes over them for the message of the figures.
        from_paper: whether the images and the network are those of the paper.
    """

    source: str
    train: credo.Data
    test: credo.Data
    network: CNN
    epochs: int
    from_paper: bool


def load(folder: Path | None) -> Images:
    """MNIST from the folder, or from that of the environment variable CREDO_DATA; without either, embedded digits."""
    if folder is None and not os.environ.get("CREDO_DATA"):
        return _digits()
    train, test = credo.datasets.mnist(folder, standardise=True)
    return Images("MNIST, 28 × 28", train, test, CNN(NUM_CLASSES), epochs=2, from_paper=True)


def _digits() -> Images:
    source = (
        "the 8 × 8 digits embedded in scikit-learn, since neither data nor CREDO_DATA names a folder with MNIST; "
        "too small for the paper's network, so a smaller one replaces it, with one convolution of 3 × 3"
    )
    train, test = credo.datasets.load("digits", standardise=True).split(0.25, stratify=True)
    network = CNN(NUM_CLASSES, channels=(16,), kernel_size=3, features=(32,))
    return Images(source, train, test, network, epochs=60, from_paper=False)


def questions(test: credo.Data, *, seed: int) -> dict[str, np.ndarray]:
    """Three sets of inputs by name: a class that was seen, one that was not, and white noise."""
    noise = np.random.default_rng(seed).uniform(size=(NUM_NOISE, *test.x.shape[1:]))
    return {
        f"seen class {SEEN}": test.x[test.y == SEEN],
        f"unseen class {UNSEEN}": test.x[test.y == UNSEEN],
        # A prediction standardises its inputs, but the network is to see the noise as it is.
        "white noise": noise * test.scaling.x_scale + test.scaling.x_mean,
    }
