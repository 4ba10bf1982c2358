"""
Embeddings
==========

Features of a large network, computed once, and a Bayesian layer on top of them.
"""

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
digits = credo.datasets.load("digits")
# Stands for the features of a network that somebody else has trained.
directions = rng.normal(size=(64, 100)) / 8
embeddings = np.maximum(0, digits.x.reshape(-1, 64) @ directions)
data = credo.Data(embeddings, digits.y, standardise=True)
train, test = data.split(0.3, seed=0)

head = credo.models.classification(credo.networks.MLP([], out=10), prior=credo.priors.normal(1.0))
posterior = credo.fit(head, train, credo.BayesByBackprop(num_steps=3000), seed=0)
scores = credo.evaluate(posterior, test)
print(scores["accuracy"], scores["ece"])
credo.plot.calibration(scores.calibration)
pyplot.show()
