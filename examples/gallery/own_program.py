"""
A program of your own
=====================

Two lines that meet, and where they do, as a NumPyro program: any method takes it like a network.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 60))
data = credo.Data(x, np.where(x < 6, 1 + 0.2 * x, 2.2 - 0.8 * (x - 6)) + 0.3 * rng.normal(size=60))


def two_lines(x, y=None):
    """A level, two slopes, and the place where one takes over from the other."""
    level = numpyro.sample("level", dist.Normal(0, 3))
    slopes = numpyro.sample("slopes", dist.Normal(0, 1).expand([2]).to_event(1))
    change = numpyro.sample("change", dist.Uniform(0, 10))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    away = x[:, 0] - change
    f = level + jnp.where(away < 0, slopes[0], slopes[1]) * away
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(f, noise), obs=y)


posterior = credo.fit(credo.Model(two_lines), data, credo.NUTS(num_samples=300, num_warmup=400), seed=0)
_, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
points = np.linspace(0, 10, 101)[:, None]
credo.plot.bands(posterior.predict(points), points, data=data, ax=axes[0])
axes[1].hist(posterior.constrained()["change"].ravel(), bins=40)
axes[1].set(xlabel="where the lines meet", ylabel="draws")
pyplot.show()
