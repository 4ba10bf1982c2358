"""`credo plan`: what a fit of a table will cost."""

import json

import pytest

from credo.inference import cost
from tests.cli.conftest import QUICK


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(cost, "SECONDS_MEASURED", 0.02)
    monkeypatch.setattr(cost, "machine", lambda: (1e-5, 1e-9))


def test_it_says_memory_gradients_and_seconds_for_this_and_other_sizes(credo, houses):
    result = credo("plan", houses / "train.csv", "--target", "price", *QUICK)
    assert result.exit_code == 0, result.output
    for said in ("memory: ", "20 gradients of 60 of 60 rows", "on this machine", "100 × the rows"):
        assert said in result.output
    found = json.loads(credo("plan", houses / "train.csv", "--target", "price", *QUICK, "--json").output)
    assert found["gradients"] == 20
    assert found["seconds"] > 0


def test_what_cannot_fit_is_refused_in_one_line(credo, houses):
    huge = ("--method", "sgld", "--set", "num_samples=100000000", "--set", "num_chains=1", "--network", "mlp:50")
    result = credo("plan", houses / "train.csv", "--target", "price", *huge)
    assert result.exit_code == 2
    assert "would need" in result.output
    assert "would fit" in result.output
