"""
Data that keep coming
=====================

Each batch is learned and forgotten; the posterior of one is the prior of the next.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
net = credo.networks.MLP([30], out=1, activation="tanh")
learner = credo.online(credo.models.regression(net, noise=0.1), credo.Laplace(structure="full"))

points = np.linspace(-2, 2, 121)[:, None]
_, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
for ax, start in zip(axes, (-1.5, -0.5, 0.5), strict=True):
    x = rng.uniform(start, start + 1, 30)
    batch = credo.Data(x, np.sin(2 * x) + 0.1 * rng.normal(size=30))
    posterior = learner.update(batch)
    credo.plot.bands(posterior.predict(points), points, data=batch, ax=ax)
    ax.set(title=f"after {posterior.provenance.num_data} rows", ylim=(-3, 3))
pyplot.show()
