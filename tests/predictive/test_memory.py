"""Predictions of many rows with many draws stay within bounded memory."""

import subprocess
import sys

import numpy as np
import pytest

import credo
from credo.predictive import predictive
from credo.predictive.marginal import MAX_ACTIVATION_BYTES
from credo.predictive.rows import MAX_ROWS_PER_BLOCK

# In a process of its own, because the peak is that of the whole process.
SCRIPT = """
import resource
import numpy as np
import credo
from credo import random
from credo.posterior import Provenance

x = np.random.default_rng(0).normal(size=(1_000_000, 8)).astype(np.float32)
model = credo.models.regression(credo.networks.MLP([20], out=1), noise=0.1).bind((x[:10], x[:10, 0]))
theta = {name: np.asarray(leaf)[None] for name, leaf in model.sample_prior(random.key(0), 1000).items()}
posterior = credo.Draws(model, theta, Provenance({}, 0, 0.0, 0))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
prediction = posterior.predict(x)
assert np.isfinite(prediction.mean).all() and (prediction.epistemic > 0).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


EVALUATION = """
import resource
import numpy as np
import credo
from credo import random
from credo.posterior import Provenance

x = np.random.default_rng(0).normal(size=(100_000, 5)).astype(np.float32)
y = np.arange(100_000) % 10
model = credo.models.classification(credo.networks.MLP([20], out=10)).bind((x[:10], y[:10]))
theta = {name: np.asarray(leaf)[None] for name, leaf in model.sample_prior(random.key(0), 1000).items()}
posterior = credo.Draws(model, theta, Provenance({}, 0, 0.0, 0))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
scores = credo.evaluate(posterior, (x, y))
assert 0 < scores["ece"].value < 1 and scores["ece"].standard_error > 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.full
def test_evaluating_a_hundred_thousand_rows_with_a_thousand_draws() -> None:
    result = subprocess.run([sys.executable, "-c", EVALUATION], capture_output=True, text=True, check=True)
    # The array of probabilities would be 4 GB.
    assert int(result.stdout.split()[-1]) < 2 * 2**20


@pytest.mark.full
def test_a_million_rows_with_a_thousand_draws() -> None:
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    peak_kib = int(result.stdout.split()[-1])
    # All draws of all rows would be 4 GB; inputs, results and one block per core are a small part of that.
    assert peak_kib < 1_000_000


def test_blocks_of_a_wide_network_have_fewer_rows() -> None:
    x = np.zeros((5000, 3), np.float32)

    def most(units: int) -> int:
        model = credo.models.regression(credo.networks.MLP([units], out=1), noise=0.1).bind((x, x[:, 0]))
        draws = {name: np.zeros((1, *leaf.shape), np.float32) for name, leaf in model.template.items()}
        return predictive(model, draws, x)._max_rows

    assert most(50) == MAX_ROWS_PER_BLOCK
    # Two arrays of them, at least, within the budget.
    assert 0 < most(300_000) * 2 * 4 * 300_000 <= MAX_ACTIVATION_BYTES
