"""Runs that survive: stopped at any moment they go on to the same bits, and nothing that was good is lost."""

import fcntl
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file

import credo
from credo import _files
from credo._folders import CheckpointError
from credo.inference.engine import checkpoint
from credo.inference.engine import driver as engine
from credo.testing import same_bits
from tests.kills import Killed, fit_through_kills, kill_at, write_at_every_chunk

NETWORK = credo.networks.MLP([4], out=1)
MODEL = credo.models.regression(NETWORK)
DEEPER = credo.models.regression(credo.networks.MLP([3, 3], out=1))
NUTS = credo.NUTS(num_samples=12, num_warmup=10, num_chains=2, max_depth=2)


@pytest.fixture(scope="module")
def data() -> credo.Data:
    x = np.linspace(-1, 1, 20)
    return credo.Data(x, 10 + np.sin(3 * x), standardise=True)


@pytest.fixture(scope="module")
def whole(data):
    """The run that nothing stopped."""
    return credo.fit(MODEL, data, NUTS, seed=3)


@pytest.fixture(autouse=True)
def at_every_chunk(monkeypatch):
    write_at_every_chunk(monkeypatch)


# --- killed, it ends with the same bits


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (MODEL, credo.DeepEnsemble(credo.MAP(num_steps=8, batch_size=7), members=5)),
        (MODEL, credo.MCLMC(num_samples=6, num_warmup=8, num_chains=2, thin=2, start=credo.MAP(num_steps=4))),
        pytest.param([MODEL, DEEPER], credo.DeepEnsemble(credo.MAP(num_steps=6)), marks=pytest.mark.full),
    ],
    ids=["in lock-step", "in two stages", "of two architectures"],
)  # fmt: skip
def test_killed_at_every_write(model, method, data, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "available_cores", lambda: 2)

    def fit(**options) -> credo.Posterior:
        return credo.fit(model, data, method, seed=3, **options)

    found, num_kills = fit_through_kills(monkeypatch, tmp_path, fit, every=1)
    assert num_kills >= 6
    assert same_bits(found, fit())


def test_goes_on_with_the_groups_it_began_with(data, tmp_path, monkeypatch):
    """Chains in lock-step are one program: in another one the last bits of a product may differ."""
    method = credo.DeepEnsemble(credo.MAP(num_steps=8), members=4)
    monkeypatch.setattr(engine, "available_cores", lambda: 2)
    with monkeypatch.context() as patched:
        kill_at(patched, 9)
        with pytest.raises(Killed):
            credo.fit(MODEL, data, method, checkpoint=tmp_path)
    monkeypatch.setattr(engine, "available_cores", lambda: 4)
    sizes = []
    group_of = engine.Group.of
    monkeypatch.setattr(engine.Group, "of", lambda chains, size: sizes.append(size) or group_of(chains, size))
    credo.fit(MODEL, data, method, checkpoint=tmp_path, resume=True)
    assert sizes == [2, 2]


