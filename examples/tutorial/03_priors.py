r"""
Setting the prior
=================

A prior over weights is a prior over functions, and it is the functions that one has an opinion about.
"""

# %%
# A good default
# --------------
#
# Independent normal weights, with mean zero:
#
# .. math:: p(\theta) = \mathcal{N}(0, \sigma^2 I)

import numpy as np
from matplotlib import pyplot

import credo

normal = credo.priors.normal(1.0)  # the number is the standard deviation

# %%
# The same scale means other functions in a wider network. Dividing it by the root of the number of inputs of a
# layer keeps the outputs as they are, and a prior can be given by parameter path:

priors = {
    "normal(1.0)": normal,
    "fan_in(1.0)": credo.priors.fan_in(1.0),
    "wide biases": credo.priors.by_path({"*.bias": credo.priors.normal(3.0), "*": credo.priors.fan_in(1.0)}),
}

# %%
# Here are twelve functions of each:

net = credo.networks.MLP(features=[50], out=1, activation="tanh", inputs=1)
x = np.linspace(-3, 3, 61)[:, None]


def functions(prior, num_draws=12):
    """Functions of the network under a prior."""
    model = credo.models.regression(net, prior=prior, noise=0.1).bind((x, x[:, 0]))
    return model.prior_predict(x, num_draws=num_draws).functions[:12]


_, axes = pyplot.subplots(1, 3, figsize=(9, 3), sharex=True, layout="constrained")
for ax, (name, prior) in zip(axes, priors.items(), strict=True):
    ax.plot(x, functions(prior).T, lw=1)
    ax.set_title(name, fontsize=10)
pyplot.show()

# %%
# Regularisation is a prior
# -------------------------
#
# The most probable parameters under the posterior minimise a loss with a penalty,
#
# .. math::
#    \hat\theta = \operatorname{arg\,max}_\theta\; p(D_y \mid D_x, \theta)\, p(\theta)
#               = \operatorname{arg\,min}_\theta\; \operatorname{loss}_{D_x, D_y}(\theta) + \operatorname{reg}(\theta),
#    \qquad \operatorname{reg}(\theta) = -\log p(\theta),
#
# so that every penalty is a prior, and the other way round: :math:`\ell_2` is normal, :math:`\ell_1` is Laplace.

data = credo.datasets.gap()
lasso = credo.models.regression(net, prior=credo.priors.from_regularizer("l1", 2.0), noise=0.1)
ridge = credo.models.regression(net, prior=credo.priors.from_regularizer("l2", 2.0), noise=0.1)
for name, model in {"l1": lasso, "l2": ridge}.items():
    mode = credo.fit(model, data, credo.MAP(num_steps=1500), seed=0)
    weights = np.abs(mode.draw(0)["head.kernel"]).ravel()
    print(f"{name}: {np.sum(weights < 0.01)} of {weights.size} weights of the last layer are below 0.01")

# %%
# A prior with a consistency condition
# ------------------------------------
#
# What is known of the function goes in directly. A condition :math:`C(\theta, x)` measures how badly a function
# breaks a rule at an input; averaged over inputs it is a factor of the prior:
#
# .. math::
#    p(\theta \mid D_x) \propto p(\theta)\,
#       \exp\left(-\frac{1}{|D_x|} \sum_{x \in D_x} C(\theta, x)\right)

rising = credo.priors.consistent(normal, credo.conditions.monotone({0: "+"}), inputs=x[::6], strength=100.0)

_, axes = pyplot.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
for ax, (name, prior) in zip(axes, {"normal(1.0)": normal, "… that rises": rising}.items(), strict=True):
    ax.plot(x, functions(prior, num_draws=200).T, lw=1)
    ax.set_title(name, fontsize=10)
pyplot.show()

# %%
# :doc:`Priors </priors>` has all of them, also priors that resemble a Gaussian process, switch off inputs that do not
# help, or are learned; :doc:`conditions </conditions>` has the rules.
