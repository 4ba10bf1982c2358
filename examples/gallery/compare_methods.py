"""
Which method is worth it?
=========================

The same model and data, several methods, and one plot of what they score and what they cost.
"""

from matplotlib import pyplot

import credo

data = credo.datasets.load("diabetes", standardise=True)
train, test = data.split(0.7, seed=0)
model = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"), prior=credo.priors.fan_in(1.0))
methods = {
    "MAP": credo.MAP(num_steps=2000),
    "ensemble": credo.DeepEnsemble(credo.MAP(num_steps=2000), members=5),
    "Laplace": credo.Laplace(),
    "Bayes by backprop": credo.BayesByBackprop(num_steps=4000),
    "NUTS": credo.NUTS(num_samples=150, num_warmup=250, num_chains=2),
}
posteriors = {name: credo.fit(model, train, method, seed=0) for name, method in methods.items()}
result = credo.compare(posteriors, test)
print(result)
credo.plot.comparison(result)
pyplot.show()
