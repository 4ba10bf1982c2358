"""Saving and loading posteriors without running code: arrays as safetensors, the rest as JSON.

A folder holds `manifest.json` and the file of arrays that it names. The arrays are written first and the manifest is
renamed into place, so that a reader sees the old posterior or the new one, never half of one. The manifest records its
own checksum and that of the arrays: a file that was cut short or altered is refused.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from credo import models, networks
from credo._files import read_arrays, read_json, require_unaltered, write_arrays, write_json
from credo._version import __version__
from credo.data import Scaling
from credo.dropout import Dropout
from credo.inference.roots import root_arrays, root_config, root_from_arrays
from credo.mixture import Mixture, PointEnsemble
from credo.models.program import Model, Rows
from credo.posterior import Draws, Flow, Gaussian, Provenance

Saved = Draws | Gaussian | Flow | Dropout | Mixture

FORMAT = "credo-posterior"
FORMAT_VERSION = 1
MANIFEST, ARRAYS = "manifest.json", "arrays-*.safetensors"


def save(posterior: Saved, folder: str | Path) -> None:
    """Write a posterior into `folder`, in place of a posterior that was there; anything else is left alone."""
    target = Path(folder)
    if target.exists() and not is_saved(target) and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not a saved posterior; choose a new or empty folder")
    target.mkdir(parents=True, exist_ok=True)
    write(posterior, target)


def write(posterior: Saved, folder: Path) -> None:
    """Write a posterior into a folder, whatever else is in it."""
    config, own = _pack(posterior)
    arrays = _arrays(posterior, own)
    # A name of its own: the old manifest finds the old arrays until the new one is there.
    name = ARRAYS.replace("*", uuid.uuid4().hex[:8])
    try:
        checksum = write_arrays(folder / name, arrays)
        write_json(folder / MANIFEST, _manifest(posterior, config | {"arrays": name, "arrays_sha256": checksum}))
    except Exception:
        (folder / name).unlink(missing_ok=True)
        raise
    for old in folder.glob(ARRAYS):
        if old.name != name:
            old.unlink()


def load(folder: str | Path, *, network: Any = None, model: Model | Sequence[Model | None] | None = None) -> Saved:
    """Read a posterior that `posterior.save(folder)` wrote.

    Arguments:
        network: the network it was fitted with, where that was not one of `credo.networks`.
        model: the model it was fitted with, where that was a program of the user's own.

    Where it was fitted with several models, both are lists, with None for those that need none.
    """
    source = Path(folder)
    manifest = _read_manifest(source)
    rows: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in manifest["rows"].items()
    }
    bound = tuple(replace(one, rows=Rows(**rows)) for one in _rebuild_all(source, manifest["model"], network, model))
    arrays = read_arrays(source / manifest["arrays"], manifest["arrays_sha256"])
    stored = Stored(source, manifest, arrays, bound)
    scaling = Scaling.from_dict(stored.group("scaling"))
    return _unpack(stored, scaling=scaling, probes=stored.arrays.get("probes"))


def _manifest(posterior: Saved, config: dict[str, Any]) -> dict[str, Any]:
    configs = [model.config for model in _models(posterior)]
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "credo_version": __version__,
        "model": configs if len(configs) > 1 else configs[0],
        "rows": asdict(posterior.model.rows),  # type: ignore[arg-type]
    } | config


# -- kinds of posteriors: each has a function that packs it, and one that unpacks it ---------------------------


class Stored(NamedTuple):
    """A posterior as it is stored: its part of the manifest, and its arrays by the names `group/name` or `name`.

    `models` are those of the whole; the manifest's number `architecture` says which one it is of, the first without it.
    """

    source: Path
    config: dict[str, Any]
    arrays: dict[str, np.ndarray]
    models: tuple[Model, ...]

    def group(self, group: str) -> dict[str, np.ndarray]:
        """The arrays of a group, by name."""
        start = f"{group}/"
        return {name.removeprefix(start): value for name, value in self.arrays.items() if name.startswith(start)}


class Kind(NamedTuple):
    """A kind of posterior.

    `pack(posterior)` gives its part of the manifest, and its arrays; `unpack(stored, **common)` makes it again.
    """

    type: type
    pack: Callable[[Any], tuple[dict[str, Any], dict[str, np.ndarray]]]
    unpack: Callable[..., Any]


def _pack(posterior: Saved) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A posterior, or a member of one, without what it knows of the data."""
    name, kind = next((name, kind) for name, kind in KINDS.items() if type(posterior) is kind.type)
    config, arrays = kind.pack(posterior)
    return config | {"kind": name, "provenance": asdict(posterior.provenance)}, arrays


def _unpack(stored: Stored, *, scaling: Scaling, probes: np.ndarray | None) -> Saved:
    if stored.config["kind"] not in KINDS:
        raise ValueError(
            f"{stored.source} holds a posterior of the kind {stored.config['kind']!r}, which credo {__version__} does "
            "not know; install a newer credo"
        )
    xi, model = stored.group("xi"), stored.models[stored.config.get("architecture", 0)]
    return KINDS[stored.config["kind"]].unpack(
        stored,
        model=model.freeze(xi) if xi else model,
        provenance=Provenance(**stored.config["provenance"]),
        trace=stored.group("trace"),
        scaling=scaling,
        probes=probes,
    )


def _models(posterior: Saved) -> list[Model]:
    """The models of a posterior, each once: more than one where the members of a mixture differ in architecture."""
    members = posterior.members if isinstance(posterior, Mixture) else (posterior,)
    return list(dict.fromkeys(replace(member.model, xi=None) for member in members))


