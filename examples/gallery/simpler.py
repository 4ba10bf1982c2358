"""
How small can it be?
====================

Fewer draws, fewer bits, a student: what each way of making a posterior cheap saves, and what it loses.
"""

from matplotlib import pyplot

import credo

data = credo.datasets.gap(200)
train, test = data.split(0.6, seed=0)
model = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"), noise=0.1)
method = credo.NUTS(num_samples=150, num_warmup=250, num_chains=2)
posterior = credo.fit(model, train, method, seed=0)
result = credo.simplify(posterior, train, test=test, ways=["quantised", "coreset", "student"])
print(result)
credo.plot.trade_off(result)
pyplot.show()
