"""
A function that rises
=====================

What is known beforehand is worth data: nine points, and the knowledge that the curve goes up.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(-2, 2, 9))
data = credo.Data(x, np.tanh(2 * x) + 0.3 * rng.normal(size=9))
points = np.linspace(-3, 3, 121)[:, None]

net = credo.networks.MLP([30], out=1, activation="tanh")
normal = credo.priors.normal(1.0)
rising = credo.priors.consistent(normal, credo.conditions.monotone({0: "+"}), inputs=points[::5], strength=100.0)
method = credo.NUTS(num_samples=150, num_warmup=250, num_chains=2)

_, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, prior) in zip(axes, {"any function": normal, "one that rises": rising}.items(), strict=True):
    posterior = credo.fit(credo.models.regression(net, prior=prior, noise=0.3), data, method, seed=0)
    credo.plot.bands(posterior.predict(points), points, data=data, ax=ax)
    ax.set_title(name)
pyplot.show()
