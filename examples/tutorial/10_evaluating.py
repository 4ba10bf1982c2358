r"""
Evaluating a Bayesian neural network
====================================

Is it right, and does it know when it is not? The first is the performance of the prediction, the second its
calibration.
"""

import numpy as np
from matplotlib import pyplot

import credo

data = credo.datasets.load("diabetes", standardise=True)
train, test = data.split(0.6, seed=0)
net = credo.networks.MLP(features=[30], out=1, activation="tanh")
model = credo.models.regression(net, prior=credo.priors.fan_in(1.0))
posteriors = {
    "NUTS": credo.fit(model, train, credo.NUTS(num_samples=150, num_warmup=200, num_chains=2), seed=0),
    "MAP": credo.fit(model, train, credo.MAP(num_steps=2000), seed=0),
}
for name, posterior in posteriors.items():
    print(name, credo.evaluate(posterior, test), sep="\n")

# %%
# Calibration of a regression
# ---------------------------
#
# If the model is right, the residuals, made square and divided by the predicted covariance, follow a known law:
#
# .. math::
#    \text{NSSR} = (\hat y - \check y)^T\, \Sigma_{\hat y}^{-1}\, (\hat y - \check y) \sim \chi^2_{\dim(y)}

prediction = posteriors["NUTS"].predict(test.x)
residuals, _ = credo.evaluation.nssr(prediction, test.y)
print(f"their mean is {residuals.mean():.2f}, where 1 is due")

# %%
# From it each row gets a predicted probability, and the share of rows that have at most that one is what was
# observed:
#
# .. math::
#    \hat p_i = X^2_{\dim(y)}(\text{NSSR}_i), \qquad
#    \check p_i = \frac{1}{|T|} \sum_{j=1}^{|T|} \mathbb{I}\left(\hat p_j \le \hat p_i\right)
#
# A curve below the diagonal is overconfident. (The paper prints the comparison the other way round: :doc:`errata
# </errata>`.)

curves = {name: credo.evaluate(posterior, test).calibration for name, posterior in posteriors.items()}
credo.plot.calibration(curves)
pyplot.show()

# %%
# Two numbers sum the curve up, its area and its distance from the diagonal:
#
# .. math::
#    \text{AUC} = \int_0^1 \check p\, d\hat p, \qquad
#    d(\check p, \hat p) = \sqrt{\int_0^1 (\check p - \hat p)^2\, d\hat p}

for name, curve in curves.items():
    print(f"{name}: area {curve.auc:.2f} (0.5 is calibrated), distance {curve.distance:.3f}")

# %%
# Calibration of a classifier
# ---------------------------
#
# Among the rows that are given a probability near :math:`\hat p`, the share that belong to the class should be
# :math:`\hat p`:
#
# .. math::
#    \check p = \frac{\sum_{\check y \in T_y} \check y \cdot \mathbb{I}_{[\hat p - \delta,\, \hat p + \delta]}(\hat y)}
#                    {\sum_{\check y \in T_y} \mathbb{I}_{[\hat p - \delta,\, \hat p + \delta]}(\hat y)}

cancer = credo.datasets.load("breast_cancer", standardise=True)
train, test = cancer.split(0.5, seed=0)
classifier = credo.models.classification(credo.networks.MLP([20], out=2))
posterior = credo.fit(classifier, train, credo.Laplace(), seed=0)
credo.plot.calibration(credo.evaluate(posterior, test).calibration)
pyplot.show()

# %%
# What can be mended
# ------------------
#
# Rows that were held back can straighten a curve, and conformal sets hold the truth as often as promised, however
# wrong the model is:

held_out, rest = test.split(0.5, seed=0)
sets = credo.conformal(posterior, held_out, level=0.9)
inside = sets.labels(rest.x)[np.arange(rest.size), rest.y]
sizes = sets.labels(rest.x).sum(1)
print(f"{inside.mean():.0%} of the sets hold the true class; they have {sizes.mean():.2f} classes on average")
