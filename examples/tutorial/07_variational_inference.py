r"""
Variational inference
=====================

Instead of walking through the posterior, take a family of distributions :math:`q_\phi` and find the member that is
closest to it: sampling becomes optimisation.
"""

# %%
# The evidence lower bound
# ------------------------
#
# Closeness is the Kullback–Leibler divergence, which needs the posterior itself. The *ELBO* differs from it by a
# constant, and does not:
#
# .. math::
#    \int q_\phi(\theta) \log \frac{p(\theta, D)}{q_\phi(\theta)}\, d\theta
#      = \log p(D) - D_{KL}\left(q_\phi \,\|\, p(\theta \mid D)\right)
#
# Bayes by backprop
# -----------------
#
# Noise :math:`\varepsilon` is drawn first and then moved and stretched, :math:`\theta = t(\varepsilon, \phi)`, so
# that gradients pass through:
#
# .. math::
#    \frac{\partial}{\partial \phi} \int q_\phi(\theta)\, f(\theta, \phi)\, d\theta
#      = \int q(\varepsilon) \left(\frac{\partial f}{\partial \theta} \frac{\partial \theta}{\partial \phi}
#        + \frac{\partial f}{\partial \phi}\right) d\varepsilon
#
# The training loop is that of an ordinary network, with :math:`f = \log p(D_y \mid D_x, \theta)\, p(\theta) - \log
# q_\phi(\theta)` to climb.

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.gap()
net = credo.networks.MLP(features=[20], out=1, activation="tanh")
model = credo.models.regression(net, noise=0.1)
posterior = credo.fit(model, data, credo.BayesByBackprop(num_steps=4000), seed=0)

# %%
# The objective is an estimate from a draw, and so it is noisy:

credo.plot.objective(posterior.trace["elbo"])
pyplot.show()

# %%
# How far q is from the posterior can be estimated from its draws: the verdict says so.

print(posterior.diagnostics)

# %%
# The family decides what can be said
# -----------------------------------
#
# A diagonal Gaussian knows nothing of how weights hang together. Others do, at a price: a low rank beside the
# diagonal, a full covariance, a flow.

x = np.linspace(-1.5, 1.5, 121)[:, None]
_, axes = pyplot.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
for ax, family in zip(axes, ("diagonal", "low_rank", "full"), strict=True):
    method = credo.BayesByBackprop(num_steps=4000, family=family)
    fitted = credo.fit(model, data, method, seed=0)
    credo.plot.bands(fitted.predict(x), x, data=data, ax=ax)
    ax.set_title(f'family="{family}"')
pyplot.show()

# %%
# Learning the prior
# ------------------
#
# A few parameters of the prior, :math:`\xi`, may be learned with q, since the ELBO bounds the log evidence, which
# is how well the
# *model* explains the data:
#
# .. math::
#    \hat\xi, \hat\phi = \operatorname{arg\,max}_{\xi, \phi}
#       \int q_\phi(\theta) \log \frac{p_\xi(\theta, D)}{q_\phi(\theta)}\, d\theta

learned = credo.models.regression(net, prior=credo.priors.learned(), noise="tuned")
fitted = credo.fit(learned, data, credo.BayesByBackprop(num_steps=4000), seed=0)
print({name: np.round(np.asarray(value), 2).tolist() for name, value in fitted.model.frozen_xi.items()})
