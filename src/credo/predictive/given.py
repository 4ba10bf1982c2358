"""From draws of theta to the marginal that they give."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from credo._precision import working_precision
from credo.data import FileInputs, Scaling
from credo.predictive.classes import ClassPredictive
from credo.predictive.conditional import Conditional, is_classes, look, refuse_several_labels
from credo.predictive.marginal import Predictive, RegressionPredictive
from credo.typing import Array, Theta


class Predicts(Protocol):
    """What has a distribution of y for each theta: a model, or several of them as one."""

    def predictive(self, theta: Theta, x: Array) -> Conditional:
        """p(y | x, theta)."""


def predictive(
    model: Predicts,
    draws: Theta,
    x: np.ndarray | FileInputs,
    *,
    weights: np.ndarray | None = None,
    scaling: Scaling | None = None,
) -> Predictive:
    """The marginal that draws of theta give on inputs x (in the user's units).

    Arguments:
        draws: theta with a leading axis of draws.
        weights: of the draws, adding up to one; equal by default.
    """
    scaling = scaling or Scaling()
    # Where nothing is drawn, all is one function.
    num_draws = len(next(iter(draws.values()), [None]))
    weights = np.full(num_draws, 1 / num_draws) if weights is None else np.asarray(weights, np.float64)
    inputs: Any = (
        replace(x, scaling=scaling) if isinstance(x, FileInputs) else np.asarray(scaling.inputs(x), working_precision())
    )
    conditional_of = Given(model)
    look(conditional_of, draws, inputs, refuse_several_labels)
    kind = ClassPredictive if is_classes(conditional_of, draws, inputs) else RegressionPredictive
    return kind(conditional_of, draws, inputs, weights=weights, scaling=scaling)


@dataclass(frozen=True)
class Given:
    """p(y | x, theta) of a model; equal where the models are: all posteriors of one model share compiled code."""

    model: Predicts

    def __call__(self, theta: Theta, x: Array) -> Conditional:
        return self.model.predictive(theta, x)
