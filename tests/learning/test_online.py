"""Online learning: sequences that equal the whole, forgetting, rows held back, folders, and programs compiled once."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import credo
from credo import models, networks
from credo.inference.registry import METHODS
from tests.contract.test_double_precision import mostly_full
from tests.contract.test_methods import TINY
from tests.inference.engine.test_growing import compilations

NOISE = 0.3
# In double precision a rate that falls to nothing ends within 1e-6 of the mode.
TO_THE_MODE = credo.MAP(num_steps=4000, learning_rate=credo.schedules.Cosine(0.05, 4000))
# What leaves no distribution over theta, or none that a closed form can go on from.
REFUSED = ("mle", "map", "mc_dropout")


def rows(num: int = 60, num_outputs: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num, 3))
    y = x @ rng.normal(size=(3, num_outputs)) + 0.3 + NOISE * rng.normal(size=(num, num_outputs))
    return x, y[:, 0] if num_outputs == 1 else y


def linear(num_outputs: int = 1) -> credo.Model:
    return models.regression(networks.MLP([], out=num_outputs), noise=NOISE)


def learn(learner: credo.Online, x: np.ndarray, y: np.ndarray, size: int = 20):
    for first in range(0, len(x), size):
        posterior = learner.update((x[first : first + size], y[first : first + size]), progress=False)
    return posterior


def covariance(posterior) -> np.ndarray:
    """Σ over kernel and bias, in the order of names."""
    root, mean = posterior.root, {name: posterior.mean[name] for name in sorted(posterior.mean)}
    columns = []
    for name, shape in root.noise_shapes().items():
        for entry in np.ndindex(*shape):
            noise = {other: np.zeros(one) for other, one in root.noise_shapes().items()}
            noise[name][entry] = 1
            offset = root.offset(noise)
            columns.append(np.concatenate([np.ravel(offset[name]) for name in mean]))
    factor = np.stack(columns, axis=1)
    return factor @ factor.T


# -- the sequence is the whole --------------------------------------------------------------------------------


@pytest.mark.parametrize("num_outputs", [1, 2])
def test_batches_in_sequence_are_the_whole_at_once(num_outputs):
    x, y = rows(num_outputs=num_outputs)
    learner = credo.online(linear(num_outputs), credo.ClosedForm())
    found, whole = learn(learner, x, y), credo.fit(linear(num_outputs), (x, y), credo.ClosedForm())
    for name, leaf in whole.mean.items():
        np.testing.assert_allclose(found.mean[name], leaf, atol=1e-5)
    np.testing.assert_allclose(covariance(found), covariance(whole), atol=1e-5)
    assert found.provenance.num_data == len(x)


def test_the_evidence_of_a_sequence_adds_up():
    x, y = rows()
    learner = credo.online(linear(), credo.ClosedForm())
    learn(learner, x, y)
    whole = credo.fit(linear(), (x, y), credo.ClosedForm())
    np.testing.assert_allclose(learner.log_evidence, whole.evidence.log_evidence, atol=1e-3)


@pytest.mark.parametrize("structure", ["full", "block", "kronecker", "low_rank"])
def test_laplace_of_a_sequence_is_the_whole_at_once(structure):
    """In double precision, where the climb ends at the mode: a linear layer of one output fits all four structures."""
    x, y = rows()
    with jax.enable_x64(True):
        method = credo.Laplace(structure=structure, training=TO_THE_MODE, rank=4)
        learner = credo.online(linear(), method)
        found, whole = learn(learner, x, y), credo.fit(linear(), (x, y), method)
        for name, leaf in whole.mean.items():
            np.testing.assert_allclose(found.mean[name], leaf, atol=1e-5)
        np.testing.assert_allclose(covariance(found), covariance(whole), rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(learner.log_evidence, whole.evidence.log_evidence, atol=1e-4)


def test_precisions_of_a_diagonal_laplace_add_up():
    x, y = rows()
    method = credo.Laplace(structure="diagonal", training=credo.MAP(num_steps=20))
    found = learn(credo.online(linear(), method), x, y)
    whole = credo.fit(linear(), (x, y), method)
    for name, scale in whole.root.scale.items():
        np.testing.assert_allclose(found.root.scale[name], scale, rtol=1e-4)


def test_components_of_a_mixture_are_weighted_by_their_evidence():
    """p(component | D) from two priors: the components are exact, so the weights are those of Bayes' rule."""
    x, y = rows(20)
    parts = []
    for scale in (0.1, 1.0):
        model = models.regression(networks.MLP([], out=1), noise=NOISE, prior=credo.priors.normal(scale))
        parts.append(credo.fit(model, (x[:10], y[:10]), credo.ClosedForm()))
    first = np.array([part.evidence.log_evidence for part in parts])
    weights = np.exp(first - first.max())
    mixture = credo.Mixture(tuple(parts), parts[0].provenance, weights / weights.sum())
    found = credo.online(mixture, credo.ClosedForm()).update((x[10:], y[10:]))
    whole = []
    for scale in (0.1, 1.0):
        model = models.regression(networks.MLP([], out=1), noise=NOISE, prior=credo.priors.normal(scale))
        whole.append(credo.fit(model, (x, y), credo.ClosedForm()).evidence.log_evidence)
    expected = np.exp(np.array(whole) - max(whole))
    np.testing.assert_allclose(found.weights, expected / expected.sum(), rtol=1e-3)


