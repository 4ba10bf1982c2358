"""
The best of few experiments
===========================

Where to try next when every experiment is expensive: where the model leaves most room for something better.
"""

import numpy as np
from matplotlib import pyplot

import credo


def experiment(setting):
    """Stands for an hour in the laboratory."""
    x = setting["dose"]
    return np.sin(3 * x) + 0.3 * (x - 2) ** 2


found = credo.optimise(experiment, {"dose": (0.0, 4.0)}, num_evaluations=12, noise=0, seed=0)
print(found.x, found.value)
credo.plot.belief(found)
pyplot.show()