def test_time_before_the_kill_counts(data, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        kill_at(patched, 9)
        with pytest.raises(Killed):
            credo.fit(MODEL, data, NUTS, checkpoint=tmp_path)
    stage = checkpoint.Stage(tmp_path / "checkpoint" / "0")
    stage.load()
    assert stage.seconds_before > 0
    assert credo.fit(MODEL, data, NUTS, checkpoint=tmp_path, resume=True).provenance.seconds > stage.seconds_before


def test_interrupted_run_goes_on(data, whole, tmp_path, monkeypatch):
    def press_ctrl_c(self, bar, chains) -> None:
        if min(chain.num_kept for chain in chains) >= 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(engine.Driver, "show", press_ctrl_c)
        with pytest.warns(UserWarning, match="interrupted"):
            part = credo.fit(MODEL, data, NUTS, seed=3, checkpoint=tmp_path)
    assert part.provenance.interrupted
    found = credo.fit(MODEL, data, NUTS, seed=3, checkpoint=tmp_path, resume=True)
    assert same_bits(found, whole)
    assert not found.provenance.interrupted


def test_finished_run_is_not_run_again(data, whole, tmp_path, monkeypatch):
    credo.fit(MODEL, data, NUTS, seed=3, checkpoint=tmp_path)
    monkeypatch.setattr(engine, "run", lambda *args, **options: pytest.fail("it was run again"))
    again = credo.fit(MODEL, data, NUTS, seed=3, checkpoint=tmp_path, resume=True)
    assert same_bits(again, whole)
    assert sorted(re.sub("-.*", "", path.name) for path in tmp_path.iterdir()) == [
        "arrays",
        "manifest.json",
    ]


def test_goes_on_from_where_it_stood(data, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        kill_at(patched, 20)
        with pytest.raises(Killed):
            credo.fit(MODEL, data, NUTS, checkpoint=tmp_path)
    steps = []
    advance = engine.Driver.advance
    monkeypatch.setattr(engine.Driver, "advance", lambda self, unit: steps.append(unit.step) or advance(self, unit))
    credo.fit(MODEL, data, NUTS, checkpoint=tmp_path, resume=True)
    assert min(steps) > 0


# --- what is refused, and leaves everything as it was


@pytest.fixture
def unfinished(data, tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "unfinished"
    with monkeypatch.context() as patched:
        kill_at(patched, 13)
        with pytest.raises(Killed):
            credo.fit(MODEL, data, NUTS, seed=3, checkpoint=folder)
    return folder


def test_unfinished_run_is_not_overwritten(data, unfinished, whole):
    with pytest.raises(ValueError, match=r"holds a run that has not ended; pass resume=True"):
        credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished)
    found = credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished, resume=True)
    assert same_bits(found, whole)
    with pytest.raises(ValueError, match=r"holds a finished run"):
        credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished)


def test_another_run_is_named(data, unfinished):
    other = credo.Data(data.x, data.y + 1, standardise=True).with_scaling(data.scaling)
    for model, rows, method, seed, named in (
        (MODEL, data, NUTS, 4, "seed"),
        (MODEL, other, NUTS, 3, "data"),
        (MODEL, data, credo.NUTS(num_samples=13, num_chains=2), 3, "method"),
        (credo.models.regression(credo.networks.MLP([5], out=1)), data, NUTS, 3, "model"),
        (MODEL, other, NUTS, 4, "data and seed"),
    ):
        with pytest.raises(ValueError, match=f"holds another run: its {named} differ"):
            credo.fit(model, rows, method, seed=seed, checkpoint=unfinished, resume=True)


def test_resume_needs_a_folder(data):
    with pytest.raises(ValueError, match="resume=True goes on from a folder"):
        credo.fit(MODEL, data, NUTS, resume=True)


def test_folder_of_something_else_is_left_alone(data, whole, tmp_path):
    whole.save(tmp_path / "saved")
    with pytest.raises(ValueError, match="holds a posterior that was saved"):
        credo.fit(MODEL, data, NUTS, checkpoint=tmp_path / "saved", resume=True)
    (tmp_path / "manifest.json").write_text('{"name": "web app"}')
    with pytest.raises(ValueError, match="of something else"):
        credo.fit(MODEL, data, NUTS, checkpoint=tmp_path)


def test_second_process_is_refused(data, unfinished, whole):
    handle = os.open(unfinished, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(CheckpointError, match="another process is at work"):
            credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished, resume=True)
    finally:
        os.close(handle)
    found = credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished, resume=True)
    assert same_bits(found, whole)


@pytest.mark.parametrize("kind", ["manifest", "unit", "state", "records"])
def test_file_cut_short_is_refused_and_the_rest_kept(data, unfinished, kind):
    unit = sorted(unfinished.glob("checkpoint/0/*.json"))[0]
    content = json.loads(unit.read_text())
    files = {
        "manifest": "../../manifest.json",
        "unit": unit.name,
        "state": content["state"][0],
        "records": content["records"][0][0],
    }
    path = (unit.parent / files[kind]).resolve()
    path.write_bytes(path.read_bytes()[:-30])
    before = {one: one.read_bytes() for one in unfinished.rglob("*") if one.is_file()}
    with pytest.raises(ValueError, match=f"{path.name} is damaged"):
        credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished, resume=True)
    assert {one: one.read_bytes() for one in unfinished.rglob("*") if one.is_file()} == before


