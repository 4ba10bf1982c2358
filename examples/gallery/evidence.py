"""
How complex should the model be?
================================

The evidence weighs the fit against the room there was for it: models are compared without held-out data.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 30)
y = 1 - 2 * x + 3 * x**3 + 0.3 * rng.normal(size=30)

line = credo.networks.MLP([], out=1)
model = credo.models.regression(line, prior=credo.priors.normal(2.0), noise=0.3)
degrees = range(1, 9)
found = {}
for degree in degrees:
    powers = x[:, None] ** np.arange(1, degree + 1)
    found[degree] = credo.fit(model, (powers, y), credo.ClosedForm(), seed=0).diagnostics.log_evidence

_, ax = pyplot.subplots(layout="constrained")
ax.plot(list(found), list(found.values()), "o-")
ax.set(xlabel="degree of the polynomial (the truth has 3)", ylabel="log evidence, in nats")
pyplot.show()
