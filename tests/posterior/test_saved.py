"""Posteriors that an earlier version saved, one of each kind: they load, and predict what they predicted then."""

import json
from pathlib import Path

import numpy as np
import pytest

import credo

SAVED = Path(__file__).parent / "saved"
PREDICTED = json.loads((SAVED / "predictions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PREDICTED)
def test_what_was_saved_before_loads_and_predicts_the_same(name: str) -> None:
    posterior = credo.load(SAVED / name)
    prediction = posterior.predict(np.linspace(-2, 2, 5))
    # Single precision, through another compiler's sums.
    np.testing.assert_allclose(prediction.mean, PREDICTED[name]["mean"], rtol=1e-4)
    np.testing.assert_allclose(prediction.std, PREDICTED[name]["std"], rtol=1e-3)
    assert posterior.diagnostics.verdict in str(posterior.diagnostics)
