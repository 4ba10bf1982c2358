"""The method "auto": which class a problem falls into, and why."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo.inference import auto
from credo.inference.auto import choose


def data_of(num_rows: int, num_columns: int = 2, labels: bool = False) -> credo.Data:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, num_columns))
    y = x[:, 0] + 0.1 * rng.normal(size=num_rows)
    return credo.Data(x, (y > 0).astype(int) if labels else y, standardise=True)


def regression(*features: int, **settings: object) -> credo.Model:
    return credo.models.regression(credo.networks.MLP(features, out=1), **settings)


def curve(x, y=None):
    """A program of the user's own: no network, no starting values."""
    w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(jnp.tanh(x @ w), 0.1), obs=y)


def line(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, 0.1), obs=y)


def line_with_learned_prior(x, y=None):
    scale = numpyro.param("scale", 1.0, constraint=dist.constraints.positive)
    w = numpyro.sample("w", dist.Normal(0, scale))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x[:, 0] * w, 0.1), obs=y)


def line_with_noisy_inputs(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        true = numpyro.sample("true", dist.Normal(x[:, 0], 0.1))
        numpyro.sample("y", dist.Normal(true * w, 0.1), obs=y)


@pytest.mark.parametrize(
    ("model", "num_rows", "expected", "said"),
    [
        (regression(10), 50, credo.NUTS, "42 parameters and 50 rows: small enough for exact sampling, by NUTS"),
        (regression(50, 50), 50, credo.MCLMC, "2,752 parameters and 50 rows: too many for NUTS"),
        (regression(10), 50_000, credo.MCLMC, "42 parameters and 50,000 rows: too many for NUTS"),
        (regression(50, 50), 50_000, credo.DeepEnsemble, "too many to sample"),
        (regression(400, 400), 5, credo.DeepEnsemble, "162,002 parameters and 5 rows: too many to sample"),
        (regression(1200, 1200), 50, credo.Laplace, "Laplace makes the last layer uncertain"),
        (credo.Model(curve), 50, credo.ParallelTempering, "2 parameters and 50 rows: small enough"),
        (credo.Model(curve), 200_000, credo.MCLMC, "too many for NUTS"),
        (credo.Model(line), 200_000, credo.ClosedForm, "2 parameters and 200,000 rows: the mean is linear in them"),
        (regression(), 50, credo.ClosedForm, "the exact posterior is a formula"),
        (credo.Model(line_with_learned_prior), 50, credo.BayesByBackprop, "1 parameter and 50 rows: variational"),
        (credo.Model(line_with_noisy_inputs), 50, credo.BayesByBackprop, "latents for each row"),
        (regression(10, prior=credo.priors.learned()), 50, credo.Laplace, "is tuned by the evidence"),
        (regression(10, noise="tuned"), 50, credo.Laplace, "(noise) is tuned"),
    ],
)
def test_the_classes_and_their_reasons(model, num_rows, expected, said):
    choice = choose(model, data_of(num_rows))
    assert type(choice.method) is expected
    assert said in choice.why


def test_a_large_program_without_a_network(monkeypatch):
    monkeypatch.setattr(auto, "MAX_WORK_OF_MCLMC", 1)
    monkeypatch.setattr(auto, "MAX_PARAMETERS_OF_ENSEMBLES", 1)
    assert isinstance(choose(credo.Model(curve), data_of(200_000)).method, credo.SWAG)


def test_the_points_of_a_condition_count_as_rows_do():
    """A gradient with a condition at every row costs two and a half of one without."""
    prior = credo.priors.consistent(None, credo.conditions.smooth())
    choice = choose(regression(10, prior=prior), data_of(1500))
    assert isinstance(choose(regression(10), data_of(1500)).method, credo.NUTS)
    assert choice.method == auto.LONG_CHAINS
    assert choice.why.startswith("42 parameters and 1,500 rows, with conditions at 1,500 points: ")


def test_a_border_belongs_to_the_class_below():
    small = auto.MAX_WORK_OF_NUTS // 42
    assert isinstance(choose(regression(10), data_of(small)).method, credo.NUTS)
    assert isinstance(choose(regression(10), data_of(small + 1)).method, credo.MCLMC)
    short = auto.MAX_WORK_OF_LONG_CHAINS // 42
    assert choose(regression(10), data_of(short)).method == auto.LONG_CHAINS
    assert choose(regression(10), data_of(short + 1)).method == auto.SHORT_CHAINS
    middle = auto.MAX_WORK_OF_MCLMC // 42
    assert isinstance(choose(regression(10), data_of(middle)).method, credo.MCLMC)
    assert isinstance(choose(regression(10), data_of(middle + 1)).method, credo.DeepEnsemble)


def test_the_first_answer_takes_the_middle_class():
    """A thousand rows of ten columns and the default network of the command line."""
    choice = choose(regression(50, 50), data_of(1000, 10))
    assert choice.method == auto.SHORT_CHAINS
    assert choice.why.startswith("3,152 parameters and 1,000 rows: ")


def test_large_data_are_seen_in_minibatches_for_a_bounded_number_of_steps():
    training = choose(regression(50, 50), data_of(1_000_000)).method.method
    assert training.batch_size == auto.BATCH_SIZE
    assert training.num_steps == auto.MAX_STEPS
    # The rate falls to zero at the end.
    assert float(training.learning_rate(training.num_steps)) == pytest.approx(0, abs=1e-6)


def test_a_bound_model_is_taken_as_it_is():
    data = data_of(50)
    assert choose(regression(10).bind(data), data) == choose(regression(10), data)


TINY = {
    credo.NUTS: {"num_samples": 4, "num_warmup": 4, "num_chains": 2, "max_depth": 2},
    credo.MCLMC: {"num_samples": 4, "num_warmup": 4, "num_chains": 2, "thin": 1, "start": credo.MAP(num_steps=4)},
    credo.ParallelTempering: {"num_samples": 4, "num_warmup": 4, "num_chains": 2, "num_temperatures": 2},
    credo.BayesByBackprop: {"num_steps": 4},
    credo.SWAG: {"num_steps": 40, "num_warmup": 4},
    credo.ClosedForm: {"num_samples": 4},
}


def tiny(method):
    """The method with its own kind of settings, and few steps."""
    if type(method) in TINY:
        return replace(method, **TINY[type(method)])
    part = "training" if isinstance(method, credo.Laplace) else "method"
    return replace(method, **{part: replace(getattr(method, part), num_steps=4)})


HEAVY = pytest.mark.full


@pytest.mark.parametrize(
    ("borders", "labels"),
    [
        pytest.param(["MAX_WORK_OF_NUTS"], False, id="middle"),
        pytest.param(
            ["MAX_WORK_OF_NUTS", "MAX_WORK_OF_MCLMC", "MAX_PARAMETERS_OF_ENSEMBLES"],
            True,
            id="huge-classes",
            marks=HEAVY,
        ),
        pytest.param([], True, id="small-classes", marks=HEAVY),
        pytest.param(["MAX_WORK_OF_NUTS"], True, id="middle-classes", marks=HEAVY),
        pytest.param(["MAX_WORK_OF_NUTS", "MAX_WORK_OF_MCLMC"], True, id="large-classes", marks=HEAVY),
        pytest.param(
            ["MAX_WORK_OF_NUTS", "MAX_WORK_OF_MCLMC", "MAX_PARAMETERS_OF_ENSEMBLES"], False, id="huge", marks=HEAVY
        ),
    ],
)
def test_every_choice_runs(monkeypatch, borders, labels):
    for name in borders:
        monkeypatch.setattr(auto, name, 1)
    net = credo.networks.MLP([3], out=1)
    model = credo.models.classification(net) if labels else credo.models.regression(net)
    data = data_of(40, labels=labels)
    posterior = credo.fit(model, data, tiny(choose(model, data).method))
    assert np.isfinite(posterior.predict(data.x).log_prob(data.y)).all()


@pytest.mark.full
@pytest.mark.parametrize("borders", [["NUTS"], ["NUTS", "LONG_CHAINS"], ["NUTS", "LONG_CHAINS", "MCLMC"]])
def test_every_choice_takes_conditions(monkeypatch, borders):
    for name in borders:
        monkeypatch.setattr(auto, f"MAX_WORK_OF_{name}", 1)
    prior = credo.priors.consistent(None, [credo.conditions.monotone({0: "+"}), credo.conditions.smooth()])
    model, data = regression(3, prior=prior), data_of(40)
    posterior = credo.fit(model, data, tiny(choose(model, data).method))
    assert np.isfinite(posterior.predict(data.x).log_prob(data.y)).all()


@pytest.mark.parametrize(
    "program", [line_with_noisy_inputs, *(pytest.param(one, marks=HEAVY) for one in (line, line_with_learned_prior))]
)
def test_every_choice_for_programs_runs(program):
    model, data = credo.Model(program), data_of(40)
    posterior = credo.fit(model, data, tiny(choose(model, data).method))
    assert np.isfinite(posterior.predict(data.x).mean).all()
