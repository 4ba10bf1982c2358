"""What a run will need, by part, and the refusal of what does not fit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import credo
from credo._machine import MemoryLimit
from credo.models.densities import ACTIVATION_BYTES

X = np.zeros((20_000, 4), np.float32)
DATA = credo.Data(X, np.arange(20_000.0))


@pytest.fixture(scope="module")
def model() -> credo.Model:
    return credo.models.regression(credo.networks.MLP([30], out=1), noise=0.1)


def test_data_and_activations_are_parts_of_what_is_needed(model) -> None:
    needs = credo.MAP(batch_size=None).describe(model, DATA)
    assert needs.data_bytes == 4 * 5 * 20_000
    # The hidden units before and after their activation, at least.
    assert 2 * 4 * 30 * 20_000 <= needs.activation_bytes <= ACTIVATION_BYTES
    assert needs.total_bytes == needs.num_bytes + needs.data_bytes + needs.activation_bytes
    assert "data: 400 kB; activations: " in str(needs)
    batches = credo.MAP(batch_size=200).describe(model, DATA)
    assert 100 * batches.activation_bytes == pytest.approx(needs.activation_bytes)


def test_activations_are_those_of_all_networks_that_run_at_once(model, monkeypatch) -> None:
    monkeypatch.setattr("credo.inference.method.available_cores", lambda: 2)
    one, four = (credo.NUTS(num_chains=num).describe(model, DATA).activation_bytes for num in (1, 4))
    assert four == 2 * one
    draws = credo.BayesByBackprop(draws_per_step=3, batch_size=100)
    assert draws.networks_per_step == 3 == credo.DeepEnsemble(draws, members=2).networks_per_step


def test_activations_of_any_number_of_rows_are_bounded() -> None:
    wide = credo.models.regression(credo.networks.MLP([1000], out=1), noise=0.1)
    many = credo.Data(np.broadcast_to(np.float32(0), (1_200_000, 2)), np.broadcast_to(np.float32(0), 1_200_000))
    assert credo.MAP(batch_size=None).describe(wide, many).activation_bytes == ACTIVATION_BYTES


def test_a_refusal_says_what_there_is_and_what_would_fit(model, monkeypatch) -> None:
    method = credo.NUTS(num_samples=8000, num_chains=4)
    needed = method.describe(model, DATA).total_bytes
    limit = MemoryLimit(int(1.2 * needed), "what ulimit -v leaves")  # of which a half may be taken
    monkeypatch.setattr("credo.inference.needs.memory_limit", lambda: limit)
    with pytest.raises(ValueError, match=r"data: 400 kB; activations: .*ulimit -v leaves.*would fit") as refused:
        credo.fit(model, DATA, method)
    named = str(refused.value).split("); ")[-1].split(" would fit")[0]
    for setting in named.split(" or "):
        name, value = setting.split("=")
        fewer = {"num_samples": 8000, "num_chains": 4} | {name: int(value)}
        assert credo.NUTS(**fewer).describe(model, DATA).total_bytes <= limit.num_bytes / 2


def test_a_limit_of_the_shell_refuses_in_one_line(tmp_path: Path) -> None:
    rows = "\n".join(f"{row % 7},{row % 5}" for row in range(200))
    (tmp_path / "table.csv").write_text(f"a,y\n{rows}\n")
    # 3.8 GB of draws: more than half of what is left, and large enough for Python and its libraries.
    fit = "fit table.csv --target y --task regression --network mlp:1000 --method nuts --set num_samples=80000"
    result = subprocess.run(
        ["sh", "-c", f"ulimit -v {8 * 2**20}; exec {sys.executable} -m credo.cli {fit}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 2, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("credo: NUTS would need")]
    assert len(lines) == 1
    assert "ulimit -v" in lines[0]
    assert "Traceback" not in result.stderr
