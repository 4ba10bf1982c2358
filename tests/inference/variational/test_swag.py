"""SWAG is the Gaussian of the iterates it saw: exactly, in bounded memory, whatever the chunks it ran in."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import credo
from credo import random
from credo.covariance import Diagonal, LowRank
from credo.inference.engine import driver as engine
from credo.inference.variational.swag import LEAST_VARIANCE, SWAG, Iterates
from tests.covariance.dense import dense
from tests.statistical.moments import assert_covariance
from tests.statistical.targets import NOISE, Target, linear_regression

# 13 iterates, of which the last step but two is one.
SHORT = SWAG(
    num_steps=51, num_warmup=10, collect_every=3, rank=5, batch_size=7, learning_rate=0.01, collecting_rate=0.02
)


@dataclass(frozen=True)
class Recorded(SWAG):
    """Keeps theta after every step, to compare with."""

    def draw(self, model: credo.Model, state: Any) -> Any:
        return state.training.theta


@pytest.fixture(scope="module")
def data() -> credo.Data:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 20)
    return credo.Data(x, 10 + 3 * np.sin(2 * x) + 0.1 * rng.normal(size=20), standardise=True)


@pytest.fixture(scope="module")
def model(data: credo.Data) -> credo.Model:
    return credo.models.regression(credo.networks.MLP([4], out=1, inputs=1)).bind(data)


@pytest.fixture(scope="module")
def target() -> Target:
    return linear_regression()


def fitted(model: credo.Model, data: credo.Data, method: SWAG) -> tuple[credo.Gaussian, np.ndarray]:
    """The posterior, and the iterates that it should be of, (T, n), in the order of the template."""
    recorded = Recorded(**vars(method))
    run = engine.run(recorded, model, data.batch(), seed=3)
    every = {name: leaf[0, method.collect_every - 1 :: method.collect_every] for name, leaf in run.draws.items()}
    return recorded.posterior(model, run), flat(every, model)


def flat(theta: dict[str, np.ndarray], model: credo.Model) -> np.ndarray:
    """Leaves (rows, …) side by side, in the order of the template."""
    return np.concatenate([theta[name].reshape(len(theta[name]), -1) for name in model.template], axis=1).astype(float)


def mean_of(posterior: credo.Gaussian) -> np.ndarray:
    return flat({name: leaf[None] for name, leaf in posterior.mean.items()}, posterior.model)[0]


# -- moments -----------------------------------------------------------------------------------------------


def test_low_rank_moments_are_those_of_the_iterates(model: credo.Model, data: credo.Data) -> None:
    posterior, iterates = fitted(model, data, SHORT)
    assert iterates.shape == (SHORT.num_collected, 14) == (13, 14)
    mean, variance = iterates.mean(0), iterates.var(0)
    last = iterates[-5:] - mean
    covariance = dense(posterior.root, model.template)
    np.testing.assert_allclose(mean_of(posterior), mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        covariance, 0.5 * np.diag(variance) + 0.5 * last.T @ last / 4, rtol=1e-5, atol=1e-5 * variance.max()
    )
    assert isinstance(posterior.root, LowRank)
    assert posterior.root.rank == 5
    assert posterior.num_bytes == 4 * 7 * 14
    np.testing.assert_allclose(2 * flat_square(posterior.root.scale, model), variance, rtol=1e-5, atol=1e-12)
    variances = {name: leaf[None] for name, leaf in posterior.root.variance().items()}
    np.testing.assert_allclose(flat(variances, model)[0], np.diag(covariance), rtol=1e-5)


def flat_square(scale: dict[str, np.ndarray], model: credo.Model) -> np.ndarray:
    return flat({name: leaf[None] ** 2 for name, leaf in scale.items()}, model)[0]


@pytest.mark.parametrize("rank", [None, 0])
def test_the_diagonal_form_has_the_whole_variance(model: credo.Model, data: credo.Data, rank: int | None) -> None:
    posterior, iterates = fitted(model, data, replace(SHORT, rank=rank))
    assert isinstance(posterior.root, Diagonal)
    np.testing.assert_allclose(mean_of(posterior), iterates.mean(0), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(flat_square(posterior.root.scale, model), iterates.var(0), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("rank", [13, 50])
def test_as_many_columns_as_iterates_are_their_sample_covariance(
    model: credo.Model, data: credo.Data, rank: int
) -> None:
    posterior, iterates = fitted(model, data, replace(SHORT, rank=rank))
    assert posterior.root.rank == 13
    expected = 0.5 * np.diag(iterates.var(0)) + 0.5 * np.cov(iterates.T)
    np.testing.assert_allclose(
        dense(posterior.root, model.template), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max()
    )


def test_draws_have_the_covariance_of_the_root(model: credo.Model, data: credo.Data, seed: int) -> None:
    posterior, _ = fitted(model, data, SHORT)
    draws = flat(posterior.sample(random.key(seed), 20_000), model)
    assert_covariance(draws, dense(posterior.root, model.template).astype(float))


def test_the_variance_is_sound_far_from_zero_and_never_negative() -> None:
    """Where E[x²] − E[x]² has lost every digit; and a weight that never moves has a variance of zero, told as tiny."""
    rng = np.random.default_rng(0)
    values = (1e4 + rng.normal(size=(200, 3)) * [0.1, 1.0, 0.0]).astype(np.float32)
    iterates = Iterates.none({"w": jnp.zeros(3)}, 0)
    for row in values:
        iterates = iterates.add({"w": jnp.asarray(row)})
    exact = values.astype(np.float64).var(0)
    np.testing.assert_allclose(iterates.variance["w"], exact, rtol=0.02)
    assert np.any(np.abs(np.mean(values**2, 0) - np.mean(values, 0) ** 2 - exact) > 0.1)
    assert iterates.variance["w"][2] == 0
    np.testing.assert_allclose(iterates.root().variance()["w"][2], LEAST_VARIANCE, rtol=1e-5)


@pytest.mark.full
def test_the_result_does_not_depend_on_the_chunks(model: credo.Model, data: credo.Data) -> None:
    runs = [engine.run(SHORT, model, data.batch(), seed=3, records_per_chunk=size) for size in (1, 7, 4096)]
    parts = [SHORT.posterior(model, run) for run in runs]
    bits = [{name: leaf.tobytes() for name, leaf in (p.mean | p.root.to_arrays()).items()} for p in parts]
    assert bits[0] == bits[1] == bits[2]


# -- phases ------------------------------------------------------------------------------------------------


def test_the_rate_changes_with_the_phase() -> None:
    method = SWAG(num_warmup=3, learning_rate=0.5, collecting_rate=2.0, momentum=0.0)
    sizes, state = [], method.training.transformation().init({"w": jnp.zeros(())})
    for _ in range(5):
        update, state = method.training.transformation().update({"w": jnp.ones(())}, state)
        sizes.append(-float(update["w"]))
    assert sizes == [0.5, 0.5, 0.5, 2.0, 2.0]
    scheduled = SWAG(num_warmup=3, learning_rate=optax.linear_schedule(1.0, 0.0, 2), collecting_rate=0.25)
    assert scheduled.to_config()["collecting_rate"] == 0.25


def test_momentum_is_that_of_optax(model: credo.Model, data: credo.Data) -> None:
    method = replace(SHORT, learning_rate=0.01, collecting_rate=0.01, momentum=0.8)
    same = replace(method, optimizer=optax.sgd(0.01, momentum=0.8))
    (one, _), (other, _) = fitted(model, data, method), fitted(model, data, same)
    np.testing.assert_allclose(mean_of(one), mean_of(other), rtol=1e-5)


def test_memory_does_not_grow_with_the_run(model: credo.Model, data: credo.Data) -> None:
    def num_bytes(method: SWAG) -> int:
        theta = model.initial_theta(random.key(0))
        state = jax.eval_shape(lambda: method.init(random.key(0), model, theta, data.batch(), None))
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))

    method = SWAG(num_steps=100, num_warmup=0, collect_every=1, rank=5)
    assert num_bytes(replace(method, num_steps=10_000)) == num_bytes(method)
    # theta, its gradient and momentum, mean, variance, and five iterates; counters are not worth telling.
    assert method.describe(model, data).num_bytes == 4 * 10 * 14
    assert num_bytes(method) - 4 * 9 * 14 < 20
    assert "the last 5 iterates" in str(method.describe(model, data))
    assert "iterates and" not in str(replace(method, rank=None).describe(model, data))


# -- use ---------------------------------------------------------------------------------------------------


def test_predicts_from_a_hundred_draws(model: credo.Model, data: credo.Data, tmp_path) -> None:
    posterior = credo.fit(model, data, SHORT)
    prediction = posterior.predict(np.linspace(-2, 2, 5))
    assert len(prediction.weights) == 100
    assert np.isfinite(prediction.mean).all()
    assert (prediction.epistemic > 0).all()
    assert posterior.trace["log_joint"].shape == (1, 51)
    posterior.save(tmp_path / "run")
    np.testing.assert_array_equal(
        credo.load(tmp_path / "run").predict(np.zeros(1)).mean, posterior.predict(np.zeros(1)).mean
    )


@pytest.mark.full
def test_multi_swag_is_a_mixture(model: credo.Model, data: credo.Data) -> None:
    posterior = credo.fit(model, data, credo.DeepEnsemble(SHORT, members=3))
    assert isinstance(posterior, credo.Mixture)
    assert [type(member.root) for member in posterior.members] == [LowRank] * 3
    means = np.stack([mean_of(member) for member in posterior.members])
    assert np.ptp(means, axis=0).max() > 0.1
    assert np.isfinite(posterior.predict(np.linspace(-2, 2, 5)).mean).all()
    assert posterior.diagnostics.num_members == 3
    assert posterior.diagnostics.verdict in str(posterior.diagnostics)


def test_diagnostics_speak_of_the_log_joint(target: Target) -> None:
    posterior = credo.fit(target.model, target.data, SWAG(num_steps=1000, num_warmup=500, learning_rate=0.01))
    told = posterior.diagnostics
    assert told.objective == "log joint"
    assert told.kl is None
    assert told.num_steps == 1000
    assert "log likelihood" in str(told)
    assert "KL" not in str(told)
    assert posterior.evidence.k_hat is not None


def test_full_batches_collapse_and_the_diagnostics_say_so(target: Target) -> None:
    """Descent without noise arrives, and stands still."""
    method = SWAG(num_steps=1200, num_warmup=1000, learning_rate=0.05, collecting_rate=0.05, batch_size=None)
    posterior = credo.fit(target.model, target.data, method)
    assert "collapsed to a point" in posterior.diagnostics.verdict
    np.testing.assert_allclose(np.sort(mean_of(posterior)), np.sort(target.mean), atol=1e-4)


@pytest.mark.quick
def test_spread_is_of_the_order_of_the_posterior_at_the_right_rate(target: Target, seed: int) -> None:
    """ε = 2 n D/(N tr C), C the covariance of a row's gradient, is the best constant rate (Mandt et al., 2017).

    Theirs are rows drawn with repetition and small steps; here a factor of two is all that is asked for.
    """
    design = np.column_stack([target.data.x, np.ones(30)])
    gradients = design * (target.data.y - design @ target.mean)[:, None] / NOISE**2
    rate = 2 * 5 * 4 / (30 * np.cov(gradients.T, bias=True).trace())
    method = SWAG(
        num_steps=7500, num_warmup=500, collect_every=7, learning_rate=rate, collecting_rate=rate, momentum=0.0,
        batch_size=5, rank=None,
    )  # fmt: skip
    posterior = credo.fit(target.model, target.data, method, seed=seed)
    kernel, bias = sorted(posterior.mean, key=lambda name: "bias" in name)
    mean = np.append(posterior.mean[kernel], posterior.mean[bias])
    sds = np.append(posterior.root.scale[kernel], posterior.root.scale[bias])
    np.testing.assert_array_less(np.abs(np.log2(sds / target.sd)), 1.0)
    np.testing.assert_array_less(np.abs(mean - target.mean), 0.25 * target.sd)
    # A tenth of the rate does not wander as far.
    slower = replace(method, learning_rate=rate / 10, collecting_rate=rate / 10)
    slow = credo.fit(target.model, target.data, slower, seed=seed)
    assert np.all(np.append(slow.root.scale[kernel], slow.root.scale[bias]) < 0.5 * sds)


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 1}, "rank must be a whole number of at least 2, got 1"),
        ({"rank": -3}, "rank must be a whole number of at least 2"),
        (
            {"num_steps": 30, "num_warmup": 0, "collect_every": 20},
            r"collects 1 iterate\(s\), and a spread needs at least 2",
        ),
        ({"num_warmup": -1}, "num_warmup must be a whole number of at least 0"),
        ({"collect_every": 0}, "collect_every must be"),
        ({"collecting_rate": 0.0}, "collecting_rate must be positive"),
        ({"momentum": 1.0}, "momentum must lie between 0 and 1"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"optimizer": "sdg"}, "optax has no 'sdg'"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SWAG(**settings)


def test_an_absurd_rate_stops_with_advice(target: Target) -> None:
    with pytest.raises(credo.NonFiniteError, match="To mend it: lower the learning_rate and the collecting_rate"):
        credo.fit(target.model, target.data, SWAG(learning_rate=1e6))
    with pytest.raises(credo.NonFiniteError, match=r"at step \d+") as caught:
        credo.fit(
            target.model,
            target.data,
            SWAG(num_steps=2050, num_warmup=50, collect_every=1, learning_rate=1e-3, collecting_rate=1e4),
        )
    assert caught.value.step >= 50
    if caught.value.posterior is not None:
        assert all(np.isfinite(leaf).all() for leaf in caught.value.posterior.mean.values())


def test_a_run_cut_short_before_the_first_iterate_is_a_point(model: credo.Model, data: credo.Data) -> None:
    """As Ctrl-C leaves it, or a failure: where descent stands, and the diagnostics say what it is."""
    run = engine.run(SHORT, model, data.batch())
    empty = run.states._replace(iterates=jax.tree.map(np.zeros_like, run.states.iterates))
    posterior = SHORT.posterior(model, replace(run, states=empty))
    for name, leaf in posterior.mean.items():
        np.testing.assert_array_equal(leaf, run.states.training.theta[name][0])
    assert "collapsed to a point" in posterior.diagnostics.verdict
