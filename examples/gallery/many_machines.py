"""
Many machines
=============

Members of an ensemble need not know of each other: each machine fits one and saves it; one of them joins what it finds.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.gap()
model = credo.models.regression(credo.networks.MLP([30], out=1, activation="tanh"), noise=0.1)

with tempfile.TemporaryDirectory() as shared:
    for seed in range(5):  # each of these is a job of its own
        method = credo.MAP(num_steps=1000, start="prior")
        credo.fit(model, data, method, seed=seed).save(f"{shared}/member-{seed}")
    members = tuple(credo.load(folder) for folder in sorted(Path(shared).iterdir()))

posterior = credo.Mixture(members, members[0].provenance)
points = np.linspace(-1.5, 1.5, 121)[:, None]
credo.plot.bands(posterior.predict(points), points, data=data)
pyplot.show()
