"""Saved posteriors: what damage is noticed, what is never overwritten, and what must be passed to load."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo._folders import ARRAYS
from credo._manifest import MANIFEST

X = np.linspace(-1, 1, 8)
METHOD = credo.MAP(num_steps=3)


def linear(params, x):
    return x @ params["w"] + params["b"]


def outside_network(inputs: int = 1):
    return linear, {"w": jnp.zeros((inputs, 1)), "b": jnp.zeros(1)}


def program(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(slope * x[:, 0], 0.1), obs=y)


@pytest.fixture(scope="module")
def posterior():
    model = credo.models.regression(credo.networks.MLP([2], out=1))
    return credo.fit(model, credo.Data(X, 5 + 2 * X, standardise=True), METHOD)


@pytest.fixture
def folder(posterior, tmp_path) -> Path:
    posterior.save(tmp_path / "deep" / "run")
    return tmp_path / "deep" / "run"


def arrays_of(folder: Path) -> str:
    """The name of the file that holds the arrays."""
    (path,) = folder.glob(ARRAYS)
    return path.name


def file_of(folder: Path, kind: str) -> Path:
    return folder / (MANIFEST if kind == "manifest" else arrays_of(folder))


def edit(folder: Path, **changes) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | changes))


# --- the round trip


def test_folder_holds_two_files_and_no_traces_of_writing(folder):
    assert {path.name for path in folder.iterdir()} == {MANIFEST, arrays_of(folder)}
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_everything_comes_back(posterior, folder):
    loaded = credo.load(folder)
    assert loaded.provenance == posterior.provenance
    for part in ("theta", "infos", "trace"):
        ours, theirs = getattr(posterior, part), getattr(loaded, part)
        assert ours.keys() == theirs.keys()
        assert all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)
    for name, value in posterior.scaling.to_dict().items():
        back = loaded.scaling.to_dict()[name]
        assert (back.shape, back.dtype, back.tobytes()) == (value.shape, value.dtype, value.tobytes())
    np.testing.assert_array_equal(loaded.probes, posterior.probes)


# --- damage


@pytest.mark.parametrize("kind", ["manifest", "arrays"])
def test_truncated_file_is_refused(folder, kind):
    path = file_of(folder, kind)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="is damaged"):
        credo.load(folder)


def test_altered_byte_of_the_arrays_is_refused(folder):
    path = file_of(folder, "arrays")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cut short or altered"):
        credo.load(folder)


def test_altered_manifest_is_refused(folder):
    """Another activation would load without complaint, and predict something else."""
    text = (folder / MANIFEST).read_text()
    assert '"tanh"' in text
    (folder / MANIFEST).write_text(text.replace('"tanh"', '"relu"'))
    with pytest.raises(ValueError, match="altered after it was saved"):
        credo.load(folder)


@pytest.mark.parametrize("content", ["[1, 2]", '{"name": "web app"}', '"text"'])
def test_foreign_json_is_refused(folder, content):
    (folder / MANIFEST).write_text(content)
    with pytest.raises(ValueError, match="was not written by credo"):
        credo.load(folder)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe\x00"])
def test_what_is_not_json_is_refused(folder, content):
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(ValueError, match="it is not JSON"):
        credo.load(folder)


@pytest.mark.parametrize("kind", ["manifest", "arrays"])
def test_missing_file_is_named(folder, kind):
    path = file_of(folder, kind)
    path.unlink()
    with pytest.raises(credo.LoadError, match=path.name):
        credo.load(folder)


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a saved posterior"):
        credo.load(tmp_path / "nowhere")


def test_newer_format_is_refused(folder):
    edit(folder, format_version=3)
    with pytest.raises(credo.LoadError, match=r"format version 3.*install a newer credo"):
        credo.load(folder)


# --- overwriting


@pytest.mark.parametrize("content", [None, '{"name": "web app"}', "not JSON"])
def test_foreign_folder_is_not_overwritten(posterior, tmp_path, content):
    (tmp_path / "thesis.tex").write_text("years of work")
    if content is not None:
        (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(ValueError, match="is not a saved posterior"):
        posterior.save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_file_in_the_way_is_not_overwritten(posterior, tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(ValueError, match="is not a saved posterior"):
        posterior.save(tmp_path / "run")


def test_saving_again_replaces_the_run_and_keeps_other_files(posterior, folder):
    (folder / "figure.png").write_bytes(b"picture")
    other = credo.fit(posterior.model, (X, -X), METHOD, seed=1)
    other.save(folder)
    np.testing.assert_array_equal(credo.load(folder).theta["head.bias"], other.theta["head.bias"])
    assert {path.name for path in folder.iterdir()} == {MANIFEST, arrays_of(folder), "figure.png"}
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("failing", ["arrays", "manifest"])
def test_failed_save_leaves_the_old_run(posterior, folder, monkeypatch, failing):
    def fail(*args) -> None:
        raise OSError("disk full")

    replace = Path.replace
    files = sorted(path.name for path in folder.iterdir())
    monkeypatch.setattr(Path, "replace", lambda old, new: fail() if new.name.startswith(failing) else replace(old, new))
    with pytest.raises(OSError, match="disk full"):
        posterior.save(folder)
    assert credo.load(folder).provenance == posterior.provenance
    assert sorted(path.name for path in folder.iterdir()) == files


# --- networks and programs from outside


def test_outside_network_must_be_passed(tmp_path):
    fitted = credo.fit(credo.models.regression(outside_network()), (X, X), METHOD)
    fitted.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"pass it: credo.load\(folder, network=net\)"):
        credo.load(tmp_path / "run")
    with pytest.raises(ValueError, match=r"does not fit the model: w: saved \(1, 1\), model \(3, 1\)"):
        credo.load(tmp_path / "run", network=(lambda p, x: x @ p["w"][:1] + p["b"], outside_network(3)[1]))
    loaded = credo.load(tmp_path / "run", network=outside_network())
    np.testing.assert_array_equal(loaded.predict(X).mean, fitted.predict(X).mean)


def test_outside_program_must_be_passed(tmp_path):
    fitted = credo.fit(credo.Model(program), (X, X), METHOD)
    fitted.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"pass it: credo.load\(folder, model=model\)"):
        credo.load(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", model=credo.Model(program))
    np.testing.assert_array_equal(loaded.predict(X).mean, fitted.predict(X).mean)
