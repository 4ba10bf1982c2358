"""A condition's penalties for a function that is known."""

from dataclasses import dataclass

import numpy as np

from credo.models.conditions import Plain


@dataclass
class Binary:
    """Two classes with one logit, as a model hands them in; it cannot be hashed, like a dict of weights."""

    logit: object

    def __call__(self, x):
        p = 1 / (1 + np.e ** -self.logit(x))
        return np.asarray([0, 1]) * p + np.asarray([1, 0]) * (1 - p)

    def raw(self, x):
        return self.logit(x)


def penalties(condition, function, x):
    function = Plain(function) if not hasattr(function, "raw") else function
    rows, constants = condition.prepare(np.asarray(x))
    return np.asarray(condition(function, rows, **constants))
