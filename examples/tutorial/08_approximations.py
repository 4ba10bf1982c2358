r"""
Inference for deep learning
===========================

Exact chains do not scale to large networks. What people use instead are changes to ordinary training, each of which
can be understood as an approximation of the posterior. Here they are side by side on one posterior.
"""

# %%
# One posterior that can be drawn
# -------------------------------
#
# The smallest of networks, :math:`f(x) = w_2 \tanh(w_1 x)`, has two weights. Changing the sign of both changes
# nothing, so that its posterior has two modes; and each is bent.

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 12)
data = credo.Data(x, np.tanh(1.2 * x) + 0.3 * rng.normal(size=12))


def network(x, y=None):
    """f(x) = w₂ tanh(w₁ x), with known noise."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.5).expand([2]).to_event(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(w[1] * jnp.tanh(w[0] * x[:, 0]), 0.3), obs=y)


model = credo.Model(network).bind(data)

# %%
# Stochastic gradient Langevin dynamics
# -------------------------------------
#
# Gradient ascent on minibatches, with noise of the right size in each step, samples the posterior as steps get
# small:
#
# .. math::
#    \theta_{t+1} = \theta_t + \frac{\epsilon_t}{2} \left(\frac{N}{n}
#       \nabla \log p(D_{t,y} \mid D_{t,x}, \theta_t) + \nabla \log p(\theta_t)\right) + \eta_t, \qquad
#    \eta_t \sim \mathcal{N}(0, \epsilon_t I)

sgld = credo.SGLD(num_samples=400, num_warmup=2000, num_chains=1)

# %%
# Laplace
# -------
#
# A normal distribution around the best parameters, as wide as the curvature :math:`H` of the loss there allows:
#
# .. math:: p(\theta \mid D) \approx \mathcal{N}(\hat\theta, H^{-1})

laplace = credo.Laplace(structure="full", curvature="hessian")

# %%
# SWAG
# ----
#
# The same from the path of gradient descent itself: the mean and the covariance of its last iterates.

swag = credo.SWAG(rank=None, batch_size=4)

# %%
# Deep ensembles
# --------------
#
# Training again from other starting points gives several modes, each without a width:
#
# .. math:: q_\phi(\theta) = \sum_{\theta_i \in \phi} \alpha_{\theta_i}\, \delta_{\theta_i}(\theta)

ensemble = credo.DeepEnsemble(credo.MAP(num_steps=6000, start="prior"), members=10)

# %%
# Different techniques for sampling the posterior
# -----------------------------------------------
#
# The figure of the paper, made for real. Chains sample the posterior itself, but one chain may stay in one mode, as
# both do here. Variational inference and Laplace fit one mode by an ellipse, though it is bent. The width of SWAG is
# set by the learning rate, and here it is next to nothing. The ensemble finds both modes, and nothing around them.

methods = {
    "NUTS, one chain": credo.NUTS(num_samples=400, num_warmup=500, num_chains=1),
    "SGLD, one chain": sgld,
    "variational, full Gaussian": credo.BayesByBackprop(family="full", num_steps=4000),
    "Laplace": laplace,
    "SWAG": swag,
    "deep ensemble of 10": ensemble,
}
posteriors = {name: credo.fit(model, data, method, seed=1) for name, method in methods.items()}

grid = np.meshgrid(np.linspace(-4.5, 4.5, 91), np.linspace(-4.5, 4.5, 91))
weights = jnp.stack([jnp.asarray(one).ravel() for one in grid], axis=-1)
log_joint = jax.vmap(lambda w: model.log_joint({"w": w}, data.batch()))(weights)
density = np.exp(log_joint - log_joint.max()).reshape(grid[0].shape)

_, axes = pyplot.subplots(2, 3, figsize=(10, 6.8), sharex=True, sharey=True, layout="constrained")
for ax, (name, posterior) in zip(axes.flat, posteriors.items(), strict=True):
    draws = np.asarray(posterior.sample(credo.random.key(0), 300)["w"])
    ax.contourf(*grid, density, levels=8, cmap="Greys")
    ax.plot(draws[:, 0], draws[:, 1], ".", ms=12 if "ensemble" in name else 3, color="tab:red", alpha=0.6)
    ax.set(title=name, xlim=(-4.5, 4.5), ylim=(-4.5, 4.5))
axes[1, 1].set_xlabel("weight into the unit, $w_1$")
axes[0, 0].set_ylabel("weight out of it, $w_2$")
pyplot.show()

# %%
# What the function looks like
# ----------------------------
#
# Both modes are the same function, and so none of the methods is as wrong as its picture: it is in networks with
# several *different* ways to explain the data that the modes matter. The sd of the function tells what each has
# left out:

there = np.array([[0.25], [3.0]])
for name, posterior in posteriors.items():
    near, far = np.sqrt(posterior.predict(there).epistemic)
    print(f"{name:27} sd of f at 0.25: {near:.2f}, at 3: {far:.2f}")

# %%
# Dropout
# -------
#
# A network that is trained with dropout, and predicts with dropout on, averages over masks: the masks play the part
# of draws from a posterior. Any network with dropout layers can be used so, and it costs nothing.

net = credo.networks.MLP(features=[50], out=1, activation="tanh")
line = credo.datasets.gap()
dropout = credo.fit(credo.models.regression(net, noise=0.1), line, credo.MCDropout(num_steps=2000, rate=0.1), seed=0)
inputs = np.linspace(-1.5, 1.5, 121)[:, None]
credo.plot.bands(dropout.predict(inputs), inputs, data=line)
pyplot.show()
