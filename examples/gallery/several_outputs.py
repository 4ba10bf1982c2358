"""
Several outputs
===============

Two targets whose noise hangs together: their covariance is learned, and a prediction is an ellipse.
"""

import numpy as np
from matplotlib import patches, pyplot

import credo

rng = np.random.default_rng(0)
x = rng.uniform(0, 2 * np.pi, 200)
noise = rng.multivariate_normal([0, 0], [[0.05, 0.04], [0.04, 0.05]], size=200)
data = credo.Data(x, np.column_stack([np.cos(x), np.sin(x)]) + noise)

model = credo.models.regression(credo.networks.MLP([30], out=2, activation="tanh"), noise="full")
posterior = credo.fit(model, data, credo.NUTS(num_samples=150, num_warmup=250, num_chains=2), seed=0)

prediction = posterior.predict(np.linspace(0, 2 * np.pi, 13)[:-1, None])
_, ax = pyplot.subplots(figsize=(5, 5), layout="constrained")
ax.plot(*data.y.T, ".", color="tab:red", ms=4, alpha=0.5)
for mean, covariance in zip(prediction.mean, prediction.covariance, strict=True):
    size, axis = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(axis[1, 1], axis[0, 1]))
    ax.add_patch(patches.Ellipse(mean, *(4 * np.sqrt(size[::-1])), angle=angle, fill=False, lw=1.2))
ax.set(xlabel="first target", ylabel="second target", aspect="equal")
pyplot.show()
