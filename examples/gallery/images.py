"""
Images
======

A small convolutional network on handwritten digits, and the test images that it is least sure of.
"""

import numpy as np
from matplotlib import pyplot

import credo

digits = credo.datasets.load("digits")
train, test = digits.split(0.7, seed=0)
net = credo.networks.CNN(channels=[16], features=[32], out=10, kernel_size=3)
ensemble = credo.DeepEnsemble(credo.MAP(num_steps=500, batch_size=64), members=4)
posterior = credo.fit(credo.models.classification(net), train, ensemble, seed=0)
print(credo.evaluate(posterior, test)["accuracy"])

prediction = posterior.predict(test.x)
least = np.argsort(-prediction.entropy)[:12]
_, axes = pyplot.subplots(2, 6, figsize=(9, 3.6), layout="constrained")
for ax, row in zip(axes.flat, least, strict=True):
    ax.imshow(test.x[row], cmap="Greys")
    first, second = np.argsort(-prediction.probs[row])[:2]
    ax.set_title(
        f"{first}: {prediction.probs[row, first]:.0%}, {second}: {prediction.probs[row, second]:.0%}", fontsize=8
    )
    ax.axis("off")
pyplot.show()
