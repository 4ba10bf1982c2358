"""Self-supervised models: labels that inputs provide themselves, at once with the target or before it."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import credo
from credo import augmentations, testing
from credo.models import pretexts, self_supervised
from credo.networks import MLP

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3, 3)).astype(np.float32)
Y = np.where(np.arange(12) < 6, np.arange(12) % 3, np.nan)
DATA = credo.Data(X, Y, standardise=True).with_labels()
TRUNK = MLP([4], out=5)
PRETEXTS = {
    "rotations": pretexts.rotations(),
    "masked": pretexts.masked(0.4, strength=0.5),
    "contrast": pretexts.contrast(augmentations.noise(0.2), num_candidates=3, features=2),
}


def theta_of(model):
    rng = np.random.default_rng(1)
    return {name: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32) for name, leaf in model.template.items()}


@pytest.mark.parametrize("name", PRETEXTS)
def test_joint_is_the_product_of_both_tasks(name):
    """log p(theta, D, U) = log p(theta) + strength · log p(pretext | U, theta) + log p(y | x, theta)."""
    pretext = PRETEXTS[name]
    made = pretext.data(DATA)
    joint = self_supervised(TRUNK, pretext, out=3).bind(DATA)
    first = self_supervised(TRUNK, pretext, out=3, task="pretext").bind(made)
    second = self_supervised(TRUNK, pretext, out=3, task="target").bind(DATA)
    theta = theta_of(joint)
    own = [{name: theta[name] for name in model.template} for model in (first, second)]
    assert own[0].keys() | own[1].keys() == theta.keys()
    assert own[0].keys() & own[1].keys() == {name for name in theta if name.startswith("trunk.")}
    found = jax.jit(joint.log_likelihood)(theta, DATA.batch()), jax.jit(joint.log_factors)(theta)
    expected = (
        jax.jit(second.log_likelihood)(own[1], DATA.batch()),
        pretext.strength * jax.jit(first.log_likelihood)(own[0], made.batch()),
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_rotations_are_turned_images():
    made = pretexts.rotations().data(X)
    for label in range(4):
        np.testing.assert_array_equal(made.x[made.y == label], np.rot90(X, label, axes=(1, 2)))


def test_masked_numbers_are_hidden_and_asked_for():
    made = pretexts.masked(0.4).data(X)
    hidden = ~np.isnan(made.y)
    assert np.all(hidden.sum(axis=1) == 4)
    np.testing.assert_array_equal(made.y[hidden], X.reshape(12, 9)[hidden])
    np.testing.assert_array_equal(made.x.reshape(12, 9)[~hidden], X.reshape(12, 9)[~hidden])
    assert len(np.unique(made.x.reshape(12, 9)[:, 0][hidden[:, 0]])) == 1


def test_contrast_has_one_other_view_among_other_inputs():
    made = pretexts.contrast(lambda key, x: x, num_candidates=4).data(X)
    same = (made.x[:, 1:] == made.x[:, :1]).all(axis=(2, 3))
    np.testing.assert_array_equal(same.sum(axis=1), 1)
    np.testing.assert_array_equal(same.argmax(axis=1), made.y)


def test_some_rows_stand_for_all():
    """Minibatches of the pretext's rows are scaled by N/n: in all, an epoch of them is the whole factor."""
    joint = self_supervised(TRUNK, PRETEXTS["rotations"], out=3).bind(DATA)
    theta, name = theta_of(joint), "pretext.rows"
    rows = joint.constants.values()[name]
    log_prior = jax.jit(lambda rows: joint.log_parts(theta, DATA.batch()._replace(inputs={name: rows}))[0])
    parts = [log_prior(rows[start::4]) for start in range(4)]
    np.testing.assert_allclose(np.mean(parts), log_prior(rows), rtol=1e-5)


def test_two_steps_share_the_trunk(tmp_path):
    """What the first step has found, as the prior of the second: by means here."""
    pretext = PRETEXTS["masked"]
    model = self_supervised(TRUNK, pretext, out=3, task="pretext")
    first = credo.fit(model, pretext.data(DATA), credo.MAP(num_steps=20))
    found = {name: leaf[0, 0] for name, leaf in first.theta.items() if name.startswith("trunk.")}
    prior = {name: dist.Normal(mean, 1e-3).to_event(mean.ndim) for name, mean in found.items()}
    second = self_supervised(TRUNK, pretext, out=3, task="target", prior=prior)
    posterior = credo.fit(second, DATA, credo.MAP(num_steps=20, start="prior"))
    for name, mean in found.items():
        # A mode is within a few scales of such a prior; the network starts elsewhere.
        assert np.abs(posterior.theta[name][0, 0] - mean).max() < 0.3
    first.save(tmp_path / "first")
    assert testing.same_bits(credo.load(tmp_path / "first"), first)


def test_joint_saves_loads_and_draws_its_graph(tmp_path):
    model = self_supervised(TRUNK, PRETEXTS["rotations"], out=3, unlabelled=X[:8])
    posterior = credo.fit(model, DATA, credo.MAP(num_steps=20, batch_size=64))
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    assert testing.same_bits(loaded, posterior)
    np.testing.assert_array_equal(loaded.predict(X).probs, posterior.predict(X).probs)
    graph = posterior.model.graph()
    assert "trunk.head.kernel" in graph.parents("y")
    assert {"trunk.head.kernel", "pretext.kernel"} <= set(graph.parents("pretext_labels"))
    assert "likelihood of rotations" in str(posterior.model.describe())


def test_numbers_as_targets():
    numbers = credo.Data(X, RNG.normal(size=12))
    model = self_supervised(TRUNK, PRETEXTS["rotations"], out=1, noise=0.1).bind(numbers)
    theta = theta_of(model)
    law = jax.jit(lambda theta: model.predictive(theta, jnp.asarray(X)).variance)(theta)
    np.testing.assert_allclose(law, 0.01, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: self_supervised(TRUNK, "rotations", out=3), "take one of credo.models.pretexts"),
        (lambda: self_supervised(TRUNK, PRETEXTS["masked"], out=3, task="first"), "task must be"),
        (lambda: self_supervised(TRUNK, PRETEXTS["masked"], out=3, unlabelled=X[:, 0]).bind(DATA), "unlabelled: "),
        (lambda: self_supervised(TRUNK, PRETEXTS["masked"], out=3, task="pretext").bind(DATA), "fit this model to"),
        (lambda: pretexts.rotations().data(X[:, 0]), "square images"),
        (lambda: pretexts.masked(1.0), "below 1"),
        (lambda: pretexts.masked().data(X[:, 0, :1]), "one column"),
        (lambda: pretexts.contrast(augmentations.flip(), num_candidates=20).data(X), "takes at least as many"),
        (lambda: pretexts.contrast(augmentations.flip(5)).data(X), "axis is 5"),
    ],
)
def test_refuses(make, words):
    with pytest.raises(ValueError, match=words):
        make()
