"""
Something never seen before
===========================

Digits below eight are learned. Can the network tell the others from them, by its own doubt?
"""

import numpy as np
from matplotlib import pyplot

import credo

digits = credo.datasets.load("digits")
seen = digits.y < 8
train, test = credo.Data(digits.x[seen], digits.y[seen]).split(0.6, seed=0)

net = credo.networks.MLP([100], out=8)
ensemble = credo.DeepEnsemble(credo.MAP(num_steps=1000), members=6)
posterior = credo.fit(credo.models.classification(net), train, ensemble, seed=0)

inside, outside = posterior.predict(test.x), posterior.predict(digits.x[~seen])
credo.plot.roc(credo.evaluation.detections(inside, outside))
for name, prediction in {"digits as in training": inside, "others": outside}.items():
    print(f"{name}: mean entropy {np.mean(prediction.entropy):.2f} nats")
pyplot.show()
