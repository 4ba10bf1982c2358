r"""
Identifiability
===============

Many parameters make the same function. For a point estimate that is no matter; a posterior has a mode for each of them.
"""

# %%
# Two symmetries
# --------------
#
# Swapping two hidden units, with all that goes in and out of them, changes nothing: *weight-space symmetry*. With
# ReLU, scaling the weights into a unit up and those out of it down changes nothing either: *scaling symmetry*,
#
# .. math::
#    s(\alpha x) = \alpha\, s(x) \;\; (\alpha > 0) \quad\Longrightarrow\quad
#    (W_l, W_{l+1}) \text{ and } (\alpha W_l, W_{l+1} / \alpha) \text{ are the same function.}
#
# credo reads off a network which of these it has:

import numpy as np
from matplotlib import pyplot

import credo

net = credo.networks.MLP(features=[3], out=1, activation="relu", inputs=1)
print(credo.networks.symmetries(net))

# %%
# What that does to a posterior
# -----------------------------
#
# Chains that agree about the function need not agree about a single weight. R-hat, which compares the spread
# between chains with that within them, should be 1; look at both:

rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, 40)
data = credo.Data(x, np.abs(x) + 0.1 * rng.normal(size=40))
model = credo.models.regression(net, noise=0.1)
posterior = credo.fit(model, data, credo.NUTS(num_samples=200, num_warmup=300, num_chains=4), seed=0)
print(posterior.diagnostics)

# %%
# So `posterior.diagnostics` looks at the functions. `posterior.canonical()` brings the weights into one order, with
# one sign and one scale: the same functions, by weights that can be compared.

weights = {"as sampled": posterior, "canonical": posterior.canonical()}
_, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, (name, one) in zip(axes, weights.items(), strict=True):
    into, out = one.theta["hidden.0.kernel"], one.theta["head.kernel"]
    for chain in range(len(into)):
        ax.plot(into[chain, :, 0, 0], out[chain, :, 0, 0], ".", ms=3, label=f"chain {chain + 1}")
    ax.set(title=name, xlabel="weight into the first unit", ylabel="weight out of it")
axes[0].legend(fontsize=7)
pyplot.show()

# %%
# Doing without them from the start
# ---------------------------------
#
# The other way is a prior whose support has one of all equal parametrisations only: biases in ascending order
# against swapped units, weight vectors of length one against scaling (Givens rotations do it with angles).

two = credo.networks.MLP(features=[3], out=1, activation="relu", inputs=2)
identified = {"hidden.*.bias": credo.priors.ordered(1.0), "hidden.*.kernel": credo.priors.unit_norm(1.0)}
model = credo.models.regression(two, prior={**identified, "*": credo.priors.normal(1.0)}, noise=0.1)
print(model.bind(credo.datasets.linear(inputs=2)).graph())

# %%
# It makes a smaller posterior that is harder to walk through; often the posterior with all its symmetries is
# sampled faster, and looked at as functions.
