"""Noise per example: it finds the kernels of any framework, keeps each example's law, and lowers the variance."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen

from credo import models, networks, random
from credo.inference.variational import local_noise
from credo.networks import functional
from credo.typing import Batch
from tests.statistical.moments import assert_mean, sigmas

KINDS = ["local", "flipout"]


def normal(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def spread(theta: dict, scale: float) -> dict:
    return {name: jnp.full(jnp.shape(leaf), scale) for name, leaf in theta.items()}


def draw(mean: dict, scale: dict, key: jax.Array) -> dict:
    """mean + scale ∘ ε: the one draw that all examples share."""
    keys = dict(zip(mean, jax.random.split(key, len(mean)), strict=True))
    return {name: mean[name] + scale[name] * jax.random.normal(keys[name], mean[name].shape) for name in mean}


def noisy(function, mean: dict, scale: dict, key: jax.Array, kind: str):
    theta = draw(mean, scale, jax.random.fold_in(key, 0))
    if kind == "shared":
        return function(theta)
    return local_noise.apply(function, theta, mean, scale, jax.random.fold_in(key, 1), kind=kind)


class Stack(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(2)(linen.relu(linen.Dense(5)(x)))


class Images(eqx.Module):
    conv: eqx.nn.Conv2d
    head: eqx.nn.Linear

    def __call__(self, x):
        return self.head(jax.nn.relu(self.conv(x)).ravel())


def plain(params, x):
    return jnp.einsum("ij,nj->ni", params["v"], jax.jit(lambda w: jnp.tanh(x @ w.T))(params["w"])) + params["b"]


def network(name: str):
    """A network, its input and the names of its kernels."""
    key = jax.random.key(0)
    if name == "nnx":
        return networks.MLP([5, 4], 2, inputs=3), normal(8, 3), {"hidden.0.kernel", "hidden.1.kernel", "head.kernel"}
    if name == "linen":
        return Stack(), normal(8, 3), {"Dense_0.kernel", "Dense_1.kernel"}
    if name == "equinox":
        net = eqx.nn.MLP(3, 2, 5, 2, key=key)
        return net, normal(8, 3), {f"layers.{layer}.weight" for layer in range(3)}
    if name == "equinox images":
        net = Images(eqx.nn.Conv2d(4, 6, 3, groups=2, key=key), eqx.nn.Linear(24, 2, key=key))
        return net, normal(8, 4, 4, 4), {"conv.weight", "head.weight"}
    if name == "cnn":
        net = networks.CNN(2, channels=[3, 4], kernel_size=3, features=[6], inputs=(12, 12))
        return net, normal(8, 12, 12), {"conv.0.kernel", "conv.1.kernel", "hidden.0.kernel", "head.kernel"}
    if name == "linear":
        net = (lambda params, x: x @ params["a"] @ params["b"], {"a": normal(3, 4), "b": normal(4, 2)})
        return net, normal(8, 3), {"a", "b"}
    return (plain, {"w": normal(5, 3), "v": normal(2, 5), "b": normal(2)}), normal(8, 3), {"w", "v"}


NETWORKS = ["nnx", "linen", "equinox", "equinox images", "cnn", "linear", "plain"]


@pytest.mark.parametrize("name", NETWORKS)
def test_it_finds_the_kernels_of_every_framework(name):
    net, x, expected = network(name)
    net = functional(net, x)
    shapes = {name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for name, leaf in net.params.items()}
    assert local_noise.kernels(lambda theta: net.apply(theta, x), shapes) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETWORKS)
def test_without_noise_it_is_the_network_at_the_mean(name, kind):
    net, x, expected = network(name)
    net = functional(net, x)
    mean = {path: jnp.asarray(leaf) for path, leaf in net.params.items()}
    # The draws of the kernels are the mean, and those of the biases are shared.
    theta = {path: leaf if path in expected else leaf + 0.3 for path, leaf in mean.items()}

    @jax.jit
    def value_and_gradients(mean, scale, x):
        def total(mean, scale):
            outputs = local_noise.apply(lambda own: net.apply(own, x), theta, mean, scale, random.key(1), kind=kind)
            return outputs.sum(), outputs

        return jax.value_and_grad(total, (0, 1), has_aux=True)(mean, scale)

    (_, outputs), _ = value_and_gradients(mean, spread(mean, 0.0), x)
    np.testing.assert_allclose(outputs, net.apply(theta, x), atol=1e-5)
    # Neither a zero variance nor an input of zeros makes the gradient infinite.
    for scale in (0.0, 1.0):
        _, gradients = value_and_gradients(mean, spread(mean, scale), jnp.zeros_like(x))
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


NUM_KEYS = 20_000


@pytest.fixture(scope="module")
def dense(seed):
    """A layer of 4 inputs and 3 outputs for 5 examples, and `NUM_KEYS` draws of its outputs for each kind."""
    x, mean, scale = normal(5, 4), {"w": normal(4, 3, seed=1)}, {"w": 0.5 + jnp.abs(normal(4, 3, seed=2))}
    keys = jax.random.split(random.key(seed), NUM_KEYS)

    def outputs(kind: str) -> np.ndarray:
        run = jax.vmap(lambda key: noisy(lambda theta: x @ theta["w"], mean, scale, key, kind))
        return np.asarray(jax.jit(run)(keys), np.float64)

    return x, mean["w"], scale["w"], {kind: outputs(kind) for kind in (*KINDS, "shared")}


@pytest.mark.parametrize("kind", [*KINDS, "shared"])
def test_each_example_has_the_moments_of_gaussian_weights(dense, kind):
    x, mean, scale, outputs = dense
    center = np.asarray(x @ mean, np.float64)
    assert_mean(outputs[kind], center)
    assert_mean((outputs[kind] - center) ** 2, np.asarray(x**2 @ scale**2))


@pytest.mark.parametrize("kind", [*KINDS, "shared"])
def test_examples_are_correlated_only_where_they_share_the_weights(dense, kind):
    x, mean, scale, outputs = dense
    residual = outputs[kind] - np.asarray(x @ mean, np.float64)
    shared = np.einsum("i,ik->k", np.asarray(x[0] * x[1]), np.asarray(scale) ** 2)
    assert np.abs(shared).min() > 0.1
    assert_mean(residual[:, 0] * residual[:, 1], shared if kind == "shared" else np.zeros(3))


def test_flipout_flips_the_inputs_too(dense):
    """E[a² b²] = v_a v_b + 2 Σ_i a_i² b_i² σ_i⁴ with both signs; without s, v_a v_b + 2 (Σ_i a_i b_i σ_i²)²."""
    x, mean, scale, outputs = dense
    square = (outputs["flipout"] - np.asarray(x @ mean, np.float64)) ** 2
    variance = np.asarray(x**2 @ scale**2)
    truth = variance[0] * variance[1] + 2 * np.asarray((x[0] * x[1]) ** 2 @ scale**4)
    assert_mean(square[:, 0] * square[:, 1], truth)


def test_noise_on_weights_is_noise_on_activations_for_any_covariance():
    """W l + b has mean μ_W l + μ_b and covariance (I ⊗ l)ᵀ Σ_W (I ⊗ l) + Σ_b, where vec stacks the rows of W."""
    num_out, num_in, rng = 3, 4, np.random.default_rng(0)
    inputs, mean, bias = rng.normal(size=num_in), rng.normal(size=(num_out, num_in)), rng.normal(size=num_out)
    root_w, root_b = rng.normal(size=(12, 12)), rng.normal(size=(num_out, num_out))

    # Exact: an affine function of (ε_w, ε_b) ~ N(0, I) has the covariance J Jᵀ of its Jacobian.
    def layer(noise):
        weights = mean + (root_w @ noise[:12]).reshape(num_out, num_in)
        return weights @ inputs + bias + root_b @ noise[12:]

    center = layer(np.zeros(15))
    jacobian = np.stack([layer(unit) - center for unit in np.eye(15)], axis=1)
    select = np.kron(np.eye(num_out), inputs[:, None])
    expected = select.T @ (root_w @ root_w.T) @ select + root_b @ root_b.T
    np.testing.assert_allclose(center, mean @ inputs + bias)
    np.testing.assert_allclose(jacobian @ jacobian.T, expected)
    # The other order of the product belongs to vec stacking columns, and is wrong here.
    wrong = np.kron(inputs[:, None], np.eye(num_out))
    assert not np.allclose(wrong.T @ (root_w @ root_w.T) @ wrong + root_b @ root_b.T, expected)
    # A diagonal Σ_W is the local formula, one variance per output and nothing between them.
    scale = rng.uniform(0.5, 2.0, size=(num_out, num_in))
    local = select.T @ np.diag(scale.ravel() ** 2) @ select
    np.testing.assert_allclose(local, np.diag(scale**2 @ inputs**2), atol=1e-12)


@pytest.fixture(scope="module")
def gradients(seed):
    """4,000 gradients with respect to (mean, scale) of the squared loss of a small net on 32 examples."""
    x = normal(32, 4)
    y = jnp.sin(x[:, :1])
    mean = {"w": normal(4, 6, seed=1) / 2, "v": normal(6, 1, seed=2) / 2, "b": jnp.zeros(6)}
    scale = {name: 0.3 * leaf for name, leaf in spread(mean, 1.0).items()}

    def loss(theta):
        return jnp.mean((jnp.tanh(x @ theta["w"] + theta["b"]) @ theta["v"] - y) ** 2)

    def gradient(key, kind):
        both = jax.grad(lambda mean, scale: noisy(loss, mean, scale, key, kind), (0, 1))(mean, scale)
        return [jnp.concatenate([leaf.ravel() for leaf in part.values()]) for part in both]

    keys = jax.random.split(random.key(seed), 4000)
    return {
        kind: [np.asarray(part, np.float64) for part in jax.jit(jax.vmap(lambda key, k=kind: gradient(key, k)))(keys)]
        for kind in (*KINDS, "shared")
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_expected_gradient_is_that_of_shared_weights(gradients, kind):
    for own, shared in zip(gradients[kind], gradients["shared"], strict=True):
        error = np.sqrt((own.var(axis=0) + shared.var(axis=0)) / len(own))
        assert np.all(np.abs(own.mean(axis=0) - shared.mean(axis=0)) <= sigmas(2 * error.size) * error)


def test_the_variance_falls_from_shared_to_flipout_to_local(gradients):
    shared, flipout, local = (gradients[kind][0].var(axis=0).sum() for kind in ("shared", "flipout", "local"))
    assert local < flipout < shared
    assert local < shared / 2


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_finite_differences(kind):
    net = functional(networks.MLP([5], 2, inputs=3))
    x, mean = normal(8, 3), {name: jnp.asarray(leaf) for name, leaf in net.params.items()}
    direction = [{name: normal(*leaf.shape, seed=seed) for name, leaf in mean.items()} for seed in (1, 2)]

    @jax.jit
    def value(step):
        own = [
            jax.tree.map(lambda a, b: a + step * b, start, way)
            for start, way in zip((mean, spread(mean, 0.5)), direction, strict=True)
        ]
        return jnp.sum(noisy(lambda theta: net.apply(theta, x), *own, random.key(4), kind) ** 2)

    # A central difference in float32: an error of step² from the curve and of 1e-7/step from the rounding.
    difference = (value(1e-2) - value(-1e-2)) / 2e-2
    np.testing.assert_allclose(jax.grad(value)(0.0), difference, rtol=1e-2)


def sequence(theta, x):
    return x @ theta["w"]


def heads(theta, x):
    return jnp.einsum("ntd,dhk->nthk", x, theta["w"])


def grouped(theta, x, groups=2):
    return jax.lax.conv_general_dilated(
        x, theta["w"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=groups
    )


def depthwise(theta, x):
    return grouped(theta, x, groups=4)


SHARED_OVER_PLACES = [(sequence, (4, 3)), (heads, (4, 2, 3)), (grouped, (3, 2, 6)), (depthwise, (3, 1, 4))]


@pytest.mark.parametrize(("layer", "shape"), SHARED_OVER_PLACES, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("kind", KINDS)
def test_within_an_example_the_weights_are_one_draw(layer, shape, kind, seed):
    """Covariances of all outputs of one example are those of shared weights; between examples they vanish."""
    x, mean, scale = normal(2, 3, 4), {"w": normal(*shape, seed=1)}, {"w": jnp.abs(normal(*shape, seed=2))}
    run = jax.vmap(lambda key: noisy(lambda theta: layer(theta, x), mean, scale, key, kind).reshape(2, -1))
    draws = np.asarray(jax.jit(run)(jax.random.split(random.key(seed), NUM_KEYS)), np.float64)
    jacobian = np.asarray(jax.jacobian(lambda theta: layer(theta, x).reshape(2, -1))(mean)["w"]).reshape(
        2, -1, mean["w"].size
    )
    residual = draws - np.asarray(layer(mean, x)).reshape(2, -1)
    exact = np.einsum("iw,w,jw->ij", jacobian[0], np.asarray(scale["w"]).ravel() ** 2, jacobian[0])
    assert_mean(residual[:, 0, :, None] * residual[:, 0, None, :], exact, slack=1e-6)
    assert_mean(residual[:, 0, :, None] * residual[:, 1, None, :], 0.0, slack=1e-6)


TABLE = {"embedding.table": jnp.ones((4, 4))}


@pytest.mark.parametrize(
    ("function", "operation"),
    [
        (lambda w: w[jnp.array([0, 2])], "`gather`"),
        (lambda w: jnp.ones((3, 4)) @ (2 * w), "`mul`"),
        (lambda w: jnp.ones((3, 4)) @ (w + 1), "`add`"),
        (lambda w: jax.lax.scan(lambda h, _: (h @ w, None), jnp.ones((3, 4)), length=2)[0], "`scan`"),
        (lambda w: jnp.tanh(jnp.ones((3, 4)) @ w) @ w.T, "a product and a product"),
        (lambda w: w @ w, "`dot_general`"),
        (lambda w: (jnp.ones((3, 4)) @ w, w), "`return`"),
    ],
    ids=["embedding", "scaled", "shifted", "loop", "tied", "squared", "returned"],
)
def test_other_uses_are_refused_by_name(function, operation):
    def of_theta(theta):
        return function(theta["embedding.table"])

    message = rf"'embedding\.table' are used by {operation}.*estimator='weights'"
    with pytest.raises(ValueError, match=message):
        local_noise.kernels(of_theta, TABLE)
    with pytest.raises(ValueError, match=message):
        local_noise.apply(of_theta, TABLE, TABLE, TABLE, random.key(0), kind="local")


def test_rows_that_are_not_examples_are_refused():
    x = normal(2, 3, 4)

    def folded(theta):
        return jnp.tanh(x.reshape(6, 4) @ theta["a"]).reshape(2, 3, 4) @ theta["b"]

    with pytest.raises(ValueError, match="'a' meet 6 rows and 'b' meet 2"):
        local_noise.kernels(folded, {"a": normal(4, 4), "b": normal(4, 4)})


@pytest.mark.parametrize(
    ("change", "message"), [({"kind": "locale"}, "kind must be one of"), ({"scale": {}}, "differ in names")]
)
def test_wrong_arguments_are_told(change, message):
    arguments = {"theta": TABLE, "mean": TABLE, "scale": TABLE, "key": random.key(0), "kind": "local"}
    with pytest.raises(ValueError, match=message):
        local_noise.apply(lambda theta: theta, **(arguments | change))


@pytest.mark.parametrize("kind", KINDS)
def test_the_likelihood_of_a_model_takes_local_noise(kind):
    x = normal(6, 3)
    cases = [
        (models.classification(networks.MLP([5], 3)), jnp.array([0, 1, 2, 2, 1, 0])),
        (models.regression(networks.MLP([5], 1)), normal(6)),
    ]
    for unbound, y in cases:
        model = unbound.bind((x, y))
        batch = Batch(x, y, 60)
        mean = {name: normal(*leaf.shape) for name, leaf in model.template.items()}
        theta = draw(mean, spread(mean, 0.1), random.key(1))

        def log_likelihood(theta, model=model, batch=batch):
            return model.log_parts(theta, batch)[1]

        assert local_noise.kernels(log_likelihood, model.template) == {"hidden.0.kernel", "head.kernel"}

        @jax.jit
        def at(scale, key, theta=theta, mean=mean, log_likelihood=log_likelihood):
            return local_noise.apply(log_likelihood, theta, mean, spread(mean, scale), key, kind=kind)

        first, second = random.key(0), random.key(1)
        assert at(0.1, first) == at(0.1, first) != at(0.1, second)
        if kind == "local":
            # The draws of the biases and of the noise are shared, those of the kernels are not looked at.
            shared = {name: mean[name] if "kernel" in name else leaf for name, leaf in theta.items()}
            np.testing.assert_allclose(at(0.0, first), jax.jit(log_likelihood)(shared), rtol=1e-5)
