"""`credo fit` with other processes: the run of one, a sentence when one is lost, and resuming with fewer."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from credo.cli.together import LOST, Others

QUICK = ("--method", "nuts", "--set", "num_samples=15", "--set", "num_warmup=15", "--set", "num_chains=2")
# Long enough to be killed on the way.
LONG = ("--method", "metropolis", "--set", "num_samples=20000", "--set", "num_chains=2", "--set", "thin=20")
PATIENCE_SECONDS = 600


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def started(*arguments: object, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "credo.cli", "fit", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | env)


def both(table: Path, out: Path, *arguments: object) -> list[subprocess.Popen[str]]:
    """Two processes that fit together."""
    where = ("--distributed", f"127.0.0.1:{free_port()}", "--num-processes", 2)
    common = (table, "--target", "price", "--out", out, "--network", "mlp:4", *arguments, *where)
    return [started(*common, "--process-id", number) for number in range(2)]


def ends(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, errors


def arrays(folder: Path) -> bytes:
    (path,) = folder.glob("arrays-*")
    return path.read_bytes()


def worker_of(process: subprocess.Popen[str]) -> int:
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


# --- what the flags say


def test_flags_go_together():
    with pytest.raises(ValueError, match="--distributed, --num-processes and --process-id go together"):
        Others("node1:29400", 4)


@pytest.mark.parametrize("coordinator", ["node1", "29400", "node1:"])
def test_a_coordinator_has_a_port(coordinator):
    with pytest.raises(ValueError, match="pass host:port of process 0"):
        Others(coordinator, 2, 0)


def test_processes_are_numbered_from_zero():
    with pytest.raises(ValueError, match="numbered from 0 to 3"):
        Others("node1:29400", 4, 4)


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, False),
        ({"SLURM_STEP_NODELIST": "node[1-2]", "SLURM_NTASKS": "2"}, True),
        ({"SLURM_STEP_NODELIST": "node1", "SLURM_NTASKS": "1"}, False),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "0"}, True),
        ({"OMPI_MCA_orte_hnp_uri": "1.0;tcp://10.0.0.1:1", "OMPI_COMM_WORLD_SIZE": "4"}, True),
    ],
)
def test_clusters_are_known_by_their_variables(monkeypatch, variables, found):
    for name in ("SLURM_STEP_NODELIST", "KUBERNETES_SERVICE_HOST", "OMPI_MCA_orte_hnp_uri"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Others().are_there is found


# --- two processes


@pytest.mark.full
def test_two_processes_give_the_bits_of_one(houses, tmp_path):
    done = [ends(process) for process in both(houses / "train.csv", tmp_path / "two", *QUICK)]
    assert [code for code, _ in done] == [0, 0], done
    one = started(houses / "train.csv", "--target", "price", "--out", tmp_path / "one", "--network", "mlp:4", *QUICK)
    assert ends(one)[0] == 0
    assert arrays(tmp_path / "one") == arrays(tmp_path / "two")


@pytest.mark.full
@pytest.mark.parametrize("killed", [0, 1])
@pytest.mark.parametrize("part", ["worker", "command"])
def test_killed_process_ends_both_and_one_goes_on_to_the_same_bits(houses, tmp_path, killed, part):
    table, run = houses / "train.csv", tmp_path / "run"
    processes = both(table, run, *LONG)
    while not list(run.glob("checkpoint/*/*.json")):
        assert [process.poll() for process in processes] == [None, None], [ends(process) for process in processes]
        time.sleep(0.05)
    os.kill(worker_of(processes[killed]) if part == "worker" else processes[killed].pid, signal.SIGKILL)
    code, said = ends(processes[1 - killed])
    assert code == LOST, said
    assert said.splitlines()[-1].startswith("credo: another process was lost"), said
    if part == "worker":
        code, said = ends(processes[killed])
        assert code == LOST, said
        assert "this process was ended by SIGKILL" in said
    assert ends(started("--resume", "--out", run))[0] == 0
    assert ends(started(table, "--target", "price", "--out", tmp_path / "one", "--network", "mlp:4", *LONG))[0] == 0
    assert arrays(run) == arrays(tmp_path / "one")


@pytest.mark.full
def test_processes_with_different_data_are_refused(houses, tmp_path):
    where = ("--distributed", f"127.0.0.1:{free_port()}", "--num-processes", 2, "--process-id")
    common = ("--target", "price", "--out", tmp_path / "run", "--network", "mlp:4", *QUICK, *where)
    processes = [started(houses / f"{name}.csv", *common, number) for number, name in enumerate(("train", "test"))]
    for code, said in map(ends, processes):
        assert code == 2
        assert "process 1 differs from process 0 in its data" in said


@pytest.mark.full
def test_a_coordinator_that_is_not_there_is_told(houses, tmp_path):
    where = ("--distributed", f"127.0.0.1:{free_port()}", "--num-processes", 2, "--process-id", 1)
    process = started(houses / "train.csv", "--target", "price", *where, CREDO_SECONDS_TO_MEET="1")
    code, said = ends(process)
    assert code == 2
    assert "nobody answers at 127.0.0.1" in said
