"""Damage to the files of a folder, which are held as bytes by name; also damage that makes the checksums anew."""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from credo._files import digest

Rng = np.random.Generator
# A file, or what stands in its place.
Files = dict[str, Any]

HUGE = 10**30
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 3, 2**31, 2**63, HUGE, -0.5, 1e308, float("nan"), float("inf"), "", "x", "tanh", "../map",
    "/etc/passwd", "x" * 10_000, "\0", "\ud800", [], {}, [[]], [1, 2], {"name": "x"}, [None] * 1_000,
)  # fmt: skip


class Link(str):
    """A symbolic link in place of a file."""


class Directory:
    """A directory in place of a file."""


def read(folder: Path) -> Files:
    """The files of a folder, also those in folders within it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def write(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            path.symlink_to(content)
        elif isinstance(content, Directory):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(content)


# -- of bytes and names ------------------------------------------------------------------------------------


def flipped(rng: Rng, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        if changed:
            changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def inserted(rng: Rng, content: bytes) -> bytes:
    place = int(rng.integers(len(content) + 1))
    return content[:place] + rng.bytes(int(rng.integers(1, 20))) + content[place:]


def shortened(rng: Rng, content: bytes) -> bytes:
    place = int(rng.integers(len(content) + 1))
    return content[:place] + content[place + int(rng.integers(1, 20)) :]


def cut(rng: Rng, content: bytes) -> bytes:
    return content[: int(rng.integers(len(content) + 1))]


def emptied(_: Rng, __: bytes) -> bytes:
    return b""


def doubled(_: Rng, content: bytes) -> bytes:
    return content + content


def of_noise(rng: Rng, content: bytes) -> bytes:
    return rng.bytes(len(content))


def a_directory(_: Rng, __: bytes) -> Directory:
    return Directory()


def a_link(rng: Rng, _: bytes) -> Link:
    return Link(rng.choice(["/etc/passwd", "/dev/zero", "nowhere", ".", "manifest.json", "/proc/self/mem"]))


def of_another(rng: Rng, content: bytes, name: str, others: list[Files]) -> Any:
    """The file of the same name, or sort, of another folder."""
    other = others[rng.integers(len(others))]
    alike = [found for found in other if found == name or (Path(found).suffix == Path(name).suffix)]
    return other[alike[rng.integers(len(alike))]] if alike else content


OF_BYTES: tuple[Callable[[Rng, bytes], Any], ...] = (
    flipped, flipped, inserted, shortened, cut, emptied, doubled, of_noise, a_directory, a_link,
)  # fmt: skip


def damaged(rng: Rng, files: Files, others: list[Files]) -> Files:
    """Files with one or two of them damaged; checksums are as they were."""
    changed = dict(files)
    for _ in range(int(rng.integers(1, 3))):
        name = _chosen(rng, [found for found, content in changed.items() if isinstance(content, bytes)])
        if name is None:
            break
        what = rng.integers(8)
        if what == 0:
            del changed[name]
        elif what == 1:
            changed[_new_name(rng, name)] = changed.pop(name)
        elif what == 2:
            changed[_new_name(rng, name)] = changed[name]
        elif what == 3:
            changed[name] = of_another(rng, changed[name], name, others)
        elif what == 4 and name.endswith(".json"):
            changed[name] = edited_json(rng, changed[name])
        else:
            changed[name] = OF_BYTES[rng.integers(len(OF_BYTES))](rng, changed[name])
    return changed


def _new_name(rng: Rng, name: str) -> str:
    path = Path(name)
    names = [f"copy-{path.name}", f".{path.name}.partial", path.stem, f"{path.name}~"]
    return str(path.with_name(str(rng.choice(names))))


def _chosen(rng: Rng, names: list[str]) -> str | None:
    return names[rng.integers(len(names))] if names else None


# -- of JSON -----------------------------------------------------------------------------------------------


def edited_json(rng: Rng, content: bytes) -> bytes:
    """One field changed, removed, added, or replaced by a value that is nested deeply."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return content
    places = [place for place in _places(whole) if place[1:] != ("sha256",)]
    if not places:
        return content
    holder, key = places[rng.integers(len(places))]
    what = rng.integers(8)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[str(rng.choice(["unknown", "", "../x", "0", "\0"]))] = holder[key]
    elif what == 2:
        text = json.dumps(_with(holder, key, "HERE", whole))
        deep = int(rng.choice([200, 100_000]))
        return text.replace('"HERE"', "[" * deep + "]" * deep).encode()
    elif what == 3:
        other, other_key = places[rng.integers(len(places))]
        holder[key] = json.loads(json.dumps(other.get(other_key) if isinstance(other, dict) else other[other_key]))
    elif what == 4 and isinstance(holder[key], int | float):
        holder[key] = holder[key] * float(rng.choice([-1, 0, 0.5, 2, 1_000, 1e9])) + int(rng.integers(-1, 2))
        holder[key] = int(holder[key]) if rng.random() < 0.5 and abs(holder[key]) < 1e300 else holder[key]
    elif what == 5 and isinstance(holder[key], list):
        holder[key] = holder[key] * int(rng.choice([2, 1_000]))
    else:
        holder[key] = VALUES[rng.integers(len(VALUES))]
    return json.dumps(whole).encode()


def _with(holder: Any, key: Any, value: Any, whole: Any) -> Any:
    holder[key] = value
    return whole


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Each place in nested JSON that holds a value: its holder, and its key or number."""
    keys: Any = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


# -- of arrays ---------------------------------------------------------------------------------------------


def edited_arrays(rng: Rng, content: bytes) -> bytes:
    """One array of a file with other values, another dtype or shape, missing, or with a header that lies."""
    if rng.random() < 0.25:
        return _lying_header(rng, content)
    try:
        arrays = load(content)
    except (SafetensorError, KeyError, ValueError):
        return _lying_header(rng, content)  # a dtype that NumPy does not know
    if not arrays:
        return content
    name = str(rng.choice(sorted(arrays)))
    array = arrays[name]
    what = rng.integers(12)
    if what == 0:
        del arrays[name]
    elif what == 1:
        arrays[str(rng.choice(["unknown", f"{name}/x", "../x", "members/7/theta/x", "xi/a"]))] = array
    elif what == 2:
        arrays[name] = arrays[str(rng.choice(sorted(arrays)))]
    elif what == 3:
        arrays[name] = array.astype(rng.choice([bool, np.float64, np.float16, np.int32, np.uint8, np.int64]))
    elif what == 4:
        arrays[name] = _reshaped(rng, array)
    elif what == 5:
        arrays[name] = np.zeros_like(array)
    elif what == 6:
        arrays[name] = -array if array.dtype.kind in "fi" else ~array
    else:
        arrays[name] = _poisoned(rng, array)
    return save({found: np.ascontiguousarray(value).reshape(value.shape) for found, value in arrays.items()})


def _reshaped(rng: Rng, array: np.ndarray) -> np.ndarray:
    forms: tuple[Callable[[], np.ndarray], ...] = (
        lambda: array[None],
        lambda: array.ravel(),
        lambda: array.T,
        lambda: array[..., None],
        lambda: array.ravel()[:0],
        lambda: np.concatenate([array.ravel(), array.ravel()]),
        lambda: array[:-1] if array.ndim else array,
        lambda: np.zeros(()),
    )
    return forms[rng.integers(len(forms))]()


def _poisoned(rng: Rng, array: np.ndarray) -> np.ndarray:
    """One value, or all of them, that no array should hold."""
    if array.dtype.kind != "f" or not array.size:
        return array + np.ones((), array.dtype) if array.dtype.kind in "iu" else array
    changed, poison = np.array(array), float(rng.choice([np.nan, np.inf, -np.inf, np.nan]))
    if rng.random() < 0.5:
        changed[...] = poison
    else:
        changed.ravel()[rng.integers(changed.size)] = poison
    return changed


def _lying_header(rng: Rng, content: bytes) -> bytes:
    """The header of a safetensors file with another length, shape, offset or dtype."""
    try:
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        name = str(rng.choice(sorted(key for key in header if key != "__metadata__")))
    except (struct.error, ValueError):
        return content
    what = rng.integers(6)
    if what == 0:
        return struct.pack("<Q", int(rng.choice([0, 2**62, length + 1, length - 1]))) + content[8:]
    lies: tuple[Mapping[str, Any], ...] = (
        {"shape": [2**31, 2**31]},
        {"shape": [2**62]},
        {"data_offsets": [0, 2**40]},
        {"dtype": "X9"},
        {"shape": [-1]},
        {"data_offsets": [8, 0]},
    )
    header[name] |= lies[rng.integers(len(lies))]
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


# -- made anew ---------------------------------------------------------------------------------------------


def resigned(rng: Rng, files: Files, others: list[Files]) -> Files:
    """Files with one or two of them changed, and all checksums made anew, as one does who means it."""
    changed = dict(files)
    for _ in range(int(rng.integers(1, 3))):
        name = _chosen(rng, sorted(changed))
        if name is None:
            break
        if name.endswith(".json"):
            changed[name] = edited_json(rng, changed[name])
        elif name.endswith(".safetensors") and rng.random() < 0.95:
            changed[name] = edited_arrays(rng, changed[name])
        elif name.endswith(".toml"):
            changed[name] = edited_text(rng, changed[name])
        else:
            changed[name] = of_another(rng, changed[name], name, others)
    return signed(files, changed)


def edited_text(rng: Rng, content: bytes) -> bytes:
    """Lines of `name = value` with another value, in another order, missing or twice."""
    lines = content.decode().splitlines()
    place = int(rng.integers(len(lines)))
    name = lines[place].split("=")[0]
    values = (
        "''",
        "-1",
        "nan",
        "1e400",
        "true",
        "[]",
        "{}",
        "'../x'",
        "'\\u0000'",
        "9" * 40,
        "[" * 5_000,
        "2020-01-01",
    )
    lines[place : place + 1] = [
        [],
        [lines[place]] * 2,
        [f"{name}= {values[rng.integers(len(values))]}"],
        [f"{name}= {values[rng.integers(len(values))]}"],
    ][rng.integers(4)]
    return "\n".join(lines).encode()


def signed(before: Files, after: Files) -> Files:
    """Checksums of files and of the JSON files themselves, put right wherever they stand; the manifest comes last."""
    new = dict(after)
    order = sorted(new, key=lambda name: (name.endswith(".json"), Path(name).name == "manifest.json", -len(name)))
    for name in order:
        if name.endswith(".json"):
            new[name] = _self_signed(new[name])
        if name not in before or new[name] == before[name]:
            continue
        old, fresh = _checksum(before[name]), _checksum(new[name])
        for other in new:
            if other.endswith(".json") and other != name:
                new[other] = new[other].replace(old, fresh)
    return new


def _self_signed(content: bytes) -> bytes:
    try:
        whole = json.loads(content)
        if not isinstance(whole, dict) or "sha256" not in whole:
            return content
        own = {name: value for name, value in whole.items() if name != "sha256"}
        return json.dumps(own | {"sha256": digest(own)}, indent=2, sort_keys=True).encode()
    except (ValueError, RecursionError, TypeError):
        return content


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def remove(folder: Path) -> None:
    """Remove a folder without following the links in it."""
    for root, folders, names in os.walk(folder, topdown=False):
        for name in names:
            os.unlink(os.path.join(root, name))
        for name in folders:
            path = os.path.join(root, name)
            os.unlink(path) if os.path.islink(path) else os.rmdir(path)
    os.rmdir(folder)
