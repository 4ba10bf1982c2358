"""
Counts
======

Whole numbers that vary more than a Poisson law would have them: a negative binomial, whose rate the network gives.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
hour = rng.uniform(0, 24, 300)
rate = 2 + 10 * np.exp(-0.5 * ((hour - 8) / 1.5) ** 2) + 12 * np.exp(-0.5 * ((hour - 17.5) / 2) ** 2)
data = credo.Data((hour - 12) / 6, rng.negative_binomial(5, 5 / (5 + rate)), target="rides in an hour")

model = credo.models.counts(credo.networks.MLP([30], out=1, activation="tanh"), base=float(data.y.mean()))
posterior = credo.fit(model, data, credo.NUTS(num_samples=200, num_warmup=300, num_chains=2), seed=0)

points = np.linspace(-2, 2, 121)[:, None]
prediction = posterior.predict(points)
_, ax = pyplot.subplots(layout="constrained")
ax.fill_between(12 + 6 * points[:, 0], *prediction.interval(0.9), alpha=0.3, label="90% of the hours", step="mid")
ax.plot(12 + 6 * points[:, 0], prediction.mean, label="mean")
ax.plot(hour, data.y, ".", ms=4, color="tab:red", label="counted")
ax.set(xlabel="hour of the day", ylabel=data.target)
ax.legend()
pyplot.show()
