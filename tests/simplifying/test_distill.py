"""`credo.distill`: a student says what its teacher says, and knows what it does not know; bad input is refused."""

from dataclasses import replace

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo import testing
from credo.diagnostics.student import StudentEvidence, diagnose_student
from credo.evaluation import detect, nll
from credo.inference.sgmcmc.schedules import Cosine
from credo.models.student import DirichletHead, NormalHead, student
from credo.posterior.student_predictive import student_predictive
from credo.simplifying.lessons import inputs_beyond, lesson_of

TRAINING = credo.MAP(num_steps=3000, learning_rate=Cosine(1e-2, 3000), batch_size=128)
BRIEF = credo.MAP(num_steps=20)


@pytest.fixture(scope="module")
def line():
    """Two columns in units far from standard ones, and a linear teacher whose answers are exact."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2)) * [1.0, 50.0] + [0.0, 300.0]
    y = 1000 + 20 * x[:, 0] - 0.3 * x[:, 1] + 5 * rng.normal(size=120)
    data = credo.Data(x, y, standardise=True)
    model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.2)
    return data, credo.fit(model, data, credo.Laplace(training=credo.MAP(num_steps=500)))


@pytest.fixture(scope="module")
def taught(line):
    data, teacher = line
    return credo.distill(teacher, "mlp:20", data, method=TRAINING)


@pytest.fixture(scope="module")
def moons():
    """An ensemble that disagrees away from two half circles."""
    data = credo.datasets.moons(num=120, noise=0.2)
    model = credo.models.classification(credo.networks.MLP([10], out=2), prior=credo.priors.normal(1.0))
    members = credo.DeepEnsemble(credo.MAP(num_steps=500, start="prior"), members=5)
    return data, credo.fit(model, data, members)


# --- what it keeps


def epistemic_error(student, teacher, x) -> float:
    ours, theirs = (np.sqrt(one.predict(x).epistemic) for one in (student, teacher))
    return float(np.mean(np.abs(ours - theirs)) / np.mean(theirs))


def on_labels_alone(data, teacher):
    """The student's network, on y in place of answers: it takes the noise for its own ignorance."""
    answers = lesson_of(teacher.predict(data.x), data.x, data.x)
    y = (data.y - answers.scaling.y_mean) / answers.scaling.y_scale
    zeros = np.zeros_like(y)
    lesson = replace(answers, statistics=np.stack([y, zeros, zeros], axis=1))
    model = student(credo.networks.MLP([20], out=3), NormalHead(1, scalar=True))
    learned = credo.fit(model, lesson.data, TRAINING)
    theta = {name: leaf[0, -1] for name, leaf in learned.theta.items()}
    return credo.Student(learned.model, theta, learned.provenance, scaling=answers.scaling)


def test_a_student_keeps_mean_and_both_parts_of_the_variance(line, taught):
    data, teacher = line
    x = data.x + 0.3 * data.x.std(0) * np.random.default_rng(1).normal(size=data.x.shape)
    ours, theirs = taught.predict(x), teacher.predict(x)
    assert np.sqrt(np.mean((ours.mean - theirs.mean) ** 2 / theirs.variance)) < 0.2
    np.testing.assert_allclose(ours.aleatoric, theirs.aleatoric, rtol=0.1)
    assert epistemic_error(taught, teacher, x) < 0.3
    assert abs(np.mean(ours.log_prob(data.y)) - np.mean(theirs.log_prob(data.y))) < 0.1
    # Labels alone have no epistemic part.
    assert epistemic_error(on_labels_alone(data, teacher), teacher, x) > 1.0


def test_a_student_of_classes_keeps_what_its_teacher_disagrees_about(moons):
    data, teacher = moons
    found = credo.distill(teacher, "mlp:30", data, method=TRAINING)
    inside = teacher.predict(data.x)
    assert abs(nll(found.predict(data.x), data.y) - nll(inside, data.y)) < 0.02
    foreign = np.random.default_rng(0).uniform(-2, 3, (200, 2))
    auroc = [
        detect(one.predict(data.x), one.predict(foreign), by="mutual_information").auroc for one in (found, teacher)
    ]
    assert abs(auroc[0] - auroc[1]) < 0.05
    labels = credo.fit(credo.models.classification(credo.networks.MLP([30], out=2)), data, TRAINING)
    assert detect(labels.predict(data.x), labels.predict(foreign), by="mutual_information").auroc < 0.6


