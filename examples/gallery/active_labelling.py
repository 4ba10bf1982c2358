"""
Which label next?
=================

Labels cost money. Inputs come as they come, most of them from the middle. Asking where the prediction is least certain
reaches the edges within eight labels; asking at random catches up later.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
pool = rng.normal(scale=0.6, size=300)
test = np.linspace(-1.5, 1.5, 200)


def measured(x):
    """What somebody would say if asked."""
    return np.sin(3 * x) + 0.05 * rng.normal(size=len(x))


values = measured(pool)
model = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"), noise=0.05)
method = credo.Laplace(structure="full", training=credo.MAP(num_steps=1000))


def rounds(acquisition, seed):
    """Rounds of two questions each."""
    judged = (test, np.sin(3 * test))
    return list(credo.active(model, pool, values, method, acquisition, batch=2, stop=16, test=judged, seed=seed))


runs = {name: [rounds(name, seed) for seed in range(3)] for name in ("variance", "random")}
credo.plot.learning_curve(runs, by="rmse")
pyplot.show()
