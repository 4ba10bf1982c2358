"""
Too sure of itself
==================

A model that believes in far too little noise: its intervals are too narrow. Rows that were held back mend them.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, 900)
data = credo.Data(x, np.sin(2 * x) + 0.3 * rng.normal(size=900))
train, rest = data.split(0.3, seed=0)
held_out, test = rest.split(0.5, seed=0)

net = credo.networks.MLP([30], out=1, activation="tanh")
posterior = credo.fit(credo.models.regression(net, noise=0.15), train, credo.MAP(num_steps=1500), seed=0)
calibrated = credo.recalibrate(posterior, held_out)

scores = {name: credo.evaluate(one, test) for name, one in {"as it is": posterior, "mended": calibrated}.items()}
credo.plot.calibration({name: one.calibration for name, one in scores.items()})
for name, one in scores.items():
    print(f"{name}: log score {one['lpd'].value:.2f}")
pyplot.show()
