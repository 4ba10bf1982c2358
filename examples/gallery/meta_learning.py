"""
Learning to learn
=================

Thirty sine waves of other heights and phases teach what a sine wave is: a new one needs three points.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)


def task(num):
    """One wave: (x, y)."""
    x, height, phase = rng.uniform(-3, 3, num), rng.uniform(0.5, 2), rng.uniform(0, np.pi)
    return x, height * np.sin(x + phase) + 0.05 * rng.normal(size=num)


data = credo.tasks_data([task(20) for _ in range(30)])
model = credo.models.tasks(credo.networks.MLP([40], out=1, activation="tanh"), varying="head.*")
population = credo.fit(model, data, credo.MAP(num_steps=4000), seed=0)

points = np.linspace(-3, 3, 121)[:, None]
x, y = task(8)
_, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
for ax, num in zip(axes, (1, 3, 8), strict=True):
    shown = credo.Data(x[:num], y[:num])
    credo.plot.bands(credo.adapt(population, shown).predict(points), points, data=shown, ax=ax)
    ax.set_title(f"a new task after {num} point{'s' if num > 1 else ''}")
pyplot.show()