# --- a posterior like any other


def test_it_saves_loads_and_evaluates(line, taught, tmp_path):
    data, teacher = line
    taught.save(tmp_path / "small")
    loaded = credo.load(tmp_path / "small")
    for name in ("mean", "epistemic", "aleatoric"):
        np.testing.assert_array_equal(getattr(loaded.predict(data.x), name), getattr(taught.predict(data.x), name))
    assert loaded.provenance == taught.provenance
    assert loaded.provenance.method["teacher"] == teacher.provenance.method
    assert str(loaded.diagnostics) == str(taught.diagnostics)
    assert testing.same_bits(loaded, taught)
    assert credo.evaluate(loaded, data)["nll"].value < 10
    assert loaded.num_bytes < 1000
    assert "Student(" in repr(loaded)


def test_a_network_from_outside_is_passed_again(line, tmp_path):
    data, teacher = line
    net = (lambda params, x: x @ params["w"] + params["b"], {"w": np.zeros((2, 3)), "b": np.zeros(3)})
    found = credo.distill(teacher, net, data.x, method=BRIEF)
    found.save(tmp_path / "small")
    with pytest.raises(ValueError, match="network=net"):
        credo.load(tmp_path / "small")
    loaded = credo.load(tmp_path / "small", network=net)
    np.testing.assert_array_equal(loaded.predict(data.x).mean, found.predict(data.x).mean)


def test_rows_are_known_one_by_one(line, taught, moons):
    prediction = taught.predict(line[0].x[:5])
    for name in ("functions", "input_covariance"):
        with pytest.raises(ValueError, match="ask its teacher"):
            getattr(prediction, name)
    np.testing.assert_allclose(prediction[2:].mean, prediction.mean[2:])


def test_the_same_seed_gives_the_same_student(line):
    data, teacher = line
    first, again, other = (credo.distill(teacher, "mlp:4", data, method=BRIEF, seed=seed) for seed in (0, 0, 1))
    assert testing.same_bits(first, again)
    assert not testing.same_bits(first, other)


def test_the_default_network_is_like_the_teachers(line, moons):
    found = credo.distill(moons[1], None, moons[0], method=BRIEF)
    assert found.model.config["network"]["features"] == [50, 50]
    assert found.model.config["network"]["out"] == 3


# --- closed forms


def test_numbers_add_up():
    outputs = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    scaling = credo.data.Scaling(y_mean=np.array([1.0, 2.0]), y_scale=np.array([3.0, 0.1]))
    found = student_predictive(NormalHead(2, scalar=False), outputs, scaling)
    np.testing.assert_allclose(found.variance, found.epistemic + found.aleatoric)
    np.testing.assert_allclose(found.covariance, found.variance[:, None] * np.eye(2), rtol=1e-4)
    lower, upper = found.interval(0.9)
    np.testing.assert_allclose((upper - lower) / 2, 1.6449 * found.std, rtol=1e-3)
    law = dist.Normal(found.mean, found.std).to_event(1)
    np.testing.assert_allclose(found.log_prob(found.mean + 1), law.log_prob(found.mean + 1), rtol=1e-3, atol=1e-3)


def test_classes_are_a_dirichlet(seed):
    outputs = np.array([[1.0, 0.0, -1.0, 2.0], [0.0, 0.0, 0.0, 0.0], [4.0, -2.0, 0.0, -1.0]], np.float32)
    found = student_predictive(DirichletHead(3), outputs, credo.data.Scaling())
    np.testing.assert_allclose(found.entropy, found.mutual_information + found.aleatoric, rtol=1e-5)
    drawn = np.random.default_rng(seed).dirichlet
    num = 20_000
    for row in range(3):
        probs = drawn(found.precision[row] * found.probs[row].astype(float), size=num)
        entropies = -np.sum(np.where(probs > 0, probs * np.log(np.maximum(probs, 1e-300)), 0.0), axis=1)
        assert abs(entropies.mean() - found.aleatoric[row]) < 5 * entropies.std() / np.sqrt(num)
        np.testing.assert_allclose(probs.std(0), found.probs_std[row], rtol=0.1, atol=1e-3)


