"""Covariance roots and the families over them: every answer against the dense matrix."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo import random
from credo.covariance import Blocks, Diagonal, Joined, Kronecker, LowRank, Root, Shrunk
from credo.covariance.layers import Layer
from credo.covariance.layout import Layout
from credo.inference.variational.families import BlockFamily, Family, FullRank, LowRankFamily, MeanField, as_family
from tests.covariance.dense import dense
from tests.statistical.moments import assert_covariance

pytestmark = pytest.mark.quick

SHAPES = {"hidden.kernel": (2, 3), "hidden.bias": (3,), "noise": ()}
TEMPLATE = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in SHAPES.items()}
NUM = 10
# How many numbers stand behind each root: the appendix of the paper, by hand for n = 10.
FAMILIES = {
    "diagonal": (MeanField(), 10),
    "low rank": (LowRankFamily(4), 10 + 40 - 6),
    "low rank n": (LowRankFamily(25), 10 + 100 - 45),
    "by layer": (BlockFamily(), 45 + 1),
    "blocks of 4": (BlockFamily(4), 10 + 10 + 3),
    "one block": (BlockFamily(10), 55),
    "full": (FullRank(), 55),
}


def some_root(family: Family):
    """A root away from its start, well conditioned."""
    phi = family.init(TEMPLATE, 0.5)
    rng = np.random.default_rng(1)
    moved = jax.tree.map(lambda leaf: leaf + jnp.asarray(0.2 * rng.normal(size=leaf.shape), jnp.float32), phi)
    return family.root(moved, TEMPLATE)


def flat(theta: dict) -> np.ndarray:
    return np.concatenate([np.ravel(theta[name]) for name in TEMPLATE])


@pytest.fixture(params=FAMILIES, scope="module")
def case(request):
    return FAMILIES[request.param]


def test_numbers_behind_a_root(case):
    family, expected = case
    assert family.num_parameters(TEMPLATE) == expected


def test_starts_as_a_multiple_of_the_identity(case):
    family, _ = case
    covariance = dense(family.root(family.init(TEMPLATE, 0.3), TEMPLATE), TEMPLATE)
    # The columns of a low-rank root start small, not at zero.
    np.testing.assert_allclose(covariance, 0.09 * np.eye(NUM), atol=0.01)


def test_answers_are_those_of_the_dense_matrix(case):
    root = some_root(case[0])
    covariance = dense(root, TEMPLATE).astype(np.float64)
    np.testing.assert_allclose(flat(root.variance()), np.diag(covariance), rtol=1e-5)
    half_log_det = 0.5 * np.linalg.slogdet(covariance)[1]
    assert float(root.half_log_det()) == pytest.approx(half_log_det, rel=1e-4)
    assert float(root.entropy()) == pytest.approx(half_log_det + NUM / 2 * math.log(2 * math.pi * math.e), rel=1e-4)
    offset = {name: jnp.asarray(np.random.default_rng(2).normal(size=shape)) for name, shape in SHAPES.items()}
    length = flat(offset) @ np.linalg.solve(covariance, flat(offset))
    assert float(root.squared_length(offset)) == pytest.approx(length, rel=1e-3)
    expected = -0.5 * length - half_log_det - NUM / 2 * math.log(2 * math.pi)
    assert float(root.log_density(offset)) == pytest.approx(expected, rel=1e-3)


def test_draws_have_the_covariance(case, seed):
    root = some_root(case[0])
    keys = jax.random.split(random.key(seed), 20_000)
    draws = jax.jit(jax.vmap(root.draw))(keys)
    table = np.concatenate([np.asarray(draws[name]).reshape(len(keys), -1) for name in TEMPLATE], axis=1)
    assert_covariance(table, dense(root, TEMPLATE))


def test_storage_round_trip(case):
    root = some_root(case[0])
    again = Root.from_arrays(json.loads(json.dumps(root.config())), root.to_arrays())
    assert type(again) is type(root)
    np.testing.assert_array_equal(dense(again, TEMPLATE), dense(root, TEMPLATE))


LAYER = Layer("w", (2, 3), (0, 1), 2, True, "b")
OF_LAYER = {"precision": (3,), "input_basis": (3, 3), "input_values": (3,), "output_basis": (3, 3)}
KRONECKER = Kronecker(
    **{part: {"w": np.ones(shape, np.float32)} for part, shape in OF_LAYER.items()},
    output_values={"w": np.ones(3, np.float32)},
    layers=(LAYER,),
)
KRONECKER_CONFIG = {
    "kind": "Kronecker",
    "layers": [
        {"kernel": "w", "shape": [2, 3], "axes": [0, 1], "num_in": 2, "meets_once": True, "bias": "b"},
    ],
}
KRONECKER_ARRAYS = ["precision/w", "input_basis/w", "input_values/w", "output_basis/w", "output_values/w"]
SCALE = {"v": np.full(2, 0.5, np.float32)}
BLOCKS = Blocks({"all": np.eye(2, dtype=np.float32)[None]}, Layout((("all", (("v", (2,)),)),)))
BLOCKS_CONFIG = {"kind": "Blocks", "layout": [["all", [["v", [2]]]]]}
# What a saved posterior holds of its root, so that one saved by any earlier version still loads.
STORED = {
    "diagonal": (Diagonal(SCALE), {"kind": "Diagonal"}, ["scale/v"]),
    "low rank": (LowRank(SCALE, {"v": np.ones((2, 1))}), {"kind": "LowRank"}, ["scale/v", "factor/v"]),
    "shrunk": (
        Shrunk.of(SCALE, {"v": np.ones((2, 1))}),
        {"kind": "Shrunk"},
        ["scale/v", "factor/v", "shrink/columns"],
    ),
    "blocks": (BLOCKS, BLOCKS_CONFIG, ["roots/all"]),
    "kronecker": (KRONECKER, KRONECKER_CONFIG, KRONECKER_ARRAYS),
    "joined": (
        Joined((KRONECKER, BLOCKS)),
        {"kind": "Joined", "parts": [KRONECKER_CONFIG, BLOCKS_CONFIG]},
        [*(f"0/{name}" for name in KRONECKER_ARRAYS), "1/roots/all"],
    ),
}


@pytest.mark.parametrize("kind", STORED)
def test_the_stored_form_stays(kind):
    root, config, names = STORED[kind]
    arrays = root.to_arrays()
    assert json.loads(json.dumps(root.config())) == config
    assert list(arrays) == names
    again = Root.from_arrays(config, arrays)
    assert jax.tree.structure(again) == jax.tree.structure(root)
    assert all(np.array_equal(*pair) for pair in zip(jax.tree.leaves(again), jax.tree.leaves(root), strict=True))


@pytest.mark.parametrize("kind", STORED)
def test_a_root_knows_what_it_covers(kind):
    root = STORED[kind][0]
    assert root.shapes() == {name: leaf.shape for name, leaf in root.variance().items()}
    assert root.num_entries == sum(leaf.size for leaf in root.variance().values())


def test_every_kind_of_root_is_stored_somewhere():
    assert {type(root) for root, _, _ in STORED.values()} == set(Root.__subclasses__())


@pytest.mark.parametrize("family", [MeanField(), BlockFamily()])
def test_a_part_that_is_independent_has_a_root_of_its_own(family):
    root, names = some_root(family), ["hidden.kernel", "hidden.bias"]
    part = root.restricted(names)
    assert set(part.names) == set(names)
    np.testing.assert_array_equal(dense(part, names), dense(root, names))


@pytest.mark.parametrize("family", [LowRankFamily(4), FullRank(), BlockFamily()])
def test_a_part_that_is_not_independent_has_none(family):
    with pytest.raises(ValueError, match="alone"):
        some_root(family).restricted(["hidden.kernel"])


def test_the_columns_are_lower_triangular():
    root = some_root(LowRankFamily(4))
    columns = np.concatenate([np.asarray(root.factor[name]).reshape(-1, 4) for name in TEMPLATE])
    np.testing.assert_array_equal(columns, np.tril(columns))


def test_blocks_know_nothing_of_each_other():
    covariance = dense(some_root(BlockFamily(4)), TEMPLATE)
    block = np.arange(NUM) // 4
    assert np.all(covariance[block[:, None] != block] == 0)
    assert np.all(covariance[block[:, None] == block] != 0)


def test_families_by_name():
    assert as_family("low_rank") == LowRankFamily()
    assert as_family(FullRank()) == FullRank()
    with pytest.raises(ValueError, match="did you mean"):
        as_family("diagnal")
    with pytest.raises(ValueError, match="rank"):
        LowRankFamily(0)
    with pytest.raises(ValueError, match="width"):
        BlockFamily(0)