def _named(**groups: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
    """Groups of arrays under the names `group/name`."""
    return {f"{group}/{name}": value for group, values in groups.items() for name, value in (values or {}).items()}


def _pack_draws(posterior: Draws) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    xi = posterior.model.frozen_xi
    arrays = _named(theta=posterior.theta, infos=posterior.infos, trace=posterior.trace, xi=xi)
    return {}, arrays if posterior.weights is None else arrays | {"weights": posterior.weights}


def _unpack_draws(stored: Stored, *, kind: type[Draws] = Draws, **common: Any) -> Draws:
    theta = stored.group("theta")
    _check_shapes(stored.source, common["model"], {name: leaf.shape[2:] for name, leaf in theta.items()})
    return kind(theta=theta, weights=stored.arrays.get("weights"), infos=stored.group("infos"), **common)


def _pack_gaussian(posterior: Gaussian) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    root, xi = root_arrays(posterior.root), posterior.model.frozen_xi
    arrays = _named(mean=posterior.mean, root=root, trace=posterior.trace, xi=xi)
    config = {"root": root_config(posterior.root), "evidence": posterior.evidence, "prediction": posterior.prediction}
    return config, arrays


def _unpack_gaussian(stored: Stored, **common: Any) -> Gaussian:
    mean = stored.group("mean")
    _check_shapes(stored.source, common["model"], {name: leaf.shape for name, leaf in mean.items()})
    root = root_from_arrays(stored.config["root"], stored.group("root"))
    prediction = stored.config.get("prediction", "draws")
    return Gaussian(mean=mean, root=root, evidence=stored.config["evidence"], prediction=prediction, **common)


def _pack_flow(posterior: Flow) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    config, arrays = posterior.to_parts()
    return config, arrays | _named(trace=posterior.trace, xi=posterior.model.frozen_xi)


def _unpack_flow(stored: Stored, **common: Any) -> Flow:
    shapes = {name: leaf.shape for name, leaf in stored.group("location").items()}
    _check_shapes(stored.source, common["model"], shapes)
    return Flow.from_parts(config=stored.config, arrays=stored.arrays, **common)


def _pack_dropout(posterior: Dropout) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    xi = posterior.model.frozen_xi
    return {"masks": posterior.kind}, _named(mean=posterior.mean, rates=posterior.rates, trace=posterior.trace, xi=xi)


def _unpack_dropout(stored: Stored, **common: Any) -> Dropout:
    mean, rates = stored.group("mean"), stored.group("rates")
    _check_shapes(stored.source, common["model"], {name: leaf.shape for name, leaf in mean.items()})
    posterior = Dropout(mean=mean, rates=rates, kind=stored.config["masks"], **common)
    if {place.name for place in posterior.places} != rates.keys():
        raise ValueError(f"{stored.source} does not fit the model: it has masks for {', '.join(rates)}")
    return posterior


def _pack_mixture(posterior: Mixture) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    configs, arrays, models = [], {"weights": posterior.weights}, _models(posterior)
    for index, member in enumerate(posterior.members):
        config, own = _pack(member)
        configs.append(config | {"architecture": models.index(replace(member.model, xi=None))})
        arrays |= {f"members/{index}/{name}": value for name, value in own.items()}
    return {"members": configs}, arrays


def _unpack_mixture(
    stored: Stored, *, provenance: Provenance, scaling: Scaling, probes: np.ndarray | None, **_: Any
) -> Mixture:
    parts = [
        stored._replace(config=config, arrays=stored.group(f"members/{index}"))
        for index, config in enumerate(stored.config["members"])
    ]
    members: Any = tuple(_unpack(part, scaling=scaling, probes=probes) for part in parts)
    return Mixture(members, provenance, stored.arrays["weights"])


KINDS: dict[str, Kind] = {
    "draws": Kind(Draws, _pack_draws, _unpack_draws),
    "point_ensemble": Kind(PointEnsemble, _pack_draws, partial(_unpack_draws, kind=PointEnsemble)),
    "gaussian": Kind(Gaussian, _pack_gaussian, _unpack_gaussian),
    "flow": Kind(Flow, _pack_flow, _unpack_flow),
    "dropout": Kind(Dropout, _pack_dropout, _unpack_dropout),
    "mixture": Kind(Mixture, _pack_mixture, _unpack_mixture),
}


# -- files ---------------------------------------------------------------------------------------------------


def _arrays(posterior: Saved, own: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a posterior, with what it knows of the data."""
    arrays = own | _named(scaling=posterior.scaling.to_dict())
    if posterior.probes is not None:
        arrays |= {"probes": posterior.probes}
    return arrays


def _read_manifest(source: Path) -> dict[str, Any]:
    path = source / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{source} is not a saved posterior: it has no {MANIFEST}")
    manifest = read_json(path)
    if manifest.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by credo")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {manifest.get('format_version')}, and this is credo {__version__}, which reads "
            f"version {FORMAT_VERSION}; install a newer credo"
        )
    return require_unaltered(path, manifest)


def _rebuild_all(source: Path, configs: Any, network: Any, model: Any) -> list[Model]:
    """The models of a posterior: one, or as many as there are configurations."""
    if not isinstance(configs, list):
        return [_rebuild(source, configs, network, model)]
    num = len(configs)
    given = {"network": [None] * num if network is None else network, "model": [None] * num if model is None else model}
    for name, values in given.items():
        if not isinstance(values, list | tuple) or len(values) != num:
            raise ValueError(
                f"{name}: {source} was fitted with {num} models; pass a list of {num}, None where not needed"
            )
    return [_rebuild(source, *one) for one in zip(configs, given["network"], given["model"], strict=True)]


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


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a saved posterior, of whatever version; others have files named manifest.json too."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT
