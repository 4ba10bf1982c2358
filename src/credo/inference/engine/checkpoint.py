"""Checkpoints: what a run of the engine has done so far, in a folder from which it can go on.

Between chunks, for each unit of chains that advance together, the engine saves the current state and the records since
the last time. The state goes into a file of its own, the records into another that is never written again, and one
small file names them all with their checksums: renaming it into place is the moment at which the checkpoint counts. A
process that is killed leaves the last complete checkpoint behind. The key of a step depends only on the seed, the chain
and the step, so a run that goes on from there ends with the same bits.

    0.json                   the unit of chain 0: where it stands, and which files it has
    0-3-state.safetensors    its state
    0-3.safetensors          its records since the last time
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from credo._files import (
    LoadError,
    group_of,
    read_arrays,
    read_json,
    remove_partial,
    require_unaltered,
    write_arrays,
    write_json,
)
from credo._folders import unwritable
from credo._schema import Count, FileName, Positive, Seconds, Sha256, checked
from credo.inference.engine.chain import Chain
from credo.inference.plan import Plan
from credo.typing import Tree

RECORDS = ("draws", "infos", "warmup_infos")
# Seconds between two saves of a unit, and the largest share of the time that may go into saving.
SECONDS_BETWEEN = 5.0
SHARE_OF_TIME = 0.05


@dataclass(eq=False)
class Stage:
    """One run of the engine: a file for each of its units.

    `group_size` is how many chains a unit has: the same when the run goes on, also on a machine with other cores.
    """

    folder: Path
    group_size: int | None = None
    written: dict[int, "Written"] = field(default_factory=dict)
    seconds_before: float = 0.0
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Since the first beginning of the run, without the time in which it stood still."""
        return self.seconds_before + time.perf_counter() - self.began

    def load(self) -> dict[int, "Written"]:
        """What the folder holds of each unit, by the number of its first chain."""
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_partial(self.folder)
        units: dict[int, Unit] = {}
        for path in self.folder.glob("*.json"):
            if not path.stem.isdecimal():
                raise LoadError(f"{path} does not belong to a checkpoint; take it away")
            unit = units[int(path.stem)] = checked(path, require_unaltered(path, read_json(path)), Unit)
            for name, _ in (unit.state, *unit.records):
                if not name.startswith(f"{path.stem}-"):
                    raise LoadError(f"{path} is damaged: it is of other chains, and names {name}")
            self.written[int(path.stem)] = Written(path, unit)
        if units:
            self.group_size, *others = {unit.group_size for unit in units.values()}
            if others or any(first % (self.group_size or 1) for first in units):
                raise LoadError(f"{self.folder} is damaged: its units do not go together")
            self.seconds_before = max(unit.seconds for unit in units.values())
        return self.written

    def note(self, chains: Sequence["Chain"], *, at_once: bool = False) -> None:
        """Save a unit if it is time to, or if it has finished; the last good state of one that failed stays."""
        first, *_ = chains
        last = self.written.get(first.index)
        is_due = at_once or first.finished or last is None or time.perf_counter() >= last.next_time
        if is_due and all(chain.failed_at is None for chain in chains):
            self._save(first.index, chains)

    def _save(self, first: int, chains: Sequence["Chain"]) -> None:
        """Save the states of the chains, and their records since the last time."""
        began = time.perf_counter()
        path = self.folder / f"{first}.json"
        last = self.written.get(first) or Written(path)
        if last.unit and last.unit.step == chains[0].step:
            return
        try:
            self.written[first] = last.next(chains, self.group_size, self.seconds)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        now = time.perf_counter()
        self.written[first].next_time = now + max(SECONDS_BETWEEN, (now - began) / SHARE_OF_TIME)


