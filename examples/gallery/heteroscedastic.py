"""
Noise that changes
==================

The network has a second output: the size of the noise at each input.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, 300)
data = credo.Data(x, np.sin(2 * x) + (0.05 + 0.2 * (x + 2)) * rng.normal(size=300))

net = credo.networks.MLP([50], out=2, activation="tanh")
model = credo.models.regression(net, noise="heteroscedastic")
posterior = credo.fit(model, data, credo.DeepEnsemble(credo.MAP(num_steps=1500), members=5), seed=0)

points = np.linspace(-2, 2, 121)[:, None]
credo.plot.bands(posterior.predict(points), points, data=data)
pyplot.show()
