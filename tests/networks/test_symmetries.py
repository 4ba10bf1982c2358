"""Symmetries: those that are there are found, others are not, and what is declared holds in numbers."""

import warnings
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from credo.networks import CNN, MLP, Group, ResNet, functional, symmetries, symmetries_of
from credo.networks.symmetries import measured
from credo.networks.units import Member

RNG = np.random.default_rng(1)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def sizes(found):
    return [group.size for group in found.groups]


def assert_holds(net, x):
    """What is declared holds at weights of several draws that nothing was measured at, in each row."""
    network, x = functional(net, x), jnp.asarray(x)
    apply = jax.jit(jax.vmap(network.apply, (0, None)))
    theta = {path: 0.5 * normal(3, *np.shape(value)) + value for path, value in network.params.items()}
    before = apply(theta, x)

    def assert_same(changed):
        np.testing.assert_allclose(apply(changed, x), before, rtol=2e-3, atol=2e-4 * np.max(np.abs(before)))

    found = symmetries(net, x)
    for group in found.groups:
        order = np.stack([RNG.permutation(group.size) for _ in range(3)])
        assert_same(group.permuted(theta, order))
        if group.rescalable:
            assert_same(group.scaled(theta, RNG.uniform(0.3, 3, (3, group.size))))
        if group.signed:
            assert_same(group.scaled(theta, RNG.choice([-1, 1], (3, group.size))))
    return found


# --- the zoo


@pytest.mark.parametrize(
    ("activation", "rescalable", "signed"),
    [
        ("tanh", False, True),
        ("sin", False, True),
        ("relu", True, False),
        ("leaky_relu", True, False),
        ("identity", True, True),
        ("gelu", False, False),
        ("sigmoid", False, False),
    ],
)
def test_layers_of_a_perceptron(activation, rescalable, signed):
    found = assert_holds(MLP([20, 30], 2, inputs=3, activation=activation), normal(5, 3))
    assert sizes(found) == [20, 30]
    assert {(group.rescalable, group.signed) for group in found.groups} == {(rescalable, signed)}
    assert [str(member) for member in found.groups[0].members] == [
        "hidden.0.kernel[1] out",
        "hidden.0.bias[0] out",
        "hidden.1.kernel[0] in",
    ]


def test_channels_are_followed_through_a_flattened_image():
    found = assert_holds(CNN(3, channels=(4, 6), kernel_size=3, features=(7,), inputs=(14, 14)), normal(2, 14, 14))
    assert sizes(found) == [4, 6, 7]
    assert all(group.rescalable for group in found.groups)
    # 14 → 12 → 6 → 4 → 2: of each of the 6 channels, 2 × 2 numbers reach the dense layer.
    assert found.groups[1].members[-1] == Member("hidden.0.kernel", 0, 2, "in", outer=4)


def test_a_residual_stream_is_one_group_per_stage():
    net = ResNet(2, depth=14, width=4, inputs=(8, 8, 1))
    found = symmetries(net)
    # Each stage has a stream, and inside each of its two blocks the channels between the convolutions.
    assert sorted(sizes(found)) == [4] * 3 + [8] * 3 + [16] * 3
    streams = [group for group in found.groups if any("norm2" in path for path in group.paths)]
    assert sizes(replace(found, groups=streams)) == [4, 8, 16]
    assert {"stem.kernel", "blocks.0.conv2.kernel", "blocks.1.conv2.kernel", "blocks.2.projection.kernel"} <= set(
        streams[0].paths
    )
    # Behind a normalisation its scale, its bias and the threshold go together, and the kernel before it does not.
    roles = {member.path: member.role for member in found.groups[0].members}
    assert found.groups[0].rescalable
    assert (roles["stem.kernel"], roles["stem_norm.scale"], roles["stem_activation.threshold"]) == (
        "held",
        "out",
        "out",
    )


def test_residual_networks_in_numbers():
    assert_holds(ResNet(2, depth=8, width=4, inputs=(8, 8, 1)), normal(2, 8, 8, 1))


def test_channels_normalised_in_groups():
    """Eight groups of two channels: the groups may be reordered, and the two channels in all of them at once."""
    found = symmetries(ResNet(2, depth=8, width=16, normalisation="group", inputs=(8, 8, 1)))
    assert sizes(found)[:2] == [8, 2]


def test_a_linear_model_has_none():
    found = symmetries(MLP([], 2, inputs=3))
    assert found.groups == ()
    assert str(found) == "no symmetries: no units that could be reordered"


