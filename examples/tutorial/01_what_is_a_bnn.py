r"""
What is a Bayesian neural network?
==================================

A neural network is a function :math:`y = \Phi_\theta(x)` with parameters :math:`\theta`, its weights and biases.
Training finds a single value for them. A *Bayesian* neural network has a probability distribution over them instead: it
keeps every network that is compatible with the data, weighted by how compatible it is.
"""

# %%
# Two models
# ----------
#
# You make two choices. The **functional model** is the network:
#
# .. math:: l_0 = x, \qquad l_i = s_i(W_i\, l_{i-1} + b_i), \qquad y = l_n

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.gap()
net = credo.networks.MLP(features=[20], out=1, activation="tanh")

# %%
# The **stochastic model** says which parameters you expect before seeing any data, and how the data scatter around
# the network:
#
# .. math:: \theta \sim p(\theta), \qquad y = \Phi_\theta(x) + \epsilon

model = credo.models.regression(net, prior=credo.priors.normal(1.0), noise=0.1)

# %%
# Even before seeing any data, this is a distribution over functions. Here are twenty draws from it:

x = np.linspace(-1.5, 1.5, 121)[:, None]
before = model.bind(data).prior_predict(x, num_draws=20).functions
_, ax = pyplot.subplots()
ax.plot(x, before.T, lw=1)
ax.set(xlabel="x", ylabel="y", title="20 draws from the prior")
pyplot.show()

# %%
# Learning is Bayes' formula
# --------------------------
#
# The data :math:`D` update the distribution by a single rule, Bayes' theorem:
#
# .. math::
#    p(\theta \mid D) = \frac{p(D_y \mid D_x, \theta)\, p(\theta)}
#                            {\int p(D_y \mid D_x, \theta')\, p(\theta')\, d\theta'}
#
# The integral in the denominator, the *evidence*, has no closed form for a neural network. Inference algorithms find
# ways around it; the one used here draws from the posterior without ever computing it. The other
# :doc:`methods </methods>` are described on a page of their own.

posterior = credo.fit(model, data, credo.NUTS(num_samples=150, num_warmup=200, num_chains=2), seed=0)

# %%
# A prediction is an average
# --------------------------
#
# The prediction for a new input is not the output for one set of weights but the average over all of them, the
# *marginal*:
#
# .. math:: p(y \mid x, D) = \int p(y \mid x, \theta')\, p(\theta' \mid D)\, d\theta'

prediction = posterior.predict(x)
ax = credo.plot.bands(prediction, x, data=data)
pyplot.show()

# %%
# In practice the integral is a mean over draws :math:`\theta_i` from the posterior, :math:`\Theta`. The estimate of
# :math:`y`, called *model averaging*, and the covariance around it are
#
# .. math::
#    \hat{y} = \frac{1}{|\Theta|} \sum_{\theta_i \in \Theta} \Phi_{\theta_i}(x), \qquad
#    \Sigma_{y \mid x, D} = \frac{1}{|\Theta| - 1} \sum_{\theta_i \in \Theta}
#       \left(\Phi_{\theta_i}(x) - \hat{y}\right)\left(\Phi_{\theta_i}(x) - \hat{y}\right)^T

mean, spread = prediction.mean, np.sqrt(prediction.epistemic)
print(f"at x = 0, between the data: {mean[60]:.2f} ± {spread[60]:.2f}")
print(f"at x = 0.75, among the data: {mean[90]:.2f} ± {spread[90]:.2f}")

# %%
# For classification, the mean over draws is the probability of each class, and the predicted label is the most probable
# class:
#
# .. math::
#    \hat{p} = \frac{1}{|\Theta|} \sum_{\theta_i \in \Theta} \Phi_{\theta_i}(x), \qquad
#    \hat{y} = \operatorname{arg\,max}_i\; \hat{p}_i

moons = credo.datasets.moons()
classifier = credo.models.classification(credo.networks.MLP([20], out=2, activation="tanh"))
classes = credo.fit(classifier, moons, credo.Laplace(), seed=0).predict(moons.x[:5])
print(classes.probs.round(2))
print(classes.label)
