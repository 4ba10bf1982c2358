"""Monotone and smooth, against slopes that are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo import conditions
from tests.models.conditions.evaluated import Binary, penalties

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32) * [1.0, 5.0, 0.2] + [0.0, 3.0, 1.0]
SD = X.std(axis=0)


def test_the_right_direction_is_free_and_the_wrong_one_costs_its_slope_squared():
    condition = conditions.monotone({0: "+", 2: "-"})

    def right(x):
        return x[:, :1] ** 3 - jnp.sin(x[:, 1:2]) - jnp.exp(x[:, 2:])

    np.testing.assert_array_equal(penalties(condition, right, X), 0)
    wrong = penalties(condition, lambda x: 2 * x[:, 2:] - 3 * x[:, :1] + x[:, 1:2] ** 2, X)
    np.testing.assert_allclose(wrong, (3 * SD[0]) ** 2 + (2 * SD[2]) ** 2, rtol=1e-5)


def test_only_violations_count_row_by_row():
    values = penalties(conditions.monotone({0: "+"}), lambda x: x[:, :1] ** 2, X)
    np.testing.assert_allclose(values, np.minimum(2 * X[:, 0] * SD[0], 0) ** 2, rtol=1e-4, atol=1e-6)


def test_slopes_do_not_depend_on_the_units_of_a_column():
    condition = conditions.monotone({1: "-"}, margin=0.5)
    expected = penalties(condition, lambda x: jnp.sin(x[:, 1:2]), X)
    units = np.array([1.0, 1000.0, 1.0])
    np.testing.assert_allclose(
        penalties(condition, lambda x: jnp.sin(x[:, 1:2] / 1000), X * units), expected, rtol=1e-3
    )


def test_margin_is_the_least_slope_that_is_free():
    x = np.array([[-1.0], [1.0]])
    np.testing.assert_allclose(penalties(conditions.monotone({0: 1}, margin=3.0), lambda x: 2 * x, x), 1.0)
    np.testing.assert_allclose(penalties(conditions.monotone({0: 1}, margin=2.0), lambda x: 2 * x, x), 0.0)


def test_a_class_rises_by_its_log_odds():
    x = np.array([[-1.0], [1.0]])
    rising = Binary(lambda x: 2 * x)
    np.testing.assert_allclose(penalties(conditions.monotone({0: "+"}), rising, x), 0)
    np.testing.assert_allclose(penalties(conditions.monotone({0: "-"}), rising, x), 4, rtol=1e-6)
    np.testing.assert_allclose(penalties(conditions.monotone({0: "+"}, label=0), rising, x), 4, rtol=1e-6)

    # All three logits rise, and so does the probability of the last alone.
    def three(x):
        return x * jnp.array([1.0, 2.0, 4.0])

    def odds(x):
        p = jax.nn.softmax(three(x))
        return jnp.log(p) - jnp.log(1 - p)

    slopes = jax.vmap(jax.jacfwd(lambda x: odds(x[None])[0]))(x)[:, :, 0]
    for label in range(3):
        values = penalties(conditions.monotone({0: "+"}, label=label), three, x)
        np.testing.assert_allclose(values, np.minimum(slopes[:, label], 0) ** 2, rtol=1e-4, atol=1e-6)


def test_names_become_numbers():
    named = conditions.monotone({"size": "+", 2: "-"})
    assert named.resolved(("age", "size", "rooms")) == conditions.monotone({1: "+", 2: "-"})
    with pytest.raises(ValueError, match=r"no column 'size'; did you mean 'sizes'\?; there are age, sizes"):
        named.resolved(("age", "sizes"))
    with pytest.raises(ValueError, match="array without names"):
        named.prepare(X)
    with pytest.raises(ValueError, match="column 2 is said both to rise"):
        named.resolved(("age", "rooms", "size"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: conditions.monotone([(0, "+"), (0, "-")]), "column 0 is said both to rise"),
        (lambda: conditions.monotone({}), "directions is empty"),
        (lambda: conditions.monotone({0: "up"}), "got 'up'"),
        (lambda: conditions.monotone({0: True}), "got True"),
        (lambda: conditions.monotone({-1: "+"}), "got -1"),
        (lambda: conditions.monotone({0.5: "+"}), r"got 0\.5"),
        (lambda: conditions.monotone({0: "+"}, output=0, label=1), "not both"),
        (lambda: conditions.monotone({0: "+"}, output=-1), "output must be a whole number"),
        (lambda: conditions.monotone({0: "+"}, margin=np.nan), "margin must be"),
        (lambda: conditions.monotone({3: "+"}).prepare(X), "no column 3; there are 3"),
        (lambda: conditions.monotone({0: "+"}).prepare(np.full((4, 1), 0.1)), "column 0 is the same in all"),
        (lambda: conditions.monotone({0: "+"}).prepare(np.zeros((4, 2, 2))), "columns of a table"),
        (lambda: penalties(conditions.monotone({0: "+"}), lambda x: x, X), "3 outputs; say which one"),
        (lambda: penalties(conditions.monotone({0: "+"}, output=3), lambda x: x, X), "output must be from 0 to 2"),
        (lambda: penalties(conditions.monotone({0: "+"}, label=3), lambda x: x, X), "label must be from 0 to 2"),
        (lambda: penalties(conditions.monotone({0: "+"}, label=0), lambda x: x[:, :1], X), "is about classes"),
        (lambda: conditions.smooth(order=3), "order must be 1"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def curved(x):
    x = x.reshape(len(x), -1)
    return jnp.stack([jnp.sin(x[:, 0]) * x[:, 1], x[:, 2] ** 2 + x[:, 0] * x[:, 1], x[:, 1] * x[:, 2], x[:, 0]], axis=1)


# Fewer columns than outputs go forward, more go in reverse.
@pytest.mark.parametrize("num_outputs", [1, 4])
def test_smooth_is_the_norm_of_the_jacobian_or_of_the_hessian(num_outputs):
    def one(x):
        return curved(x[None])[0, :num_outputs]

    jacobian = jax.vmap(jax.jacfwd(one))(X.astype(np.float32)) * SD
    hessian = jax.vmap(jax.hessian(one))(X.astype(np.float32)) * SD[:, None] * SD
    values = penalties(conditions.smooth(), lambda x: curved(x)[:, :num_outputs], X)
    np.testing.assert_allclose(values, np.sum(jacobian**2, axis=(1, 2)), rtol=1e-4)
    values = penalties(conditions.smooth(order=2), lambda x: curved(x)[:, :num_outputs], X)
    np.testing.assert_allclose(values, np.sum(hessian**2, axis=(1, 2, 3)), rtol=1e-4)


@pytest.mark.parametrize("num_outputs", [1, 4])
def test_images_have_one_scale(num_outputs):
    images = X[:18].reshape(18, 3, 1)
    sd = images.std()
    jacobian = jax.vmap(jax.jacfwd(lambda x: curved(x[None])[0, :num_outputs]))(images)
    values = penalties(conditions.smooth(), lambda x: curved(x)[:, :num_outputs], images)
    np.testing.assert_allclose(values, sd**2 * np.sum(jacobian**2, axis=(1, 2, 3)), rtol=1e-4)


class Heteroscedastic:
    """The second of the network's own outputs sets the noise."""

    def __call__(self, x):
        return 10 + 5 * x

    def raw(self, x):
        return jnp.concatenate([x, 100 * x], axis=1)


def test_outputs_that_set_the_noise_are_left_alone():
    x = np.array([[-1.0], [1.0]])
    np.testing.assert_allclose(penalties(conditions.smooth(), Heteroscedastic(), x), 1)
    np.testing.assert_allclose(penalties(conditions.monotone({0: "-"}), Heteroscedastic(), x), 1)
