"""
Wrong labels
============

Four in ten labels are wrong. A model that says so learns anyway, and points at the rows to look at again.
"""

import numpy as np
from matplotlib import pyplot

import credo

digits = credo.datasets.load("digits", standardise=True)
wrong = np.random.default_rng(1).uniform(size=digits.size) < 0.4
given = credo.Data(digits.x, np.where(wrong, (digits.y + 1) % 10, digits.y)).with_scaling(digits.scaling)

model = credo.models.noisy_labels(credo.networks.MLP([50], out=10), "nar")
posterior = credo.fit(model, given, credo.BayesByBackprop(num_steps=3000, batch_size=256), seed=0)
credo.plot.label_errors(posterior.label_errors(given), given, posterior.predict(given.x))
pyplot.show()
