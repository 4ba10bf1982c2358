"""
Few labels
==========

Four labels and 296 inputs without: the prior says that neighbours tend to have the same label.
"""

import numpy as np
from matplotlib import pyplot

import credo

moons = credo.datasets.moons(300, seed=0)
known = [3, 99, 170, 280]  # two of each class
data = credo.Data(moons.x[known], moons.y[known], unlabelled=np.delete(moons.x, known, axis=0))

model = credo.models.semi_supervised(credo.networks.MLP([50], out=2))
ensemble = credo.DeepEnsemble(credo.MAP(num_steps=1500), members=4)
posterior = credo.fit(model, data, ensemble, seed=0)

grid = np.meshgrid(np.linspace(-1.5, 2.5, 80), np.linspace(-1, 1.5, 80))
points = np.column_stack([one.ravel() for one in grid])
credo.plot.class_map(posterior.predict(points), grid, show="entropy", data=data)
pyplot.show()
