"""
Many devices
============

A mesh of devices: chains over one axis, rows of the data over the other. The same call serves one device, several
(``XLA_FLAGS=--xla_force_host_platform_device_count=8`` makes eight of a processor), and those of many machines.
"""

import jax
import numpy as np
from jax.sharding import Mesh
from matplotlib import pyplot

import credo

data = credo.datasets.gap()
model = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"), noise=0.1)
method = credo.NUTS(num_samples=200, num_warmup=200, num_chains=4)

# "auto" takes all devices of all processes, chains first: 4 × 2 for four chains on eight devices.
posterior = credo.fit(model, data, method, mesh="auto")

# A mesh of one's own: all devices divide the rows.
rows = Mesh(np.array(jax.devices()), ("data",))
divided = credo.fit(model, data, credo.MAP(num_steps=500), mesh=rows)

points = np.linspace(-1.5, 1.5, 121)[:, None]
credo.plot.bands(posterior.predict(points), points, data=data)
pyplot.plot(points, divided.predict(points).mean, "k--", label="the mode")
pyplot.legend()
pyplot.show()
