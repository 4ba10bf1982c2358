"""Saving and loading posteriors without running code: arrays as safetensors, the rest as JSON.

A folder holds `manifest.json` and `arrays.safetensors`. It is written beside its destination and renamed into
place, so that a reader sees the old posterior or the new one, never half of one. The manifest records its own
checksum and that of the arrays: a file that was cut short or altered is refused.
"""

import hashlib
import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from credo import models, networks
from credo._version import __version__
from credo.data import Scaling
from credo.inference.structure import root_arrays, root_config, root_from_arrays
from credo.models.program import Model, Rows
from credo.posterior import Draws, Gaussian, Provenance

FORMAT = "credo-posterior"
FORMAT_VERSION = 1
MANIFEST, ARRAYS = "manifest.json", "arrays.safetensors"


def save(posterior: Draws | Gaussian, folder: str | Path) -> None:
    """Write a posterior into `folder`, in place of a posterior that was there; anything else is left alone."""
    target = Path(folder)
    if target.exists() and not _is_ours(target) and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not a saved posterior; choose a new or empty folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
        fresh, old = Path(scratch) / "new", Path(scratch) / "old"
        fresh.mkdir()
        save_file(_arrays(posterior), fresh / ARRAYS)
        manifest = _manifest(posterior, checksum=_checksum(fresh / ARRAYS))
        (fresh / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        if not target.exists():
            fresh.rename(target)
            return
        target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            old.rename(target)
            raise
        for other in old.iterdir():
            if other.name not in (MANIFEST, ARRAYS):
                other.rename(target / other.name)


def load(folder: str | Path, *, network: Any = None, model: Model | None = None) -> Draws | Gaussian:
    """Read a posterior that `posterior.save(folder)` wrote.

    Arguments:
        network: the network it was fitted with, where that was not one of `credo.networks`.
        model: the model it was fitted with, where that was a program of the user's own.
    """
    source = Path(folder)
    manifest = _read_manifest(source)
    arrays = _read_arrays(source, manifest)
    rows: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in manifest["rows"].items()
    }
    bound = replace(_rebuild(source, manifest["model"], network, model), rows=Rows(**rows))
    xi = _part(arrays, "xi")
    bound = bound.freeze(xi) if xi else bound
    common: dict[str, Any] = {
        "provenance": Provenance(**manifest["provenance"]),
        "trace": _part(arrays, "trace"),
        "scaling": Scaling.from_dict(_part(arrays, "scaling")),
        "probes": arrays.get("probes"),
    }
    if manifest["kind"] == "gaussian":
        mean = _part(arrays, "mean")
        _check_shapes(source, bound, {name: leaf.shape for name, leaf in mean.items()})
        root = root_from_arrays(manifest["root"], _part(arrays, "root"))
        return Gaussian(bound, mean, root, evidence=manifest["evidence"], **common)
    theta = _part(arrays, "theta")
    _check_shapes(source, bound, {name: leaf.shape[2:] for name, leaf in theta.items()})
    return Draws(bound, theta, weights=arrays.get("weights"), infos=_part(arrays, "infos"), **common)


def _manifest(posterior: Draws | Gaussian, checksum: str) -> dict[str, Any]:
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "credo_version": __version__,
        "kind": "draws",
        "model": posterior.model.config,
        "rows": asdict(posterior.model.rows),  # type: ignore[arg-type]
        "provenance": asdict(posterior.provenance),
        "arrays_sha256": checksum,
    }
    if isinstance(posterior, Gaussian):
        manifest |= {"kind": "gaussian", "root": root_config(posterior.root), "evidence": posterior.evidence}
    return manifest | {"manifest_sha256": _digest(manifest)}


def _arrays(posterior: Draws | Gaussian) -> dict[str, np.ndarray]:
    groups: dict[str, dict[str, np.ndarray]] = {
        "trace": posterior.trace or {},
        "scaling": posterior.scaling.to_dict(),
        "xi": posterior.model.frozen_xi,
    }
    bare = {"probes": posterior.probes}
    if isinstance(posterior, Gaussian):
        groups |= {"mean": posterior.mean, "root": root_arrays(posterior.root)}
    else:
        groups |= {"theta": posterior.theta, "infos": posterior.infos or {}}
        bare |= {"weights": posterior.weights}
    arrays = {f"{group}/{name}": value for group, values in groups.items() for name, value in values.items()}
    arrays |= {name: value for name, value in bare.items() if value is not None}
    # Not np.ascontiguousarray, which gives a scalar an axis.
    return {name: np.asarray(value, order="C") for name, value in arrays.items()}


def _part(arrays: dict[str, np.ndarray], group: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(f"{group}/"): value for name, value in arrays.items() if name.startswith(f"{group}/")}


def _read_manifest(source: Path) -> dict[str, Any]:
    path = source / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{source} is not a saved posterior: it has no {MANIFEST}")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by credo")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {manifest.get('format_version')}, and this is credo {__version__}, which reads "
            f"version {FORMAT_VERSION}; install a newer credo"
        )
    if manifest.pop("manifest_sha256", None) != _digest(manifest):
        raise ValueError(f"{path} is damaged: it was altered after it was saved")
    return manifest


def _read_arrays(source: Path, manifest: dict[str, Any]) -> dict[str, np.ndarray]:
    path = source / ARRAYS
    if not path.is_file():
        raise FileNotFoundError(f"{source} is damaged: {ARRAYS} is missing")
    if _checksum(path) != manifest["arrays_sha256"]:
        raise ValueError(f"{path} is damaged: it was cut short or altered after it was saved")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _rebuild(source: Path, config: dict[str, Any] | None, network: Any, model: Model | None) -> Model:
    if model is not None:
        return model
    if config is None:
        raise ValueError(f"{source} was fitted with a program of its own; pass it: credo.load(folder, model=model)")
    if network is None:
        if config["network"] is None:
            raise ValueError(
                f"{source} was fitted with a network from outside credo.networks; pass it: "
                "credo.load(folder, network=net)"
            )
        network = networks.from_config(config["network"])
    return models.from_config(config, network)


def _check_shapes(source: Path, model: Model, found: dict[str, tuple[int, ...]]) -> None:
    """The network or model that was passed must be the one that was fitted."""
    expected = {name: shape.shape for name, shape in model.template.items()}
    if expected != found:
        names = sorted(name for name in expected | found if expected.get(name) != found.get(name))
        raise ValueError(
            f"{source} does not fit the model: "
            + "; ".join(f"{name}: saved {found.get(name)}, model {expected.get(name)}" for name in names[:4])
        )


def _is_ours(folder: Path) -> bool:
    """Whether a folder holds a saved posterior, of whatever version; others have files named manifest.json too."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