def test_the_table():
    lines = str(symmetries(MLP([20, 3], 1, inputs=2))).splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["units", "rescalable", "signed"],
        ["20", "no", "yes"],
        ["3", "no", "yes"],
    ]


# --- networks from elsewhere


def test_linen_with_layer_normalisation():
    net = linen.Sequential([linen.Dense(6), linen.LayerNorm(), linen.relu, linen.Dense(2)])
    (group,) = assert_holds(net, normal(5, 3)).groups
    assert (group.size, group.rescalable) == (6, True)
    assert {m.path: m.role for m in group.members}["layers_0.kernel"] == "held"


def test_equinox_puts_channels_first():
    keys = jax.random.split(jax.random.key(0), 2)
    layers = [
        eqx.nn.Conv2d(1, 4, 3, key=keys[0]),
        eqx.nn.Lambda(jnp.tanh),
        eqx.nn.AvgPool2d(2, 2),
        eqx.nn.Lambda(jnp.ravel),
        eqx.nn.Linear(16, 1, key=keys[1]),
    ]
    (group,) = assert_holds(eqx.nn.Sequential(layers), normal(3, 1, 6, 6)).groups
    assert (group.size, group.signed) == (4, True)
    assert [(m.axis, m.inner) for m in group.members if m.role == "in"] == [(1, 4)]


def test_a_function_and_its_parameters():
    def apply(params, x):
        hidden = jnp.einsum("ni,hi->nh", x, params["w"])
        for _ in range(2):
            hidden = hidden + jnp.tanh(hidden @ params["square"])
        return jax.checkpoint(lambda h: h @ params["v"])(hidden)

    params = {"w": normal(4, 3), "square": normal(4, 4), "v": normal(4, 2)}
    (group,) = assert_holds((apply, params), normal(5, 3)).groups
    assert (group.size, group.signed, group.rescalable) == (4, True, False)
    assert [(m.path, m.axis, m.role) for m in group.members] == [
        ("w", 0, "out"),
        ("square", 0, "in"),
        ("square", 1, "out"),
        ("v", 0, "in"),
    ]


def test_a_table_of_words():
    def apply(params, tokens):
        return jnp.tanh(params["table"][tokens].sum(axis=1)) @ params["v"]

    params = {"table": normal(10, 4), "v": normal(4, 1)}
    (group,) = symmetries((apply, params), RNG.integers(0, 10, (6, 3))).groups
    assert (group.size, group.signed) == (4, True)


def test_depthwise_convolutions_keep_their_channels():
    rngs = nnx.Rngs(0)
    first, second = nnx.Conv(2, 4, (3, 3), rngs=rngs), nnx.Conv(4, 4, (3, 3), feature_group_count=4, rngs=rngs)
    net = nnx.Sequential(first, nnx.relu, second, lambda x: x.mean((1, 2)), nnx.Linear(4, 1, rngs=rngs))
    (group,) = assert_holds(net, normal(2, 6, 6, 2)).groups
    assert (group.size, len(group.members)) == (4, 5)


# --- what tells units apart


