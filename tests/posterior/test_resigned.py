"""Posteriors that were altered and signed anew: no checksum tells, so every field and every array is looked at."""

import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import credo
from credo import _files
from credo._folders import ARRAYS
from credo._manifest import MANIFEST, Manifest

SAVED = Path(__file__).parent / "saved"
Content = dict[str, Any]


def resigned(tmp_path: Path, name: str, change: Callable[[Content, dict[str, np.ndarray]], None]) -> Path:
    """A copy of a saved posterior, altered, with checksums that are right."""
    folder = Path(shutil.copytree(SAVED / name, tmp_path / name))
    (path,) = folder.glob(ARRAYS)
    manifest, arrays = json.loads((folder / MANIFEST).read_text()), load_file(path)
    del manifest["sha256"]
    change(manifest, arrays)
    save_file(arrays, path)
    manifest["arrays_sha256"] = _files.checksum(path)
    (folder / MANIFEST).write_bytes(_files.signed(manifest))
    return folder


def filled(array: np.ndarray, value: float) -> np.ndarray:
    altered = array.copy()
    altered.flat[:1] = value
    return altered


def with_nan(array: np.ndarray) -> np.ndarray:
    return filled(array, np.nan)


def as_flags(array: np.ndarray) -> np.ndarray:
    return array.astype(bool)


def longer(array: np.ndarray) -> np.ndarray:
    return np.stack([array, array])


DAMAGE = {
    "nan": with_nan,
    "inf": lambda array: filled(array, np.inf),
    "bool": as_flags,
    "half": lambda array: array.astype(np.float16),
    "shape": longer,
    "empty": lambda array: array.reshape(-1)[:0],
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("draws", "theta/noise"),
        ("draws", "scaling/x_mean"),
        ("draws", "scaling/y_scale"),
        ("draws", "probes"),
        ("draws", "infos/log_joint"),
        ("draws", "trace/log_joint"),
        ("weighted_draws", "weights"),
        ("gaussian_diagonal", "root/scale/head.kernel"),
        ("gaussian_blocks", "root/roots/head"),
        ("gaussian_low_rank", "root/factor/head.kernel"),
        ("laplace_kronecker", "root/0/input_basis/head.kernel"),
        ("laplace_full", "mean/head.bias"),
        ("mixture", "members/1/root/scale/noise"),
        ("mixture", "weights"),
        ("flow", "layers/bins"),
        ("dropout", "rates/head.kernel"),
        ("generator", "layers/outer"),
        ("quantised_int8", "scale/head.kernel"),
        ("quantised_int8", "centre/noise"),
        ("student", "theta/head.bias"),
    ],
)
def test_an_array_that_is_none_of_the_models(tmp_path, name, array, damage):
    def change(manifest: Content, arrays: dict[str, np.ndarray]) -> None:
        arrays[array] = DAMAGE[damage](arrays[array])

    if array == "probes" and damage == "bool":
        pytest.skip("inputs may be flags")
    with pytest.raises(credo.LoadError):
        credo.load(resigned(tmp_path, name, change))


@pytest.mark.parametrize(
    ("name", "array", "value"),
    [
        ("draws", "scaling/x_scale", 0.0),
        ("draws", "scaling/y_scale", -1.0),
        ("weighted_draws", "weights", -0.5),
        ("weighted_draws", "weights", 3.0),
        ("dropout", "rates/head.kernel", 1.5),
        ("quantised_bf16", "scale/noise", -1.0),
        ("laplace_kronecker", "root/0/precision/head.kernel", 0.0),
    ],
)
def test_a_number_out_of_its_range(tmp_path, name, array, value):
    def change(manifest: Content, arrays: dict[str, np.ndarray]) -> None:
        arrays[array] = filled(arrays[array], value)

    with pytest.raises(credo.LoadError, match="damaged"):
        credo.load(resigned(tmp_path, name, change))


@pytest.mark.parametrize("name", sorted(path.name for path in SAVED.iterdir() if path.is_dir()))
def test_an_array_that_is_missing(tmp_path, name):
    """Also one that a posterior can do without, such as the rate of a layer or the scale of a weight."""
    folder = tmp_path / name
    credo.load(SAVED / name).save(folder)
    (path,), manifest = folder.glob(ARRAYS), Manifest.read(folder)
    arrays = load_file(path)
    for missing in arrays:
        save_file({one: array for one, array in arrays.items() if one != missing}, path)
        msgspec.structs.replace(manifest, files={path.name: _files.checksum(path)}).write(folder)
        with pytest.raises(credo.LoadError, match="other arrays"):
            credo.load(folder)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where there is a value, at any depth."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(one for key, item in inner for one in paths(item, (*path, key)))]


@pytest.mark.parametrize("name", ["draws", "laplace_kronecker", "mixture", "compressed", "student", "dropout"])
def test_any_field_of_another_type(tmp_path, name):
    """It is refused in a sentence, or makes no difference; in no case anything else comes out of it."""
    whole = json.loads((SAVED / name / MANIFEST).read_text())
    x = np.linspace(-2, 2, 3)
    expected = credo.load(SAVED / name).predict(x).mean
    # What the posterior came of is told to people and does not change what it says.
    told = [path for path in paths(whole) if path and "sha256" not in path[-1:] and "method" not in path]
    rng = np.random.default_rng(0)
    for number in rng.permutation(len(told))[:12]:
        *outer, last = told[number]
        for value in ("text", None, [], {"a": 1}, -1, True):

            def change(manifest: Content, arrays: Any, outer=outer, last=last, value=value) -> None:
                place: Any = manifest
                for key in outer:
                    place = place[key]
                place[last] = value

            folder = resigned(tmp_path, name, change)
            try:
                found = credo.load(folder)
            except credo.LoadError:
                found = None
            shutil.rmtree(folder)
            if found is not None and outer[:1] != ["model"]:
                np.testing.assert_array_equal(found.predict(x).mean, expected)


def test_nothing_large_is_made_of_a_small_manifest(tmp_path):
    """Layers of two thousand million units would take 8 GB."""

    def widen(manifest: Content, arrays: dict[str, np.ndarray]) -> None:
        manifest["model"]["network"]["features"] = [2**31]

    def many_inputs(manifest: Content, arrays: dict[str, np.ndarray]) -> None:
        manifest["rows"]["x_shape"] = [2, 2**40]

    def many_targets(manifest: Content, arrays: dict[str, np.ndarray]) -> None:
        manifest["rows"]["y_shape"] = [2, 2**40]

    tracemalloc.start()
    for number, change in enumerate((widen, many_inputs, many_targets)):
        with pytest.raises(credo.LoadError):
            credo.load(resigned(tmp_path / str(number), "draws", change))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26


def test_a_mixture_within_a_mixture_is_refused(tmp_path):
    def nest(manifest: Content, arrays: dict[str, np.ndarray]) -> None:
        manifest["members"][0] = {name: manifest[name] for name in ("kind", "provenance")}

    with pytest.raises(credo.LoadError, match="kind 'mixture'"):
        credo.load(resigned(tmp_path, "mixture", nest))