def test_going_on_from_a_posterior_is_as_if_it_had_been_learned_here():
    x, y = rows(40)
    learner = credo.online(linear(), credo.ClosedForm())
    expected = learn(learner, x, y)
    first = credo.fit(linear(), (x[:20], y[:20]), credo.ClosedForm())
    other = credo.online(first, credo.ClosedForm())
    found = other.update((x[20:], y[20:]))
    for name, leaf in expected.mean.items():
        np.testing.assert_allclose(found.mean[name], leaf, atol=1e-6)
    assert (other.num_updates, other.num_data) == (2, 40)


# -- every method ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mostly_full(sorted(METHODS), "laplace", "nuts", "bayes_by_backprop"))
def test_every_method_learns_on_or_says_why_not(name):
    x, y = rows(40)
    model = linear() if name == "closed_form" else models.regression(networks.MLP([3], out=1))
    method = METHODS[name](**TINY[name])
    if name in REFUSED:
        with pytest.raises(ValueError, match="leaves no distribution"):
            credo.online(model, method)
        return
    if "num_samples" in TINY[name] and name != "closed_form":
        method = replace(method, num_samples=10)
    posterior = learn(credo.online(model, method, seed=3), x, y)
    again = learn(credo.online(model, method, seed=3), x, y)
    predicted = posterior.predict(x[:5])
    assert np.all(np.isfinite(predicted.mean))
    np.testing.assert_array_equal(predicted.mean, again.predict(x[:5]).mean)


@pytest.mark.parametrize("coreset", [0, 3])
@pytest.mark.parametrize("name", ["closed_form", "laplace", "bayes_by_backprop", "nuts"])
def test_from_the_third_update_of_one_size_on_nothing_is_compiled(name, coreset):
    """Neither to judge the batch, nor to learn it, nor to learn the rows held back, of which there are ever more."""
    x, y = rows(80)
    settings = TINY[name] | ({"num_samples": 10} if name == "nuts" else {})
    learner = credo.online(linear(), METHODS[name](**settings), coreset=coreset)
    learn(learner, x[:40], y[:40])
    with compilations() as names:
        learn(learner, x[40:], y[40:])
    assert learner.num_updates == 4
    assert names == []


# -- forgetting -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [1.0, 0.7])
def test_natural_parameters_move_towards_the_prior(kept):
    """Σ⁻¹ = λ Σ₁⁻¹ + (1 − λ) I + ΦᵀΦ/σ², and so the mean: for a closed form and for Laplace."""
    x, y = rows(40)
    features = np.concatenate([np.ones((40, 1)), x], axis=1)
    precision, shift = np.eye(4), np.zeros(4)
    for half in (slice(0, 20), slice(20, 40)):
        phi = features[half]
        precision = kept * precision + (1 - kept) * np.eye(4) + phi.T @ phi / NOISE**2
        shift = kept * shift + phi.T @ y[half] / NOISE**2
    expected = np.linalg.solve(precision, shift)
    with jax.enable_x64(True):
        for structure in (None, "full", "block", "kronecker", "low_rank"):
            laplace = credo.Laplace(structure=structure or "full", training=TO_THE_MODE, rank=4)
            method = laplace if structure else credo.ClosedForm()
            found = learn(credo.online(linear(), method, forgetting=kept), x, y)
            mean = np.concatenate([found.mean["head.bias"], found.mean["head.kernel"][:, 0]])
            np.testing.assert_allclose(mean, expected, atol=1e-5)
            np.testing.assert_allclose(covariance(found), np.linalg.inv(precision), rtol=1e-4, atol=1e-8)


