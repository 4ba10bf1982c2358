"""The stochastic model of the sparse measure, in credo's words."""

from dataclasses import dataclass

import numpy as np

import credo
from credo import conditions, priors

# Of the value itself and of its measurement, which add up; and of a measurement by a broken sensor.
NOISE, BROKEN = float(np.hypot(0.1, 0.1)), 5.0


@dataclass(frozen=True)
class Knowledge:
    """What the model knows besides the measurements."""

    outliers: bool = True
    subspace: bool = True
    slopes: bool = True


EVERYTHING, NOTHING = Knowledge(), Knowledge(outliers=False, subspace=False, slopes=False)


def model(basis: np.ndarray, known: Knowledge = EVERYTHING, *, num_layers: int = 2) -> credo.Model:
    """Nine measurements of a function of nine inputs: some missing, one output broken, and it is not said which.

    Arguments:
        basis: (9, 3), of the subspace that the function stays close to.
        num_layers: how many of the six layers are stochastic, θ; those before them are point estimates ξ.
    """
    net = credo.networks.MLP([48, 24, 6, 24, 48], out=9, activation="leaky_relu")
    near = [conditions.subspace(basis)] if known.subspace else []
    # The slopes between pairs of inputs, labelled or not: what semi-supervision goes by.
    alike = [conditions.fisher_snedecor(None)] if known.slopes else []
    weights = {"*.kernel": priors.normal(1.0), "*.bias": priors.normal(10.0)}
    prior = priors.consistent(weights, near + alike, strength=1.0, per="point")
    one_is_broken = priors.point(priors.few(1.0))
    if known.outliers:
        whole = credo.models.outliers(net, "nar", prior=prior, noise=NOISE, wide=BROKEN, errors=one_is_broken)
    else:
        whole = credo.models.regression(net, prior=prior, noise=NOISE)
    return credo.models.last_layer(whole, num_layers=num_layers)