class Unit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a unit stands: the small file that names the others, each with its checksum."""

    number: Count
    step: Count
    num_kept: Count
    finished: bool
    state: tuple[FileName, Sha256]
    records: list[tuple[FileName, Sha256]]
    group_size: Positive | None
    seconds: Seconds


@dataclass(eq=False)
class Written:
    """What is on disk of a unit: None if nothing is yet; and how many pieces of each chain's records it holds."""

    path: Path
    unit: Unit | None = None
    num_pieces: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RECORDS, 0))
    next_time: float = 0.0

    def next(self, chains: Sequence["Chain"], group_size: int | None, seconds: float) -> "Written":
        """Write the state and the newest records, and then the file that names them."""
        number = 0 if self.unit is None else self.unit.number + 1
        state = self.path.with_name(f"{self.path.stem}-{number}-state.safetensors")
        states = {f"{index}/{name}": leaf for index, one in enumerate(chains) for name, leaf in named(one.state)}
        state_checksum = write_arrays(state, states)
        records = {
            f"{index}/{kind}/{name}": leaf
            for index, chain in enumerate(chains)
            for kind in RECORDS
            for name, leaf in _joined(getattr(chain, kind)[self.num_pieces[kind] :])
        }
        files = [] if self.unit is None else list(self.unit.records)
        if records:
            path = self.path.with_name(f"{self.path.stem}-{number}.safetensors")
            files.append((path.name, write_arrays(path, records)))
        first = chains[0]
        unit = Unit(
            number,
            first.step,
            first.num_kept,
            first.finished,
            (state.name, state_checksum),
            files,
            group_size,
            seconds,
        )
        write_json(self.path, msgspec.to_builtins(unit))
        if self.unit is not None:
            self.path.with_name(self.unit.state[0]).unlink(missing_ok=True)
        return Written(self.path, unit, {kind: len(getattr(first, kind)) for kind in RECORDS})

    def restore_states(self, chains: Sequence["Chain"], plan: Plan) -> None:
        """Move chains from step 0 to where the unit stood, which must lie on their way."""
        if self.unit is None:
            return
        if self.unit.step > plan.num_steps or self.unit.num_kept != plan.num_kept(self.unit.step):
            place = f"{self.unit.num_kept} records at step {self.unit.step}"
            raise LoadError(f"{self.path} does not fit the method: no chain of {plan.num_steps} steps has {place}")
        name, checksum = self.unit.state
        arrays = read_arrays(self.path.with_name(name), checksum)
        self._require_chains(arrays, len(chains))
        for index, chain in enumerate(chains):
            chain.state = filled(self.path, chain.state, group_of(arrays, str(index)))
            chain.step, chain.num_kept = self.unit.step, self.unit.num_kept
            chain.finished = self.unit.finished

    def restore_records(self, chains: Sequence["Chain"], draws: Tree, infos: Tree) -> None:
        """Give chains the records they had; `draws` and `infos` have the structure of a chunk's."""
        like = {"draws": draws, "infos": infos, "warmup_infos": infos}
        for name, checksum in [] if self.unit is None else self.unit.records:
            arrays = read_arrays(self.path.with_name(name), checksum)
            self._require_chains(arrays, len(chains))
            for index, chain in enumerate(chains):
                for kind in RECORDS:
                    found = group_of(arrays, f"{index}/{kind}")
                    # A method that keeps no draws has pieces without arrays.
                    if found or not jax.tree.leaves(like[kind]):
                        getattr(chain, kind).append(filled(self.path, like[kind], found, records=True))
        self._require_complete(chains)
        self.num_pieces = {kind: len(getattr(chains[0], kind)) for kind in RECORDS}

    def _require_chains(self, arrays: Mapping[str, np.ndarray], num: int) -> None:
        """Arrays of other chains than those of the unit belong to another grouping."""
        known = {str(index) for index in range(num)}
        if strange := sorted({name.partition("/")[0] for name in arrays} - known):
            raise LoadError(f"{self.path} is damaged: it has no chain {strange[0]!r}")

    def _require_complete(self, chains: Sequence["Chain"]) -> None:
        """As many records as the unit says that were kept, of every chain, and as many infos as draws."""
        for chain in chains:
            for pieces in (chain.infos, chain.draws):
                leaves = [jax.tree.leaves(piece) for piece in pieces]
                num = sum(len(piece[0]) for piece in leaves if piece)
                if num != chain.num_kept and (any(leaves) or pieces is chain.infos):
                    raise LoadError(f"{self.path} is damaged: it has {num} records of {chain.num_kept}")


def named(tree: Tree) -> list[tuple[str, np.ndarray]]:
    """The leaves by their number; those of keys as the numbers behind them."""
    leaves = jax.tree.leaves(tree)
    plain = [jax.random.key_data(leaf) if _is_key(leaf) else leaf for leaf in leaves]
    return [(str(number), np.asarray(jax.device_get(leaf))) for number, leaf in enumerate(plain)]


def _joined(pieces: list[Tree]) -> list[tuple[str, np.ndarray]]:
    if not pieces:
        return []
    return named(jax.tree.map(lambda *parts: np.concatenate(parts), *pieces))


def filled(path: Path, like: Tree, leaves: dict[str, np.ndarray], *, records: bool = False) -> Tree:
    """The tree `like` with other leaves of the same shapes; of records, all as many, but not as many as of `like`."""
    old, structure = jax.tree.flatten(like)
    if leaves.keys() != {str(number) for number in range(len(old))}:
        raise LoadError(f"{path} does not fit the method: it has {len(leaves)} arrays, and the method {len(old)}")
    new = [leaves[str(number)] for number in range(len(old))]
    for own, found in zip(old, new, strict=True):
        plain = jax.eval_shape(jax.random.key_data, own) if _is_key(own) else own
        shape = (*new[0].shape[:1], *plain.shape[1:]) if records else plain.shape
        if (plain.dtype, shape) != (found.dtype, found.shape):
            raise LoadError(
                f"{path} does not fit the method: it has {found.dtype} of shape {found.shape}, and the method "
                f"{plain.dtype} of {shape}"
            )
    return jax.tree.unflatten(
        structure,
        [
            jax.random.wrap_key_data(jnp.asarray(value), impl=jax.random.key_impl(leaf)) if _is_key(leaf) else value
            for leaf, value in zip(old, new, strict=True)
        ],
    )


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
