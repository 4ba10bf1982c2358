"""
What four methods do not know
=============================

The epistemic part of the uncertainty of a classifier, over the plane. Mind the scales: the members of this ensemble are
points that agree, and their map is nearly empty.
"""

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.moons(100, noise=0.15)
model = credo.models.classification(credo.networks.MLP([20], out=2, activation="tanh"))
methods = {
    "NUTS": credo.NUTS(num_samples=150, num_warmup=250, num_chains=2),
    "Bayes by backprop": credo.BayesByBackprop(num_steps=4000),
    "Laplace": credo.Laplace(),
    "deep ensemble": credo.DeepEnsemble(credo.MAP(num_steps=1500), members=5),
}
grid = np.meshgrid(np.linspace(-3, 4, 70), np.linspace(-3, 3.5, 70))
points = np.column_stack([one.ravel() for one in grid])
_, axes = pyplot.subplots(2, 2, figsize=(10, 8), layout="constrained")
for ax, (name, method) in zip(axes.flat, methods.items(), strict=True):
    credo.plot.class_map(credo.fit(model, data, method, seed=0).predict(points), grid, data=data, ax=ax)
    ax.set_title(name)
pyplot.show()
