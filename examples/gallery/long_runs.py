"""
A run that is stopped
=====================

With a folder, a fit writes down where it stands. Stopped at any moment, it goes on from there, to the same bits.
"""

import tempfile

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.gap()
model = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"), noise=0.1)
method = credo.MAP(num_steps=2000)

with tempfile.TemporaryDirectory() as folder:
    kept = credo.fit(model, data, method, seed=0, checkpoint=f"{folder}/run")
    # The same call goes on from what the folder holds; a finished run is loaded.
    again = credo.fit(model, data, method, seed=0, checkpoint=f"{folder}/run", resume=True)
fresh = credo.fit(model, data, method, seed=0)
for name in fresh.theta:
    assert np.array_equal(fresh.theta[name], again.theta[name]), name

ax = credo.plot.objective(kept.trace["log_joint"], label="log joint density")
ax.set_title("resumed and uninterrupted runs have the same bits")
pyplot.show()
