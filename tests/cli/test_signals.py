"""A signal, whenever it comes: one line, the exit code that shells expect, and nothing lost or damaged."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from credo._stopping import Stop

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Long enough to be stopped on the way.
LONG = ("--target", "price", "--method", "map", "--set", "num_steps=200000", "--network", "mlp:4")
PATIENCE_SECONDS = 300

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see what is awaited")


def started(*arguments: object) -> subprocess.Popen[str]:
    """A real process, at the moment from which on it answers signals; before, it is Python that starts."""
    command = [sys.executable, "-m", "credo.cli", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(process, lambda: signal.SIGTERM in _blocked(process.pid))
    return process


def until(process: subprocess.Popen[str], condition) -> None:
    while process.poll() is None and not condition():
        time.sleep(0.001)


def _blocked(pid: int) -> set[int]:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(next(line for line in status.splitlines() if line.startswith("SigBlk"))[7:], 16)
    return {number for number in SIGNALS if mask >> (number - 1) & 1}


def stopped(process: subprocess.Popen[str], number: int) -> str:
    """What a process says on being stopped, if it has not ended before."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    said = [line for line in errors.splitlines() if not line.startswith("credo: note:")]
    if process.returncode == 0:
        assert said == []
        return ""
    assert process.returncode == 128 + number, errors
    assert len(said) == 1, errors
    assert said[0].startswith("credo: interrupted"), errors
    return said[0]


def arrays(folder: Path) -> bytes:
    (path,) = folder.glob("arrays-*")
    return path.read_bytes()


@pytest.fixture(scope="module")
def whole(credo, houses) -> Path:
    result = credo("fit", houses / "train.csv", *LONG, "--out", houses / "whole")
    assert result.exit_code == 0, result.output
    return houses / "whole"


@pytest.mark.parametrize(("seconds", "number"), [(0.0, signal.SIGINT), (0.1, signal.SIGTERM), (0.8, signal.SIGINT)])
def test_a_fit_that_has_not_begun_leaves_nothing_to_continue(houses, tmp_path, seconds, number):
    process = started("fit", houses / "train.csv", *LONG, "--out", tmp_path / "run")
    time.sleep(seconds)
    said = stopped(process, number)
    assert said
    assert ("to continue" in said) == (tmp_path / "run").exists()


def test_a_fit_on_its_way_is_written_down_and_goes_on(credo, houses, whole, tmp_path):
    run = tmp_path / "run"
    process = started("fit", houses / "train.csv", *LONG, "--out", run)
    checkpoint = run / "checkpoint" / "0" / "0.json"
    until(process, checkpoint.exists)
    assert stopped(process, signal.SIGTERM) == f"credo: interrupted; to continue: credo fit --resume --out {run}"
    assert checkpoint.exists()
    assert credo("fit", "--resume", "--out", run).exit_code == 0
    assert arrays(run) == arrays(whole)


def test_a_file_is_whole_or_not_there(houses, run, tmp_path):
    header, *rows = (houses / "test.csv").read_text().splitlines(keepends=True)
    table, out = tmp_path / "many.csv", tmp_path / "out"
    table.write_text("".join([header, *rows * 3000]))
    out.mkdir()
    process = started("predict", run, table, "--out", out / "predictions.csv")
    until(process, lambda: any(out.iterdir()))
    stopped(process, signal.SIGHUP)
    assert [path.name for path in out.iterdir()] in ([], ["predictions.csv"])


@pytest.mark.full
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "inspect"])
def test_at_any_moment(credo, houses, run, whole, tmp_path, command, number):
    """From the first moment to past the end, in steps that are fine where imports are."""
    for moment in [*(0.1 * step for step in range(10)), *(1.0 + 0.4 * step for step in range(8))]:
        out = tmp_path / f"{moment:.2f}"
        out.mkdir()
        arguments = {
            "fit": ("fit", houses / "train.csv", *LONG, "--out", out / "run"),
            "predict": ("predict", run, houses / "test.csv", "--out", out / "out.csv"),
            "evaluate": ("evaluate", run, houses / "test.csv", "--report", out / "page.html"),
            "inspect": ("inspect", run),
        }[command]
        process = started(*arguments)
        time.sleep(moment)
        said = stopped(process, number)
        assert not list(out.glob(".*")), "nothing half written stays"
        if "to continue" in said:
            assert credo("fit", "--resume", "--out", out / "run").exit_code == 0
            assert arrays(out / "run") == arrays(whole)


@pytest.mark.parametrize("number", SIGNALS)
def test_before_the_package_is_imported(number):
    """The command's own module blocks signals first of all; the package is imported after them."""
    # The tests may run where some are ignored, as under nohup.
    script = f"import signal; signal.signal({number:d}, signal.SIG_DFL)"
    script += f"; import _credo, os; os.kill(os.getpid(), {number:d}); _credo.main()"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (128 + number, "", "credo: interrupted\n")


def test_a_second_signal_does_not_wait():
    stop = Stop()
    assert not stop.ask(signal.SIGINT), "nobody listens: the process ends at once"
    answers: list[bool] = []
    with pytest.raises(KeyboardInterrupt), stop.heard():
        answers += [stop.ask(signal.SIGTERM), stop.ask(signal.SIGINT)]
    assert (answers, stop.signal) == ([True, False], signal.SIGTERM)


def test_what_was_told_to_be_ignored_stays_ignored(tmp_path):
    """As under nohup, and in the background of a script."""
    script = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); from credo.cli.signals import watch; watch()"
    script += "; import os; os.kill(os.getpid(), signal.SIGHUP); print('still here')"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=False)
    assert (found.returncode, found.stdout) == (0, "still here\n")