def test_batch_statistics_tell_units_apart():
    class Net(nnx.Module):
        def __init__(self, mean):
            rngs = nnx.Rngs(0)
            self.first, self.norm, self.last = (
                nnx.Linear(3, 5, rngs=rngs),
                nnx.BatchNorm(5, rngs=rngs),
                nnx.Linear(5, 1, rngs=rngs),
            )
            self.norm.mean = nnx.BatchStat(jnp.asarray(mean))

        def __call__(self, x):
            return self.last(self.norm(self.first(x)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the statistics are initial ones
        assert sizes(symmetries(Net(np.zeros(5)), normal(4, 3))) == [5]
    assert sizes(symmetries(Net(np.arange(5.0)), normal(4, 3))) == []


@pytest.mark.parametrize(
    "tell_apart",
    [
        lambda h: h * jnp.arange(4.0),
        lambda h: jnp.cumsum(h, axis=-1),
        lambda h: h[..., ::-1] + h,
        lambda h: jnp.where(jnp.arange(4) < 2, h, 0.0),
        lambda h: jnp.concatenate([h[..., :1], h[..., 1:]], axis=-1),
        lambda h: jnp.pad(h, ((0, 0), (0, 1)))[:, 1:],
        lambda h: jax.lax.scan(lambda c, one: (c + one, c), h[0], h)[1],
        lambda h: (h.reshape(-1, 16) * jnp.arange(16.0)).reshape(-1, 4),
    ],
)
def test_units_that_are_told_apart(tell_apart):
    def apply(params, x):
        return tell_apart(jnp.tanh(x @ params["w"])) @ params["v"]

    assert symmetries((apply, {"w": normal(3, 4), "v": normal(4, 1)}), normal(6, 3)).groups == ()


def test_weights_that_are_used_twice():
    """A kernel and its transpose: what scales one side scales the other too, but two signs make one."""

    def apply(params, x):
        return jnp.tanh(x @ params["w"]) @ params["w"].T

    (group,) = symmetries((apply, {"w": normal(3, 5)}), normal(6, 3)).groups
    assert (group.size, group.signed, group.rescalable) == (5, True, False)
    (group,) = symmetries((lambda p, x: jax.nn.relu(x @ p["w"]) @ p["w"].T, {"w": normal(3, 5)}), normal(6, 3)).groups
    assert (group.size, group.signed, group.rescalable) == (5, False, False)


def test_a_dead_layer_is_not_taken_for_one_that_can_be_turned_round():
    """Where no unit of the second layer is ever on, nothing that the first does matters: nothing can be declared."""

    def apply(params, x):
        return jax.nn.relu(jax.nn.relu(x @ params["w"]) @ params["dead"]) @ params["v"]

    params = {"w": normal(3, 5), "dead": -np.ones((5, 4), np.float32), "v": normal(4, 1)}
    assert symmetries((apply, params), normal(6, 3)).groups == ()


def test_arrays_that_are_not_used_have_no_units():
    x = normal(3)
    assert symmetries_of(lambda p: p["used"] * x, {"used": normal(3), "unused": normal(4)}).groups == ()


# --- negative controls


def test_broken_candidates_are_found_out():
    """Without its bias, or with its roles exchanged, a group has none of the symmetries that it has."""
    network, x = functional(MLP([6], 1, inputs=2, activation="relu")), normal(8, 2)
    points = [{path: normal(*value.shape) for path, value in network.params.items()} for _ in range(3)]

    def outputs(theta):
        return np.ravel(network.apply(theta, x))

    (group,) = symmetries(network).groups
    assert measured(outputs, points, group) == group
    assert measured(outputs, points, replace(group, members=group.members[:1] + group.members[2:])) is None
    assert measured(outputs, points, replace(group, members=group.members[:-1])) is None
    exchanged = tuple(replace(m, role="in" if m.role == "out" and m.ndim == 1 else m.role) for m in group.members)
    assert not measured(outputs, points, replace(group, members=exchanged)).rescalable


# --- bad input


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0, 1, 3], [[0, 1, 2, 3]], 0])
def test_orders_that_are_none(order):
    group = Group(3, (Member("w", 0, 1, "out"),))
    with pytest.raises(ValueError, match=r"order must hold each of 0 … 2 once"):
        group.permuted({"w": np.ones(3)}, order)


@pytest.mark.parametrize("factors", [[1, 2], [1, 0, 1], [1, np.nan, 1], 2.0])
def test_factors_that_are_none(factors):
    group = Group(3, (Member("w", 0, 1, "out"),))
    with pytest.raises(ValueError, match="factors must be 3 numbers other than 0"):
        group.scaled({"w": np.ones(3)}, factors)


def test_theta_of_another_network():
    with pytest.raises(ValueError, match=r"no array 'w'.*but v"):
        Group(3, (Member("w", 0, 1, "out"),)).permuted({"v": np.ones(3)}, [0, 1, 2])
    with pytest.raises(ValueError, match=r"'w' has shape \(4,\).*3 units"):
        Group(3, (Member("w", 0, 1, "out"),)).permuted({"w": np.ones(4)}, [0, 1, 2])


def test_inputs_of_unknown_shape():
    with pytest.raises(ValueError, match="x: Sequential does not tell the shape"):
        symmetries(nnx.Sequential(nnx.Linear(2, 1, rngs=nnx.Rngs(0))))
    with pytest.raises(ValueError, match="values matter"):
        symmetries((lambda p, x: p["w"][x], {"w": normal(4)}), jax.ShapeDtypeStruct((3,), jnp.int32))


def test_functions_that_cannot_be_measured():
    with pytest.raises(ValueError, match="params is empty"):
        symmetries_of(lambda p: jnp.zeros(3), {})
    with pytest.raises(ValueError, match="not finite"):
        symmetries_of(lambda p: jnp.log(p["w"]), {"w": -np.ones(3)})
