"""Synthetic predictions whose truth is known: calibrated ones, and ones made too sure or too unsure."""

import numpy as np

import credo
from credo.predictive import ClassPredictive, RegressionPredictive


def regression(num: int, *, claimed: float = 1.0, seed: int = 0) -> tuple[RegressionPredictive, np.ndarray]:
    """y ~ N(mean, sd²), predicted with sd × claimed."""
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=num), np.exp(rng.normal(scale=0.3, size=num))
    return credo.from_normal(mean, sd * claimed), mean + sd * rng.normal(size=num)


def classes(
    num: int, num_classes: int = 4, *, sharpened: float = 1.0, seed: int = 0
) -> tuple[ClassPredictive, np.ndarray]:
    """Labels drawn from softmax(logits), predicted as softmax(sharpened · logits)."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(num, num_classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return credo.from_probs(softmax(sharpened * logits)), labels


def softmax(logits: np.ndarray) -> np.ndarray:
    unnormalised = np.exp(logits - logits.max(-1, keepdims=True))
    return unnormalised / unnormalised.sum(-1, keepdims=True)
