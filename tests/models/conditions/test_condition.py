"""All conditions: penalties of at least zero, finite gradients, descriptions that survive JSON, refusals in words."""

import json
from dataclasses import FrozenInstanceError, dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo import conditions
from credo.models.conditions import Custom, Plain, Ready
from tests.models.conditions.evaluated import penalties

# A network of two outputs for two inputs, in which the words of all conditions make sense.
X = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
STORED = [
    conditions.monotone({0: "+", 1: -1}, output=1, margin=0.1),
    conditions.monotone([(1, "-")], label=0),
    conditions.smooth(),
    conditions.smooth(order=2),
    conditions.convex(output=0),
    conditions.convex([1], sign="-", label=1, seed=3),
    conditions.bounded(0.0, [1.0, 2.0]),
    conditions.bounded(high=-1),
    conditions.sparse(),
    conditions.invariant("negate"),
    conditions.invariant(("permute", [1, 0])),
    conditions.invariant(("flip", 0)),
    conditions.invariant(("shift", 0.5)),
    conditions.equivariant(("shift", [0.5, 1]), ("permute", (1, 0))),
    conditions.low_density(),
    conditions.subspace([[1.0], [2.0]]),
    conditions.neighbours(k=2),
    conditions.neighbours(k=3, length=0.5),
    conditions.fisher_snedecor(k=2),
    conditions.fisher_snedecor(k=2, scale=0.5, dims=(9, 9)),
]
CODE = [
    conditions.agrees(jnp.sin),
    conditions.differential_equation(lambda f, x: conditions.derivative(f, x) + f(x)),
    conditions.invariant(lambda x: -x),
    conditions.equivariant("negate", jnp.flip),
    conditions.as_condition(lambda f, x: jnp.sum(f(x) ** 2, axis=1)),
]


def network(theta, x):
    return jnp.tanh(x @ theta["in"] + theta["bias"]) @ theta["out"]


def weights(scale):
    shapes = {"in": (2, 5), "bias": (5,), "out": (5, 2)}
    keys = dict(zip(shapes, jax.random.split(jax.random.key(1), 3), strict=True))
    return {name: scale * jax.random.normal(keys[name], shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("condition", STORED + CODE, ids=lambda condition: condition.name)
# Zero weights are the hard case: all predictions are equal there, so that norms, ratios and logarithms have no slope.
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_penalties_are_one_per_row_and_their_gradients_are_finite(condition, scale):
    rows, constants = condition.prepare(X)
    rows = rows[:7]

    def total(theta):
        values = condition(Plain(lambda x: network(theta, x)), rows, **constants)
        return jnp.sum(values), values

    gradient, values = jax.grad(total, has_aux=True)(weights(scale))
    conditions.check_penalty(condition, values, num_rows=7)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("condition", STORED, ids=lambda condition: condition.name)
def test_descriptions_survive_json(condition):
    again = conditions.from_config(json.loads(json.dumps(condition.to_config())))
    assert again == condition
    assert hash(again) == hash(condition)
    with pytest.raises(FrozenInstanceError):
        condition.name = "other"


@pytest.mark.parametrize("condition", CODE[:-1], ids=lambda condition: condition.name)
def test_code_is_described_and_not_loaded(condition):
    config = json.loads(json.dumps(condition.to_config()))
    with pytest.raises(ValueError, match=r"function of your own, .* pass it: credo.load\(folder, model=model\)"):
        conditions.from_config(config)


def near_one(f, x):
    return (f(x) - 1) ** 2


def test_a_function_of_the_users():
    condition = conditions.as_condition(near_one)
    assert condition == Custom(near_one)
    assert condition.name == "near_one"
    np.testing.assert_allclose(penalties(condition, lambda x: x, [[1.0], [3.0]]), [0, 4])
    with pytest.raises(ValueError, match="'near_one', and code is not stored"):
        conditions.from_config(condition.to_config())
    assert conditions.as_condition(conditions.smooth()) == conditions.smooth()


@dataclass(frozen=True)
class Centred(Ready):
    """The prediction is that at the mean of all inputs, whichever of them are looked at."""

    name = "centred"
    scale: float = 1.0

    def prepare(self, x):
        points, _ = super().prepare(x)
        return points, {"centre": points.mean(axis=0, keepdims=True)}

    def __call__(self, function, rows, **constants):
        return jnp.sum((function(rows) - function(constants["centre"])) ** 2, axis=1) / self.scale**2


def test_a_class_of_the_users():
    condition = conditions.as_condition(Centred(2.0))
    assert condition == Centred(2.0)
    assert condition.to_config() == {"name": "centred", "scale": 2.0}
    assert condition.resolved(("a",)) is condition
    np.testing.assert_allclose(penalties(condition, lambda x: x, [[1.0], [3.0]]), 0.25)


@pytest.mark.parametrize("what", ["smooth", conditions.smooth, conditions.Smooth, 3.0, [conditions.smooth()]])
def test_what_is_no_condition(what):
    with pytest.raises(ValueError, match="there are monotone, smooth"):
        conditions.as_condition(what)


def test_unknown_names_get_a_hint():
    with pytest.raises(ValueError, match="did you mean 'monotone'"):
        conditions.from_config({"name": "monoton"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, -0.1], "a penalty of -0.1"),
        ([0.5, np.nan], "gives nan for row 1"),
        ([np.inf, 0.0], "gives inf for row 0"),
        (0.5, r"shape \(\), but one per row was expected, \(2,\)"),
        ([[0.5], [0.5]], r"shape \(2, 1\)"),
        ([0.5, 0.5, 0.5], r"shape \(3,\)"),
    ],
)
def test_penalties_that_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        conditions.check_penalty(conditions.sparse(), jnp.array(values), num_rows=2)


def test_zeros_that_are_rounded_pass():
    conditions.check_penalty(conditions.sparse(), jnp.array([-1e-6, 0.0]))
    conditions.check_penalty(conditions.sparse(), jnp.array([-1e-3, 1e4]))


@pytest.mark.parametrize("condition", [conditions.smooth(), conditions.sparse(), conditions.neighbours(k=1)])
@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[0.0], [np.nan]], "NaN or infinity, first in row 1"),
        ([0.0, 1.0], r"shape \(2,\), but expected \(rows, …\)"),
        (np.empty((0, 3)), "no point"),
        ([["a"], ["b"]], "of type"),
    ],
)
def test_inputs_that_are_refused(condition, x, message):
    with pytest.raises(ValueError, match=message):
        condition.prepare(np.asarray(x))


def test_whole_numbers_are_inputs_with_derivatives():
    np.testing.assert_allclose(penalties(conditions.smooth(), lambda x: x**2, np.array([[-1], [1]])), [4, 4])
