r"""
Degrees of supervision
======================

Labels may be wrong, missing, or few; there may be other tasks to learn from. Each of these is another graph.
"""

# %%
# Noisy labels
# ------------
#
# The label that was given, :math:`\tilde y`, is one more variable after the true one. Its noise :math:`\sigma` may
# depend on nothing, on the class, or on the input too:
#
# .. math::
#    p(y, \sigma, \theta \mid D) \propto
#      p(D_{\tilde y} \mid y, \sigma)\, p(\sigma \mid D_x, y)\, p(y \mid D_x, \theta)\, p(\theta)

import numpy as np
from matplotlib import pyplot

import credo

rng = np.random.default_rng(0)
moons = credo.datasets.moons(300)
wrong = rng.uniform(size=300) < 0.3
given = credo.Data(moons.x, np.where(wrong, 1 - moons.y, moons.y))

noisy = credo.models.noisy_labels(credo.networks.MLP([20], out=2), "nar")
posterior = credo.fit(noisy, given, credo.BayesByBackprop(num_steps=3000), seed=0)
errors = posterior.label_errors(given)
print(f"mean probability of an error: {errors[wrong].mean():.2f} where the label is wrong,", end=" ")
print(f"{errors[~wrong].mean():.2f} where it is right")

credo.plot.graph(noisy.bind(given))
pyplot.show()

# %%
# Few labels
# ----------
#
# Inputs without labels :math:`U` say nothing by themselves; they do once the prior says what a good boundary is,
# for instance that neighbours tend to have the same label:
#
# .. math:: p(\theta \mid D) \propto p(L_y \mid L_x, \theta)\, p(\theta \mid U)

known = [3, 99, 170, 280]  # two of each class
few = credo.Data(moons.x[known], moons.y[known], unlabelled=np.delete(moons.x, known, axis=0))

grid = np.meshgrid(np.linspace(-1.5, 2.5, 60), np.linspace(-1.0, 1.5, 60))
points = np.column_stack([one.ravel() for one in grid])
net = credo.networks.MLP([50], out=2)
ensemble = credo.DeepEnsemble(credo.MAP(num_steps=1000), members=4)
_, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, model, rows, name in (
    (axes[0], credo.models.classification(net), few.only_labelled(), "four labels"),
    (axes[1], credo.models.semi_supervised(net), few, "and 296 inputs without"),
):
    fitted = credo.fit(model, rows, ensemble, seed=0)
    credo.plot.class_map(fitted.predict(points), grid, show="entropy", data=rows, ax=ax)
    ax.set_title(name)
pyplot.show()

# %%
# Data augmentation
# -----------------
#
# An augmentation is knowledge, not data: it says what :math:`x` could have been as well. It belongs inside the
# likelihood, where each label still counts once:
#
# .. math::
#    p(\theta \mid x, y, Aug) \propto
#      \left(\int p(y \mid x', \theta)\, p(x' \mid x, Aug)\, dx'\right) p(\theta), \qquad
#    p(y \mid x, \theta, Aug) \approx \frac{1}{|A_x|} \sum_{x' \in A_x} p(y \mid x', \theta)

digits = credo.models.classification(credo.networks.MLP([30], out=10))
augmented = credo.models.augmented(digits, credo.augmentations.rotate(15), num_draws=4)
print(augmented.bind(credo.datasets.load("digits")).graph())

# %%
# Many tasks
# ----------
#
# Tasks that resemble each other share what their parameters are drawn from, :math:`\xi`:
#
# .. math::
#    p(\theta, \xi \mid D) \propto
#      \left(\prod_{t \in T} p(D^t_y \mid D^t_x, \theta_t)\, p(\theta_t \mid \xi)\right) p(\xi)

slopes = rng.normal(2.0, 0.5, size=10)
x = rng.uniform(-1, 1, size=(10, 6))
data = credo.tasks_data([(x[t], slopes[t] * x[t] + 0.1 * rng.normal(size=6)) for t in range(10)])
tasks = credo.models.tasks(credo.networks.MLP([8], out=1), varying="head.*")
population = credo.fit(tasks, data, credo.MAP(num_steps=2000), seed=0)
new_task = credo.adapt(population, (np.array([0.5]), np.array([1.5])))  # one row of an eleventh task
print(f"f(1) after one row: {new_task.predict([[1.0]]).mean[0]:.1f}, where 3 ± 0.1 would be in line with it")

# %%
# Transfer
# --------
#
# What was learned elsewhere becomes the prior, a little wider, for the parameters that are taken over:
#
# .. math:: p(\theta \mid \xi) = \mathcal{N}\left((\operatorname{sel}(\xi), 0), \sigma^2 I\right)

source = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"), noise=0.1)
first = credo.fit(source, credo.datasets.gap(), credo.BayesByBackprop(num_steps=2000), seed=0)
prior = credo.priors.from_posterior(first, select="hidden.*", inflate=2.0)
target = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"), prior=prior, noise=0.1)

# %%
# More of each: :doc:`noisy labels </noisy_labels>`, :doc:`semi-supervised learning </semi_supervised>`,
# :doc:`augmentation </augmentation>`, :doc:`tasks and transfer </tasks>`.
