"""
A network of your own
=====================

Any ``flax.nnx`` module becomes Bayesian as it is, here with a prior for each of its parameters by path.
"""

import jax
import numpy as np
from flax import nnx
from matplotlib import pyplot

import credo


class Net(nnx.Module):
    """A residual network of one block."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.into = nnx.Linear(1, 20, rngs=rngs)
        self.block = nnx.Linear(20, 20, rngs=rngs)
        self.head = nnx.Linear(20, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        hidden = jax.nn.tanh(self.into(x))
        return self.head(hidden + jax.nn.tanh(self.block(hidden)))


prior = {"*.bias": credo.priors.normal(3.0), "*": credo.priors.fan_in(1.0)}
model = credo.models.regression(Net(nnx.Rngs(0)), prior=prior, noise=0.1)
data = credo.datasets.gap()
posterior = credo.fit(model, data, credo.DeepEnsemble(credo.MAP(num_steps=500), members=8), seed=0)

x = np.linspace(-1.5, 1.5, 121)[:, None]
credo.plot.bands(posterior.predict(x), x, data=data)
pyplot.show()
