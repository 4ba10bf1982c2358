"""Class probabilities over a set of inputs: their mean, and their spread within and across inputs."""

from typing import NamedTuple

import numpy as np

from credo.evaluation.checks import finite, required
from credo.predictive import ClassPredictive, Predictive


class ClassSummary(NamedTuple):
    """Three numbers for each class over a set of inputs, each (classes,).

    >>> import credo
    >>> summary = credo.evaluation.class_summary(credo.from_probs([[0.75, 0.25], [0.25, 0.75]]))
    >>> print(summary.mean, summary.across)
    [0.5 0.5] [0.25 0.25]
    """

    mean: np.ndarray
    within: np.ndarray
    across: np.ndarray


def class_summary(predictive: Predictive) -> ClassSummary:
    """Mean probability of each class, its spread over the draws of one input, and its spread over the inputs.

    For P[draw, input, class] (paper, example "Bayesian MNIST"):

        mean   = mean over inputs and draws of P
        within = √(mean over inputs of the variance over draws)       the draws disagree: epistemic
        across = sd over inputs of the mean over draws                the inputs differ

    The inputs are the whole set, not a sample of it: `across` divides by their number, and is 0 for one input.

    >>> from credo import from_probs
    >>> print(class_summary(from_probs([[0.75, 0.25], [0.25, 0.75]])).across)
    [0.25 0.25]
    """
    required(predictive, ClassPredictive)
    if len(predictive) == 0:
        raise ValueError("the set of inputs is empty; pass at least one row")
    finite(predictive)
    variance = predictive.probs_std**2
    return ClassSummary(predictive.probs.mean(0), np.sqrt(variance.mean(0)), predictive.probs.std(0))
