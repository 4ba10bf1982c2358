r"""
The stochastic model and its graph
==================================

Which variables there are, which of them depend on which, and which are observed: a probabilistic graphical model says
it in a picture. In credo the picture is drawn from the program, so that the two cannot disagree.
"""

# %%
# A program is a belief network
# -----------------------------
#
# Each ``sample`` is a node, each argument of its distribution an arrow, and a ``plate`` stands for rows that are
# independent given what is outside. The joint distribution is the product of the nodes given their parents:
#
# .. math:: p(v_1, \ldots, v_n) = \prod_{i=1}^{n} p\left(v_i \mid \operatorname{parents}(v_i)\right)

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from matplotlib import pyplot

import credo

data = credo.datasets.gap()


def stochastic_weights(x, y=None):
    """A network of three units: theta is drawn once, y once for each row."""
    theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([3, 2]).to_event(2))
    f = jnp.tanh(x * theta[:, 0]) @ theta[:, 1]
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(f, 0.1), obs=y)


model = credo.Model(stochastic_weights).bind(data)
print(model.graph())

# %%
# An empty circle is latent, a filled one observed, and a frame is a plate:

credo.plot.graph(model)
pyplot.show()

# %%
# Regression and classification
# -----------------------------
#
# For regression the network gives the mean of a normal distribution,
#
# .. math::
#    \theta \sim p(\theta) = \mathcal{N}(\mu, \Sigma), \qquad
#    y \sim p(y \mid x, \theta) = \mathcal{N}\left(\Phi_\theta(x), \Sigma\right)

net = credo.networks.MLP(features=[20], out=1, activation="tanh")
regression = credo.models.regression(net, prior=credo.priors.normal(1.0), noise=0.1)

# %%
# and for classification the probabilities of the classes:
#
# .. math::
#    \theta \sim p(\theta) = \mathcal{N}(\mu, \Sigma), \qquad
#    y \sim p(y \mid x, \theta) = \operatorname{Cat}\left(\Phi_\theta(x)\right)

classes = credo.networks.MLP(features=[20], out=2, activation="tanh")
classification = credo.models.classification(classes, prior=credo.priors.normal(1.0))

# %%
# The rows of the training set are independent given :math:`\theta`, so that their probability is a product, and its
# logarithm a sum:
#
# .. math:: p(D_y \mid D_x, \theta) = \prod_{(x, y) \in D} p(y \mid x, \theta)

bound = regression.bind(data)
theta = bound.initial_theta(credo.random.key(0))
print(f"log p(D_y | D_x, theta) = {bound.log_likelihood(theta, data.batch()):.1f}")
print(f"log p(theta)            = {bound.log_prior(theta):.1f}")

# %%
# Stochastic activations
# ----------------------
#
# The randomness may sit in the activations instead, drawn anew for each row, with the weights as parameters:
#
# .. math::
#    l_0 = x, \qquad l_i \sim p(l_i \mid l_{i-1}) = s_i\left(\mathcal{N}(W_i\, l_{i-1} + b_i, \Sigma)\right),
#    \qquad y = l_n

activations = credo.models.activations(features=[20], out=1)
credo.plot.graph(activations.bind(data))
pyplot.show()

# %%
# The :doc:`page of graphs </graphs>` has every model of the paper as a program and a picture.
