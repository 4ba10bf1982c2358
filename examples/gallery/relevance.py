"""
Which inputs matter?
====================

A scale for each input, learned with the weights: inputs that do not help are switched off.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = rng.normal(size=(200, 6))
data = credo.Data(x, np.sin(2 * x[:, 0]) + x[:, 3] ** 2 / 2 + 0.1 * rng.normal(size=200), standardise=True)

net = credo.networks.MLP([30], out=1, activation="tanh", inputs=6)
prior = {"hidden.0.kernel": credo.priors.relevance(), "*": credo.priors.fan_in(1.0)}
method = credo.NUTS(num_samples=150, num_warmup=300, num_chains=2)
posterior = credo.fit(credo.models.regression(net, prior=prior), data, method, seed=0)

effects = np.array(
    [np.std(posterior.predict(np.eye(6)[[one]] * np.linspace(-2, 2, 9)[:, None]).mean) for one in range(6)]
)
_, ax = pyplot.subplots(layout="constrained")
ax.bar(range(1, 7), effects)
ax.set(xlabel="input", ylabel="how far it moves the prediction (sd of y)")
pyplot.show()