def test_who_forgets_everything_knows_the_prior_and_the_last_batch():
    x, y = rows(40)
    found = learn(credo.online(linear(), credo.ClosedForm(), forgetting=1e-12), x, y)
    last = credo.fit(linear(), (x[20:], y[20:]), credo.ClosedForm())
    for name, leaf in last.mean.items():
        np.testing.assert_allclose(found.mean[name], leaf, atol=1e-4)


def test_forgetting_pays_where_the_world_turns(seed):
    """The weights turn by 0.15 rad a batch. Who forgets nothing is behind by half of the way, squared 0.56 on average
    over 16 batches, and an error e costs e²/2σ² nats a row: 3 of them, beside 0.5 for who remembers two batches. The
    standard error of a mean over 300 rows is 0.1.
    """
    rng, scores = np.random.default_rng(seed), {1.0: [], 0.5: []}
    learners = {kept: credo.online(linear(), credo.ClosedForm(), forgetting=kept) for kept in scores}
    for batch in range(16):
        x = rng.normal(size=(20, 3))
        y = x @ [np.cos(0.15 * batch), np.sin(0.15 * batch), 0.0] + NOISE * rng.normal(size=20)
        for kept, learner in learners.items():
            if batch > 0:
                scores[kept].append(np.mean(learner.posterior.predict(x).log_prob(y)))
            learner.update((x, y), progress=False)
    assert np.mean(scores[0.5]) > np.mean(scores[1.0]) + 1


# -- rows held back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["random", "k-center"])
def test_rows_that_are_held_back_are_learned_last(choice):
    x, y = rows(40)
    learner = credo.online(linear(), credo.ClosedForm(), coreset=5, choice=choice)
    found = learn(learner, x, y)
    whole = credo.fit(linear(), (x, y), credo.ClosedForm())
    assert learner.learned.kept.size == 10
    assert not np.allclose(learner.learned.belief.mean["head.kernel"], whole.mean["head.kernel"], atol=1e-4)
    np.testing.assert_allclose(found.mean["head.kernel"], whole.mean["head.kernel"], atol=1e-5)


def test_a_coreset_that_leaves_nothing_is_refused():
    x, y = rows(20)
    with pytest.raises(ValueError, match="coreset=20 rows"):
        credo.online(linear(), credo.ClosedForm(), coreset=20).update((x, y))


# -- folders --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coreset", [0, 4])
def test_a_loaded_learner_goes_on_with_the_same_bits(tmp_path, coreset):
    x, y = rows(60)
    method = credo.BayesByBackprop(num_steps=20, batch_size=8)
    settings = {"forgetting": 0.9, "coreset": coreset, "seed": 5}
    learner = credo.online(linear(), method, **settings)
    learn(learner, x[:40], y[:40])
    learner.save(tmp_path / "run")
    learner.save(tmp_path / "run")
    loaded = credo.Online.load(tmp_path / "run")
    assert (loaded.settings, loaded.method, loaded.num_data) == (learner.settings, method, 40)
    seen = credo.load(tmp_path / "run")
    np.testing.assert_array_equal(seen.mean["head.kernel"], learner.posterior.mean["head.kernel"])
    first, second = (learn(one, x[40:], y[40:]) for one in (learner, loaded))
    np.testing.assert_array_equal(first.mean["head.kernel"], second.mean["head.kernel"])


def test_a_method_that_text_cannot_hold_is_asked_for(tmp_path):
    x, y = rows(20)
    method = credo.Laplace(training=credo.MAP(num_steps=5, optimizer=__import__("optax").adam(0.1)))
    learner = credo.online(linear(), method)
    learner.update((x, y))
    learner.save(tmp_path / "run")
    with pytest.raises(credo.LoadError, match="pass it"):
        credo.Online.load(tmp_path / "run")
    assert credo.Online.load(tmp_path / "run", method=method).num_updates == 1


