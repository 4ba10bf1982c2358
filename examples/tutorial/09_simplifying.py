r"""
Simplifying a Bayesian neural network
=====================================

A posterior is a thousand networks. Most uses have room for one.
"""

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.gap(200)
train, test = data.split(0.7, seed=0)
net = credo.networks.MLP(features=[20], out=1, activation="tanh")
model = credo.models.regression(net, noise=0.1)
teacher = credo.fit(model, train, credo.NUTS(num_samples=200, num_warmup=300, num_chains=2), seed=0)

# %%
# The last layer only
# -------------------
#
# All other layers are trained as usual and become parameters of the model; a distribution is inferred over the last
# layer alone. In regression that has a closed form, evidence included.

last = credo.models.last_layer(model)
head = credo.fit(last, train, credo.ClosedForm(num_steps=1000), seed=0)
print(head.diagnostics)

# %%
# Bayesian teachers
# -----------------
#
# One network, the student, learns what the whole posterior would answer, from inputs that need no labels:
#
# .. math::
#    \hat\omega = \operatorname{arg\,min}_\omega\; -\frac{1}{|\Theta|} \sum_{\theta_i \in \Theta}
#       E_{p(y \mid x, \theta_i)}\left[\log q_\omega(y \mid x)\right]

student = credo.distill(teacher, "mlp:50", inputs=train)

# %%
# credo's students keep the two parts of the uncertainty apart.

x = np.linspace(-1.2, 1.2, 121)[:, None]
_, axes = pyplot.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
named = {"400 draws": teacher, "the last layer": head, "one student": student}
for ax, (name, posterior) in zip(axes, named.items(), strict=True):
    credo.plot.bands(posterior.predict(x), x, data=train, ax=ax)
    ax.set_title(name)
pyplot.show()

# %%
# What is lost
# ------------
#
# The log score of test rows says what each has cost, and the bytes what it has saved:

for name, posterior in named.items():
    score = credo.evaluate(posterior, test)["lpd"]
    print(f"{name:15} {posterior.num_bytes / 1000:8.1f} kB, log score {score.value:.3f} ± {score.standard_error:.3f}")

# %%
# :doc:`Simplifying </simplifying>` does this for every way at once, and recommends one.
