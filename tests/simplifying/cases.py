"""Posteriors to compress that cost nothing to make: draws of a prior, as if they were one of a posterior."""

from typing import Any

import numpy as np

import credo
from credo import random
from credo.posterior import Provenance

DATA = credo.datasets.gap(60)
INPUTS = np.linspace(-1.5, 1.5, 200)[:, None]
UNSEEN = np.linspace(-1.45, 1.45, 97)[:, None]


def draws(num: int = 600, seed: int = 0, *, net: Any = None, data: credo.Data = DATA) -> credo.Draws:
    """Draws of the prior of a small regression or classifier, in one chain that drifts."""
    kind = credo.models.regression if data.y.dtype.kind == "f" else credo.models.classification
    model = kind(net or credo.networks.MLP([6], out=1)).bind(data)
    theta = {name: np.asarray(leaf) for name, leaf in model.sample_prior(random.key(seed), num).items()}
    order = np.argsort(theta["head.bias"][:, 0])
    leaves = {name: leaf[order][None] for name, leaf in theta.items()}
    return credo.Draws(model, leaves, Provenance({"name": "Prior"}, seed, 0.0, 0)).placed(data)
