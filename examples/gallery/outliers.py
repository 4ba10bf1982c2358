"""
Outliers
========

One row in five is nonsense. A model that expects nonsense is not led astray by it, and says which rows it means.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 120)
nonsense = rng.uniform(size=120) < 0.2
y = np.where(nonsense, 3 * rng.normal(size=120), np.sin(3 * x) + 0.1 * rng.normal(size=120))
data = credo.Data(x, y, standardise=True)

model = credo.models.outliers(credo.networks.MLP([30], out=1, activation="tanh"), "ncar")
posterior = credo.fit(model, data, credo.BayesByBackprop(num_steps=4000), seed=0)
errors = posterior.label_errors(data)

points = np.linspace(-1, 1, 121)[:, None]
ax = credo.plot.bands(posterior.predict(points), points)
marks = ax.scatter(x, y, c=errors, s=14, cmap="coolwarm", vmin=0, vmax=1, zorder=3)
ax.figure.colorbar(marks, label="probability of being an outlier")
ax.set_ylim(-4, 4)
pyplot.show()
