"""
One network in place of hundreds
================================

A student learns what the posterior would answer, its error bars included, and answers in one pass.
"""

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.gap()
net = credo.networks.MLP([20], out=1, activation="tanh")
method = credo.NUTS(num_samples=150, num_warmup=250, num_chains=2)
teacher = credo.fit(credo.models.regression(net, noise=0.1), data, method, seed=0)

points = np.linspace(-1.2, 1.2, 121)[:, None]
student = credo.distill(teacher, "mlp:50", points)  # inputs need no labels, and may lie between the data

_, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, one) in zip(axes, {"teacher": teacher, "student": student}.items(), strict=True):
    credo.plot.bands(one.predict(points), points, data=data, ax=ax)
    ax.set_title(f"{name}, {one.num_bytes / 1000:.1f} kB")
pyplot.show()
