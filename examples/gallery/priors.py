"""
What a prior says
=================

Functions before there are data: under normal weights, heavy tails, and scales that match a Gaussian process.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import RBF

import credo

x = np.linspace(-3, 3, 61)[:, None]
net = credo.networks.MLP([50], out=1, activation="tanh", inputs=1)
priors = {
    "normal(1.0)": credo.priors.normal(1.0),
    "laplace(0.5)": credo.priors.laplace(0.5),
    "horseshoe()": credo.priors.horseshoe(),
    "matching(net, RBF(1.0), x)": credo.priors.matching(net, RBF(1.0), x[::4], num_steps=500),
}
_, axes = pyplot.subplots(1, 4, figsize=(13, 3), sharex=True, layout="constrained")
for ax, (name, prior) in zip(axes, priors.items(), strict=True):
    model = credo.models.regression(net, prior=prior, noise=0.1).bind((x, x[:, 0]))
    ax.plot(x, model.prior_predict(x, num_draws=10).functions.T, lw=1)
    ax.set_title(name, fontsize=9)
pyplot.show()
