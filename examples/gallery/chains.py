"""
Have the chains arrived?
========================

Values along each chain, and their ranks among all draws: flat histograms are chains that agree.
"""

from matplotlib import pyplot

import credo

data = credo.datasets.gap(40)
model = credo.models.regression(credo.networks.MLP([10], out=1, activation="tanh"), noise=0.1)
posterior = credo.fit(model, data, credo.NUTS(num_samples=300, num_warmup=300, num_chains=4), seed=0)
print(posterior.diagnostics)

values = posterior.predict([[0.0]]).functions.reshape(4, -1)
_, axes = pyplot.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
credo.plot.traces(values, label="f(0)", ax=axes[0])
credo.plot.ranks(values, ax=axes[1])
pyplot.show()