def longer(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array.ravel(), array.ravel()])


@pytest.mark.parametrize("kind", ["state", "records"])
@pytest.mark.parametrize("change", [np.isnan, longer], ids=["flags", "other shapes"])
def test_arrays_that_do_not_fit_the_method_are_refused(data, unfinished, kind, change):
    """Also where they were signed anew."""
    unit = sorted(unfinished.glob("checkpoint/0/*.json"))[0]
    content = _files.read_json(unit)
    del content["sha256"]
    file = content["state"] if kind == "state" else content["records"][0]
    arrays = {
        name: change(array) if array.dtype.kind == "f" else array
        for name, array in load_file(unit.with_name(file[0])).items()
    }
    file[1] = _files.write_arrays(unit.with_name(file[0]), arrays)
    _files.write_json(unit, content)
    with pytest.raises(credo.LoadError, match="does not fit the method"):
        credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished, resume=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", "three"),
        ("step", 999_999),
        ("num_kept", 1_000),
        ("group_size", 0),
        ("finished", 1),
        ("state", ["../0-0.safetensors", "0"]),
    ],
)
def test_fields_that_do_not_fit_are_refused(data, unfinished, name, value):
    unit = sorted(unfinished.glob("checkpoint/0/*.json"))[0]
    content = {key: one for key, one in _files.read_json(unit).items() if key != "sha256"}
    _files.write_json(unit, content | {name: value})
    with pytest.raises(credo.LoadError, match=r"damaged|does not fit the method"):
        credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished, resume=True)


def test_a_chain_does_not_go_on_as_another(data, unfinished):
    """The file of one chain in the place of another's, checksum and all."""
    one, other, *_ = sorted(unfinished.glob("checkpoint/0/*.json"))
    other.write_bytes(one.read_bytes())
    with pytest.raises(credo.LoadError, match="of other chains"):
        credo.fit(MODEL, data, NUTS, seed=3, checkpoint=unfinished, resume=True)


def test_folder_that_cannot_be_made(data, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written to"):
        credo.fit(MODEL, data, NUTS, checkpoint=tmp_path / "file" / "run")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(data, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="cannot be written to"):
        credo.fit(MODEL, data, NUTS, checkpoint=tmp_path)


def test_full_disk_stops_the_run_and_loses_nothing(data, whole, tmp_path, monkeypatch):
    full = [
        OSError(28, "No space left on device"),
        OSError("could not be written: No space left on device (os error 28)"),
    ]
    for number, error in zip((8, 12), full, strict=True):
        with monkeypatch.context() as patched:
            kill_at(patched, number, error=error)
            with pytest.raises(CheckpointError, match=r"No space left on device.*resume=True"):
                credo.fit(MODEL, data, NUTS, seed=3, checkpoint=tmp_path, resume=True)
    found = credo.fit(MODEL, data, NUTS, seed=3, checkpoint=tmp_path, resume=True)
    assert same_bits(found, whole)


def test_writer_of_arrays_says_that_the_disk_is_full(tmp_path, monkeypatch):
    def fail(*args) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(_files, "save_file", fail)
    with pytest.raises(OSError, match=r"could not be written.*No space left"):
        _files.write_arrays(tmp_path / "a.safetensors", {"a": np.zeros(3)})
    assert list(tmp_path.iterdir()) == []


def test_failed_chain_keeps_its_last_good_state(data, tmp_path):
    """And fails again when it goes on, at the same step."""
    method = credo.SGLD(step_size=1e6, num_samples=20, num_warmup=20, num_chains=1)
    steps = []
    for _ in range(2):
        with pytest.raises(credo.NonFiniteError) as caught:
            credo.fit(MODEL, data, method, checkpoint=tmp_path, resume=True)
        steps.append(caught.value.step)
    assert steps[0] == steps[1]


# --- real kills

SCRIPT = """
import sys
import numpy as np
import credo
from credo.inference.engine import checkpoint

checkpoint.SECONDS_BETWEEN, checkpoint.SHARE_OF_TIME = 0.0, 1e9
x = np.linspace(-1, 1, 20)
model = credo.models.regression(credo.networks.MLP([4], out=1))
method = eval(sys.argv[2], {"credo": credo})
print("ready", flush=True)
data = credo.Data(x, 10 + np.sin(3 * x), standardise=True)
credo.fit(model, data, method, seed=3, checkpoint=sys.argv[1], resume=True)
"""


def progress_of(folder: Path) -> list[tuple[str, int]]:
    """What the checkpoints say: it changes whenever the run has come further."""
    return sorted((path.name, path.stat().st_mtime_ns) for path in folder.glob("checkpoint/*/*.json"))


def is_killed(command: list[str], folder: Path, rng: random.Random, *, while_starting: bool) -> bool:
    """Kill a process at a random moment, while it starts or once it has come further; False if it ended before."""
    before = progress_of(folder)
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    if while_starting:
        time.sleep(rng.uniform(0, 3))
    else:
        while process.poll() is None and progress_of(folder) == before:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.5))
    alive = process.poll() is None
    if alive:
        process.send_signal(signal.SIGKILL)
    process.wait()
    return alive


