"""A mesh: the draws of one device, however chains and rows are divided over several."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import credo
from credo import _mesh
from credo._mesh import Lane
from credo.inference.registry import METHODS
from credo.typing import Batch

NUM_DEVICES = 8
# Of a sampler of each kind: full data, minibatches, and what is summed over rows in the end.
OF_EACH_KIND = ("laplace", "map", "nuts", "sgld")
# Sums in another order differ in the sixteenth digit; a chaotic chain of a few dozen steps keeps eight of them.
TOLERANCE = 1e-6


def found_for(names) -> dict[str, dict]:
    command = [sys.executable, "-m", "tests.on_a_mesh", str(NUM_DEVICES), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


def require_same(found, names) -> None:
    assert found.keys() == set(names)
    assert [name for name, one in found.items() if not one["lanes"]] == []
    assert [name for name, one in found.items() if not one["predictions"]] == []
    assert {name: one["shared"] for name, one in found.items() if not one["shared"] < TOLERANCE} == {}


def test_eight_devices_give_the_draws_of_one():
    require_same(found_for(OF_EACH_KIND), OF_EACH_KIND)


@pytest.mark.full
def test_eight_devices_give_the_draws_of_one_for_every_other_method():
    others = sorted(METHODS.keys() - set(OF_EACH_KIND))
    require_same(found_for(others), others)


# --- how devices are divided


class Device:
    """As much of one as a mesh looks at."""

    process_index = 0

    def __init__(self, number: int) -> None:
        self.id = number


@pytest.mark.parametrize(("num_chains", "shape"), [(1, (1, 8)), (2, (2, 4)), (3, (1, 8)), (4, (4, 2)), (12, (4, 2))])
def test_chains_come_first(num_chains, shape):
    devices = [Device(number) for number in range(8)]
    assert _mesh.divided(devices, num_chains).devices.shape == shape


def test_one_device_is_no_mesh():
    assert _mesh.as_mesh("auto", 4) is None
    assert _mesh.lanes_of(None, 4) == [Lane()]


def test_a_mesh_of_one_device_changes_no_bit():
    data, walk = credo.datasets.gap(), credo.Metropolis(num_samples=5, num_warmup=5, num_chains=2)
    model = credo.models.regression(credo.networks.MLP([4], out=1), noise=0.3)
    one, other = (credo.fit(model, data, walk, mesh=mesh) for mesh in (None, Mesh(jax.devices(), ("data",))))
    for name, leaf in one.theta.items():
        np.testing.assert_array_equal(leaf, other.theta[name])


def test_a_mesh_that_does_not_divide_the_chains_is_refused_with_numbers_that_would():
    mesh = Mesh(np.array([Device(number) for number in range(3)]), ("chains",))
    with pytest.raises(ValueError, match=r"3 devices along 'chains', and NUTS has 4 chains.*take 1 or 2 or 4 along"):
        _mesh.as_mesh(mesh, 4, "NUTS")


@pytest.mark.parametrize("mesh", ["all", 4, Mesh(np.array([Device(0)]), ("batch",))])
def test_what_is_no_mesh_is_refused(mesh):
    with pytest.raises(ValueError, match=r"mesh must be 'auto', or a jax.sharding.Mesh with axes 'chains' and 'data'"):
        _mesh.as_mesh(mesh, 4)


# --- rows that fill up the shares


def batch(num: int, **more) -> Batch:
    return Batch(np.arange(num, dtype=np.float32)[:, None], np.ones(num, np.float32), num, **more)


@pytest.mark.parametrize("counts", [None, np.array([1.0, 3.0, 2.0, 1.0, 1.0])])
def test_rows_that_fill_up_the_shares_are_never_counted(counts):
    total = 5 if counts is None else counts.sum()
    data = batch(5)._replace(total=total, counts=counts, mean_count=None if counts is None else total / 5)
    filled = _mesh._filled_up(data, 4)
    assert filled.x.shape == (8, 1)
    terms = filled.x[:, 0]
    assert filled.sum(terms) == data.sum(data.x[:, 0])
    assert filled.scale == pytest.approx(1)
    assert filled.num_seen == total


def test_growing_data_are_filled_up_by_what_counts():
    filled = _mesh._filled_up(batch(6)._replace(total=4, num=4), 4)
    assert filled.num is None
    assert filled.counts.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_rows_that_are_even_stay_as_they_are():
    data = batch(8)
    assert _mesh._filled_up(data, 4) is data
