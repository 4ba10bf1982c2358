r"""
Markov chain Monte Carlo
========================

A Markov chain walks through parameter space so that, in the long run, it is in each place as often as the posterior is
high there. No integral is needed: the posterior up to a constant will do.
"""

# %%
# The Metropolis–Hastings algorithm
# ---------------------------------
#
# From where the chain is, :math:`\theta_n`, a proposal :math:`\theta'` is drawn from :math:`Q(\theta' \mid
# \theta_n)`, and accepted with probability
#
# .. math::
#    p = \min\left(1,\; \frac{Q(\theta_n \mid \theta')}{Q(\theta' \mid \theta_n)}\,
#                       \frac{f(\theta')}{f(\theta_n)}\right), \qquad f(\theta) = p(D_y \mid D_x, \theta)\, p(\theta).
#
# Otherwise the chain stays, and *its place counts once more*. (The paper prints the first ratio upside down, and
# stores accepted states only: see :doc:`errata </errata>`.) With a symmetric :math:`Q` the first ratio is one: the
# Metropolis method.

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.gap(40)
net = credo.networks.MLP(features=[5], out=1, activation="tanh")
model = credo.models.regression(net, noise=0.1)
walk = credo.fit(model, data, credo.Metropolis(num_samples=200, num_warmup=2000, num_chains=4), seed=0)

# %%
# Hamiltonian Monte Carlo and NUTS
# --------------------------------
#
# A random walk gets nowhere in many dimensions. Hamiltonian Monte Carlo gives the chain a momentum and follows the
# gradient of the log posterior for many steps before it asks whether to accept. How long to follow it is what NUTS,
# the No-U-Turn sampler, finds out by itself: until the trajectory turns back.

nuts = credo.fit(model, data, credo.NUTS(num_samples=200, num_warmup=300, num_chains=4), seed=0)

# %%
# One prediction along the chains, between the two groups of points. A good chain looks like noise around one level,
# and chains cannot be told apart:

_, axes = pyplot.subplots(2, 1, figsize=(8, 4.6), sharex=True, layout="constrained")
for ax, (name, posterior) in zip(axes, {"Metropolis": walk, "NUTS": nuts}.items(), strict=True):
    values = posterior.predict([[-0.2]]).functions.reshape(4, -1)
    credo.plot.traces(values, label=f"f(−0.2), {name}", ax=ax)
pyplot.show()

# %%
# Did it work?
# ------------
#
# R-hat compares chains with each other, the effective sample size says how many independent draws they are worth.
# Both are looked at for the functions:

print(walk.diagnostics)
print(nuts.diagnostics)

# %%
# And what the two say about the function:

x = np.linspace(-1.5, 1.5, 121)[:, None]
_, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, posterior) in zip(axes, {"Metropolis": walk, "NUTS": nuts}.items(), strict=True):
    credo.plot.bands(posterior.predict(x), x, data=data, ax=ax)
    ax.set_title(name)
pyplot.show()
