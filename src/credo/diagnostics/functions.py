"""How much functions vary, beside how much y does."""

import numpy as np

from credo.predictive import ClassPredictive, Predictive


def total_variance(prediction: Predictive, mean: np.ndarray, epistemic: np.ndarray) -> np.ndarray:
    """The variance of y where the functions have that mean and variance; for classes, of each label's indicator."""
    if isinstance(prediction, ClassPredictive):
        return mean * (1 - mean)
    # A noise of infinite variance hides nothing.
    return epistemic + np.nan_to_num(prediction.aleatoric, posinf=0.0).reshape(epistemic.shape)


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part/whole, and nothing where there is no whole."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