def check_kills(tmp_path: Path, method: str, num_kills: int, seed: int = 0) -> int:
    """Kill a run so often, if it does not end before, let it end, and compare; returns the number of kills."""
    rng = random.Random(seed)
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    commands = {
        folder: [sys.executable, "-W", "ignore", "-c", SCRIPT, str(folder), method] for folder in (killed, undisturbed)
    }
    done = 0
    while done < num_kills and is_killed(commands[killed], killed, rng, while_starting=done % 4 == 3):
        done += 1
    for command in commands.values():
        subprocess.run(command, check=True, capture_output=True)
    assert same_bits(credo.load(killed), credo.load(undisturbed))
    shutil.rmtree(killed)
    shutil.rmtree(undisturbed)
    return done


def test_survives_sigkill(tmp_path):
    method = "credo.Metropolis(num_samples=2000, num_warmup=2000, num_chains=2, thin=200)"
    assert check_kills(tmp_path, method, 2) >= 1


@pytest.mark.full
def test_survives_fifty_kills(tmp_path):
    methods = (
        "credo.NUTS(num_samples=3000, num_warmup=500, num_chains=2)",
        "credo.DeepEnsemble(credo.MAP(num_steps=100_000, batch_size=5), members=5)",
        "credo.MCLMC(num_samples=4000, num_warmup=2000, num_chains=2, thin=10, start=credo.MAP(num_steps=20_000))",
        "credo.BayesByBackprop(num_steps=100_000, batch_size=5)",
    )
    done = 0
    for seed, method in enumerate(itertools.cycle(methods)):
        done += check_kills(tmp_path, method, 13, seed)
        if done >= 50:
            break


def test_a_conclusion_is_reached_once(tmp_path, monkeypatch):
    """A fit that was killed in the curvature of its third member does not compute those of the first two again."""
    around, calls = credo.Laplace.around, []

    def counted(self, *arguments, **options):
        calls.append(self)
        if len(calls) == 3:
            raise Killed
        return around(self, *arguments, **options)

    monkeypatch.setattr(credo.Laplace, "around", counted)
    method = credo.DeepEnsemble(credo.Laplace("diagonal", training=credo.MAP(num_steps=5)), members=3)
    model = credo.models.regression(NETWORK)
    data = np.linspace(-1, 1, 20), np.linspace(-1, 1, 20)
    with pytest.raises(Killed):
        credo.fit(model, data, method, checkpoint=tmp_path)
    found = credo.fit(model, data, method, checkpoint=tmp_path, resume=True)
    assert len(calls) == 4
    assert same_bits(found, credo.fit(model, data, method))
