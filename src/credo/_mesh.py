"""Which devices compute what: chains over one axis of a mesh, rows of the data over the other.

A mesh has axes `chains` and `data`. Each of its rows is a *lane*: the devices that carry one chain at a time, each of
which holds a share of the rows of the data. What a chain computes is one compiled program for all devices of its lane:
XLA's partitioner divides it by the shares, and puts in what they must add up to: of a gradient, one all-reduce a step.

A program learns from JAX's own context that it is divided (`lane.at_work()`), and so do the caches of what is compiled.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from credo.typing import Array, Batch, Tree

CHAINS, DATA = "chains", "data"
# The axis of a lane: a name of its own, so that a mesh that a user has set is not taken for one.
SHARES = "credo-shares"


def as_mesh(mesh: Any, num_chains: int, of: str = "the method") -> Mesh | None:
    """A mesh with both axes; None for the one device that there is anyway.

    Arguments:
        mesh: a mesh with axes "chains" and "data", or one of them; "auto" for all devices of all processes: as many
            lanes as divide both devices and chains, and the devices that are left over to the shares of the rows.
        num_chains: of the method named `of`.

    >>> as_mesh(None, 4) is None
    True
    """
    if mesh is None:
        return None
    if isinstance(mesh, str) and mesh == "auto":
        return divided(jax.devices(), num_chains) if jax.device_count() > 1 else None
    if not isinstance(mesh, Mesh) or not mesh.axis_names or set(mesh.axis_names) - {CHAINS, DATA}:
        axes = f"with axes {', '.join(map(str, mesh.axis_names))}" if isinstance(mesh, Mesh) else ""
        raise ValueError(
            f"mesh must be 'auto', or a jax.sharding.Mesh with axes 'chains' and 'data', or one of them; got "
            f"{type(mesh).__name__} {axes}".rstrip()
        )
    num_lanes = mesh.shape.get(CHAINS, 1)
    if num_chains % num_lanes:
        possible = [str(number) for number in range(1, num_chains + 1) if num_chains % number == 0]
        raise ValueError(
            f"mesh has {num_lanes} devices along 'chains', and {of} has {num_chains} chains (or members), which they "
            f"do not divide; take {' or '.join(possible)} along 'chains', or {num_lanes} chains, or a multiple of that"
        )
    without = set(range(jax.process_count())) - {device.process_index for device in mesh.devices.flat}
    if without:
        raise ValueError(f"mesh has no device of process {min(without)}; every process must have a part in it")
    devices = mesh.devices.T if mesh.axis_names == (DATA, CHAINS) else mesh.devices
    return Mesh(devices.reshape(num_lanes, -1), (CHAINS, DATA))


def divided(devices: Sequence[Any], num_chains: int) -> Mesh:
    """Devices as a mesh for so many chains: chains first."""
    num_lanes = math.gcd(num_chains, len(devices))
    return Mesh(np.array(devices).reshape(num_lanes, -1), (CHAINS, DATA))


@dataclass(frozen=True)
class Lane:
    """The devices that carry one chain at a time; without any, that which JAX takes by itself."""

    devices: tuple[Any, ...] = ()

    @property
    def mesh(self) -> Mesh | None:
        """The devices as a mesh of one axis, where there are several."""
        return Mesh(np.array(self.devices), (SHARES,)) if len(self.devices) > 1 else None

    @property
    def is_mine(self) -> bool:
        """Whether this process has some of the devices."""
        return not self.devices or any(device.process_index == jax.process_index() for device in self.devices)

    @property
    def leads(self) -> bool:
        """Whether it is this process that tells others of the chains."""
        return not self.devices or self.devices[0].process_index == jax.process_index()

    @property
    def is_spread(self) -> bool:
        """Whether several processes compute together, and must do the same in the same order."""
        return len({device.process_index for device in self.devices}) > 1

    def agreed(self, number: int) -> int:
        """The least of the numbers that the processes of the lane propose."""
        mesh = self.mesh
        if mesh is None or not self.is_spread:
            return number
        by_device = NamedSharding(mesh, PartitionSpec(SHARES))
        proposed = jax.make_array_from_callback((len(self.devices),), by_device, lambda _: np.full(1, number, np.int32))
        with self.at_work():
            return int(_least(proposed))

    def at_work(self) -> AbstractContextManager[Any]:
        """While it lasts, compiled code is divided over the devices."""
        return nullcontext() if self.mesh is None else jax.set_mesh(self.mesh)

    def whole(self, tree: Tree) -> Tree:
        """A tree on each of the devices."""
        if not self.devices:
            return tree
        mesh = self.mesh
        if mesh is None:
            return jax.device_put(tree, self.devices[0])
        return jax.tree.map(partial(_put, NamedSharding(mesh, PartitionSpec())), tree)

    def shared(self, data: Batch) -> Batch:
        """Data of which each device has a share of the rows: evenly, filled up with rows that are never counted."""
        mesh = self.mesh
        if mesh is None:
            return self.whole(data)
        filled = _filled_up(data, len(self.devices))
        by_rows = NamedSharding(mesh, PartitionSpec(SHARES))
        rows: dict[str, Any] = {name: _put(by_rows, value) for name, value in _per_row(filled).items()}
        nothing: dict[str, Any] = dict.fromkeys(rows)
        return self.whole(filled._replace(**nothing))._replace(**rows)


def lanes_of(mesh: Mesh | None, num_chains: int) -> list[Lane]:
    """The lanes of a mesh, divided anew where so many chains do not go into them; without one, of this process."""
    if mesh is None:
        local = jax.local_devices()
        return [Lane((device,)) for device in local] if len(local) > 1 else [Lane()]
    if num_chains % mesh.shape[CHAINS]:
        mesh = divided(list(mesh.devices.ravel()), num_chains)
    return [Lane(tuple(devices)) for devices in mesh.devices]


def num_shares(data: Batch) -> int:
    """Into how many even shares the rows of a batch are divided, in the code that is being compiled."""
    num = jax.sharding.get_abstract_mesh().shape.get(SHARES, 1)
    # Of padded rows the first ones count, which would have to be told share by share.
    return num if data.x.shape[0] % num == 0 and data.num is None else 1


def in_shares(data: Batch) -> Batch:
    """A batch whose rows are divided over the devices, in compiled code; of one device, the batch as it is."""
    rows: dict[str, Any] = {name: _constrained(value, SHARES) for name, value in _per_row(data).items()}
    return data._replace(**rows)


def everywhere(tree: Tree) -> Tree:
    """A tree that each device has as a whole, in compiled code."""
    return jax.tree.map(_constrained, tree)


def slice_of_each(array: Array, first: Array | int, num: int, shares: int) -> Array:
    """`num` rows of each of the shares, from number `first` on: of one, those rows of the array."""
    if shares == 1:
        return jax.lax.dynamic_slice_in_dim(array, first, num)
    apart = array.reshape(shares, -1, *array.shape[1:])
    chosen = jax.lax.dynamic_slice_in_dim(_constrained(apart, SHARES), first, num, axis=1)
    return _constrained(chosen.reshape(shares * num, *array.shape[1:]), SHARES)


@jax.jit
def _least(numbers: Array) -> Array:
    return everywhere(jnp.min(numbers))


def of_shares(function: Callable[..., Tree]) -> Callable[..., Tree]:
    """A compiled function of data that may be `shared`: divided as they are, with its result on the host."""

    @wraps(function)
    def divided_as_data(*args: Any) -> Tree:
        mesh = next((found for found in map(_mesh_of, args) if found is not None), None)
        if mesh is None:
            return function(*args)
        with jax.set_mesh(mesh):
            return _on_host(function(*args))

    return divided_as_data


def _mesh_of(data: Any) -> Mesh | None:
    """The mesh of a batch that is shared; None for anything else, and in code that is being compiled."""
    x = data.x if isinstance(data, Batch) else None
    sharding = None if x is None or isinstance(x, jax.core.Tracer) else getattr(x, "sharding", None)
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
    return mesh if isinstance(mesh, Mesh) and SHARES in mesh.axis_names else None


def _put(sharding: NamedSharding, leaf: Any) -> Array:
    """A leaf on the devices of a sharding, of which other processes may have some: each puts its own."""
    if sharding.is_fully_addressable:
        return jax.device_put(leaf, sharding)
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_put(sharding, jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
    whole = np.asarray(leaf, jax.dtypes.canonicalize_dtype(np.result_type(leaf)))
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def _on_host(tree: Tree) -> Tree:
    """A tree on the host, also what the partitioner has left on devices of other processes."""

    def whole(leaf: Any) -> Array:
        if leaf.is_fully_addressable or leaf.is_fully_replicated:
            return leaf
        return jax.jit(everywhere)(leaf)

    return jax.device_get(jax.tree.map(whole, tree))


def _constrained(leaf: Array, *axes: str) -> Array:
    if SHARES not in jax.sharding.get_abstract_mesh().axis_names:
        return leaf
    return jax.lax.with_sharding_constraint(leaf, PartitionSpec(*axes))


def _per_row(data: Batch) -> dict[str, Any]:
    """What a batch has for each of its rows."""
    return {name: value for name in ("x", "y", "rows", "counts") if (value := getattr(data, name)) is not None}


def _filled_up(data: Batch, num_shares: int) -> Batch:
    """Data with a multiple of so many rows, of which those that are more were seen zero times."""
    num_rows = data.x.shape[0]
    more = -num_rows % num_shares
    if not more and data.num is None:
        return data
    num = num_rows if data.num is None else data.num
    counts = np.ones(num_rows) if data.counts is None else np.asarray(data.counts)
    counts = np.append(np.where(np.arange(num_rows) < num, counts, 0), np.zeros(more))
    numbers = np.append(np.arange(num_rows), np.arange(more) % num_rows)
    filled: dict[str, Any] = {name: np.asarray(value)[numbers] for name, value in _per_row(data).items()}
    filled["counts"] = counts.astype(filled["x"].dtype)
    return data._replace(**filled, num=None, mean_count=float(counts.sum() / len(counts)))
