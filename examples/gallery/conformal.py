"""
Intervals with a guarantee
==========================

Held-out rows turn any model, however wrong, into intervals that hold the truth as often as promised.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, 600)
data = credo.Data(x, np.sin(2 * x) + 0.3 * rng.standard_t(3, size=600))
train, rest = data.split(0.4, seed=0)
held_out, test = rest.split(0.5, seed=0)

net = credo.networks.MLP([30], out=1, activation="tanh")
model = credo.models.regression(net, noise=0.1)  # the noise is far larger than that
posterior = credo.fit(model, train, credo.MAP(num_steps=1500), seed=0)
sets = credo.conformal(posterior, held_out, level=0.9)

points = np.linspace(-2, 2, 121)[:, None]
_, ax = pyplot.subplots(layout="constrained")
ax.plot(test.x, test.y, ".", ms=3, color="tab:red")
intervals = {"model": posterior.predict(points).interval(0.9), "conformal": sets.interval(points)}
holds = {"model": posterior.predict(test.x).interval(0.9), "conformal": sets.interval(test.x)}
for name, (low, high) in intervals.items():
    share = np.mean((holds[name][0] <= test.y) & (test.y <= holds[name][1]))
    ax.fill_between(points[:, 0], low, high, alpha=0.3, label=f"{name}: holds {share:.0%}, 90% are due")
ax.legend()
pyplot.show()