def test_folders_that_hold_no_learner_are_refused(tmp_path):
    x, y = rows(20)
    learner = credo.online(linear(), credo.ClosedForm())
    with pytest.raises(ValueError, match="nothing to save"):
        learner.save(tmp_path / "run")
    learner.update((x, y))
    learner.posterior.save(tmp_path / "posterior")
    with pytest.raises(credo.LoadError, match="holds no online learner"):
        credo.Online.load(tmp_path / "posterior")
    with pytest.raises(ValueError, match="holds no online learner"):
        learner.save(tmp_path / "posterior")


def test_a_damaged_learner_is_refused(tmp_path):
    x, y = rows(20)
    learner = credo.online(linear(), credo.ClosedForm(), coreset=3)
    learner.update((x, y))
    learner.save(tmp_path / "run")
    for name in ("online.json", "kept-rows.safetensors"):
        path = tmp_path / "run" / name
        content = path.read_bytes()
        path.write_bytes(content[:-20])
        with pytest.raises(credo.LoadError, match="damaged"):
            credo.Online.load(tmp_path / "run")
        path.write_bytes(content)


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"forgetting": 0.0}, "forgetting must be a positive number"),
        ({"forgetting": 1.5}, "forgetting must be at most 1"),
        ({"coreset": -1}, "coreset must be a whole number"),
        ({"choice": "nearest"}, "choice must be"),
        ({"density": "normal"}, "density must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        credo.online(linear(), credo.ClosedForm(), **settings)


def test_batches_of_other_columns_are_refused_and_nothing_is_learned():
    x, y = rows(40)
    learner = credo.online(linear(), credo.ClosedForm())
    learner.update(credo.Data(x[:20], y[:20], names=["a", "b", "c"]))
    before = learner.posterior
    for other, says in (
        ((x[20:, :2], y[20:]), "rows of x have shape"),
        ((x[20:], np.stack([y[20:]] * 2, 1)), "rows of y have shape"),
        (credo.Data(x[20:], y[20:], names=["a", "b", "d"]), "batch: "),
    ):
        with pytest.raises(ValueError, match=says):
            learner.update(other)
    assert learner.posterior is before
    reordered = credo.Data(x[20:, ::-1], y[20:], names=["c", "b", "a"])
    found, expected = learner.update(reordered), credo.fit(linear(), (x, y), credo.ClosedForm())
    np.testing.assert_allclose(found.mean["head.kernel"], expected.mean["head.kernel"], atol=1e-5)


def test_the_first_batch_fixes_the_scaling():
    x, y = rows(40)
    learner = credo.online(linear(), credo.ClosedForm())
    first = credo.Data(10 * x[:20] + 5, y[:20], standardise=True)
    learner.update(first)
    second = learner.update(credo.Data(10 * x[20:] + 5, y[20:], standardise=True))
    np.testing.assert_array_equal(second.scaling.x_scale, first.scaling.x_scale)


def test_what_is_no_density_is_refused():
    x, y = rows(20)
    with pytest.raises(ValueError, match="model must be"):
        credo.online(networks.MLP([], out=1), credo.ClosedForm())
    with pytest.raises(ValueError, match="too little about the spread"):
        credo.online(credo.fit(linear(), (x, y), credo.MAP(num_steps=5)), credo.Laplace())
    with pytest.raises(ValueError, match="leaves no distribution"):
        credo.online(linear(), credo.DeepEnsemble(credo.MAP(), members=3))
    with pytest.raises(ValueError, match="has not seen any data"):
        _ = credo.online(linear(), credo.ClosedForm()).posterior


def test_laplace_refuses_what_its_structure_cannot_hold():
    x, y = rows(40)
    model = models.regression(networks.MLP([3], out=1), noise=NOISE)
    climb = credo.MAP(num_steps=5)
    first = credo.fit(model, (x, y), credo.Laplace(structure="block", training=climb))
    with pytest.raises(ValueError, match="structure='kronecker' cannot hold"):
        credo.online(first, credo.Laplace(training=climb)).update((x, y))
    with pytest.raises(ValueError, match="would leave the rest for certain"):
        credo.online(first, credo.Laplace(structure="block", subset="last_layer", training=climb)).update((x, y))
    some = credo.fit(model, (x, y), credo.Laplace(subset="last_layer", training=climb))
    with pytest.raises(ValueError, match="for certain"):
        credo.online(some, credo.Laplace(training=climb))