# --- inputs beyond the data


def test_categories_stay_what_they_are():
    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(0, 3, 50), rng.normal(size=50)], axis=1)
    found = inputs_beyond(x, 500, 1.0, seed=0)
    assert set(np.unique(found[:, 0])) == {0.0, 1.0, 2.0}
    assert found[:, 1].std() > x[:, 1].std()


def test_augmentations_make_inputs(line):
    data, teacher = line
    with pytest.raises(ValueError, match="not an augmentation"):
        credo.distill(teacher, None, data, beyond=credo.augmentations.noise)
    found = inputs_beyond(data.x, 10, credo.augmentations.noise(0.1), seed=0)
    distances = np.abs(found[:, None] - data.x[None]).max(-1).min(1)
    assert distances.max() < 1


# --- beside a running sampler

ONLINE = credo.Distilled(credo.SGLD(num_samples=6, num_warmup=8, thin=2, batch_size=7), student="mlp:4")


def test_online_keeps_the_contract():
    testing.check_method(ONLINE)


def test_online_learns_from_draws_that_are_gone(line):
    data, teacher = line
    sampler = credo.SGLD(num_samples=500, num_warmup=500, thin=10, step_size=0.1)
    found = credo.fit(teacher.model, data, credo.Distilled(sampler, student="mlp:10"))
    ours, theirs = found.predict(data.x), teacher.predict(data.x)
    assert np.sqrt(np.mean((ours.mean - theirs.mean) ** 2 / theirs.variance)) < 0.3
    assert 0.5 < np.mean(np.sqrt(ours.epistemic)) / np.mean(np.sqrt(theirs.epistemic)) < 2
    assert "held-out" in found.diagnostics.verdict


def test_online_beside_a_last_layer_learns_from_inputs():
    model = credo.models.regression(credo.networks.MLP([4], out=1, inputs=1))
    head = credo.models.last_layer(model, trained=credo.networks.MLP([4], out=1, inputs=1, seed=3))
    found = credo.fit(head, credo.datasets.gap(), ONLINE)
    assert isinstance(found, credo.Student)
    assert found.predict([[0.0]]).std.shape == (1,)


def test_online_is_for_samplers():
    with pytest.raises(ValueError, match=r"credo\.SGLD"):
        credo.Distilled(credo.MAP())
    with pytest.raises(ValueError, match="learning_rate"):
        credo.Distilled(learning_rate=0.0)


# --- bad input


def counts(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Poisson(jax.nn.softplus(slope * x[:, 0])), obs=y)


BAD = {
    "no inputs": ({"inputs": None}, "nothing to distil on"),
    "empty inputs": ({"inputs": np.zeros((0, 2))}, "inputs is empty"),
    "one input": ({"inputs": np.zeros((1, 2))}, "1 row"),
    "other columns": ({"inputs": np.zeros((9, 3))}, "rows of shape"),
    "wrong outputs": ({"student": credo.networks.MLP([5], out=1)}, "needs 3: a mean"),
    "no network": ({"student": "mpl:5"}, "unknown"),
    "a sampler": ({"method": credo.NUTS()}, "credo.MAP"),
    "negative noise": ({"beyond": -1.0}, "beyond must be a positive number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(line, case):
    data, teacher = line
    changes, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        credo.distill(teacher, **({"inputs": data.x, "student": "mlp:4", "method": BRIEF} | changes))


def test_counts_have_no_student():
    x = np.linspace(0, 1, 10)
    teacher = credo.fit(credo.Model(counts), (x, np.arange(10.0)), BRIEF)
    with pytest.raises(ValueError, match="counts"):
        credo.distill(teacher, None, x)


def test_diagnostics_advise():
    assert "nats per row" in diagnose_student(5, StudentEvidence(10, 0.5, 0.1, 0.1)).verdict
    assert "epistemic part" in diagnose_student(5, StudentEvidence(10, 0.0, 0.1, 0.9)).verdict
    assert "says what its teacher says" in diagnose_student(5, StudentEvidence(10, 0.0, 0.1, 0.1)).verdict
