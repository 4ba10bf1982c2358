"""
Targets that are missing
========================

Two curves that were measured together, until one instrument failed. What is known of both is kept.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-2, 2, 80))
y = np.column_stack([np.sin(2 * x), np.cos(2 * x)]) + 0.1 * rng.normal(size=(80, 2))
y[x > 0.3, 1] = np.nan  # the second instrument fails
data = credo.Data(x, y)

net = credo.networks.MLP([30], out=2, activation="tanh")
method = credo.NUTS(num_samples=150, num_warmup=250, num_chains=2)
posterior = credo.fit(credo.models.regression(net, noise=0.1), data, method, seed=0)

points = np.linspace(-2, 2, 121)[:, None]
low, high = posterior.predict(points).interval(0.95)
_, ax = pyplot.subplots(layout="constrained")
for output, colour in enumerate(("tab:blue", "tab:orange")):
    ax.fill_between(points[:, 0], low[:, output], high[:, output], color=colour, alpha=0.3)
    ax.plot(x, y[:, output], ".", color=colour, label=f"instrument {output + 1}")
ax.legend()
pyplot.show()
