"""
Two ways to explain the data
============================

Eight points that a folded sheet of paper meets in exactly two ways. Parallel tempering visits both, and weighs them.
"""

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.paperfold()
model = credo.models.paperfold()
methods = {
    "NUTS, one chain": credo.NUTS(num_samples=300, num_warmup=500, num_chains=1),
    "parallel tempering": credo.ParallelTempering(num_samples=500, num_warmup=1500, num_chains=1),
}
line = np.column_stack([np.linspace(-1.4, 1.4, 61), np.zeros(61)])
_, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, method) in zip(axes, methods.items(), strict=True):
    draws = credo.fit(model, data, method, seed=0).predict(line).functions
    ax.plot(line[:, 0], draws[:: max(1, len(draws) // 100)].T, lw=0.6, alpha=0.4, color="tab:blue")
    ax.set(title=name, xlabel="x, along y = 0", ylabel="z")
pyplot.show()
