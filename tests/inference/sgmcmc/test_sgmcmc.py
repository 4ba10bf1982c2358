"""SGLD and SGHMC: schedules, cycles and restarts, preconditioning, what they refuse; and the bias of their step."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest

import credo
from credo import random
from credo.evaluation.discretisation import DiscretisationBias, discretisation_bias
from credo.inference.engine import driver as engine
from credo.inference.method import Method
from credo.inference.outcome import Outcome
from credo.inference.sgmcmc.schedules import Constant, Cosine, Polynomial
from credo.inference.sgmcmc.sghmc import SGHMC
from credo.inference.sgmcmc.sgld import SGLD
from tests.statistical.moments import sigmas

METHODS = [SGLD, SGHMC]
TINY = {"num_samples": 6, "num_warmup": 4, "thin": 2, "num_chains": 2}


@pytest.fixture(scope="module")
def data() -> credo.Data:
    x = np.linspace(-1, 1, 24)
    return credo.Data(x, 5 + 2 * x + np.sin(5 * x), standardise=True)


@pytest.fixture(scope="module")
def model() -> credo.Model:
    return credo.models.regression(credo.networks.MLP([4], out=1), noise=0.3)


def run_of(method: Method, model, data, *, seed: int = 0, records_per_chunk: int = 4096) -> Outcome:
    return engine.run(method, model.bind(data), data.batch(), seed=seed, records_per_chunk=records_per_chunk)


# --- schedules


def test_schedules_follow_their_equations():
    steps = np.arange(100)
    np.testing.assert_allclose([Constant(0.3)(step) for step in (0, 7)], 0.3)
    np.testing.assert_allclose(
        jax.vmap(Polynomial(0.2, delay=10, power=0.5))(steps), 0.2 / np.sqrt(1 + steps / 10), rtol=1e-5
    )
    np.testing.assert_allclose(
        jax.vmap(Cosine(0.2, num_steps=100))(steps), 0.1 * (1 + np.cos(np.pi * steps / 100)), rtol=1e-4
    )


def test_a_long_cosine_never_stands_still():
    assert float(Cosine(0.1, num_steps=10**6)(10**6 - 1)) > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(0.0), "size must be a positive number, got 0.0"),
        (lambda: Polynomial(-1.0), "first must be a positive number"),
        (lambda: Polynomial(0.1, delay=0), "delay must be a positive number"),
        (lambda: Polynomial(0.1, power=1.5), "power must be at most 1"),
        (lambda: Cosine(float("nan"), 10), "first must be a positive number, got nan"),
        (lambda: Cosine(0.1, 0), "num_steps must be a whole number of at least 1"),
    ],
)
def test_schedules_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- what the methods refuse


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_samples": 0}, "num_samples must be a whole number of at least 1, got 0"),
        ({"thin": 0}, "thin must be a whole number of at least 1"),
        ({"num_chains": -1}, "num_chains must be a whole number of at least 1"),
        ({"num_cycles": 0}, "num_cycles must be a whole number of at least 1"),
        ({"num_warmup": -1}, "num_warmup must be a whole number of at least 0"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"step_size": 0.0}, "step_size must be a positive number, got 0.0"),
        ({"step_size": -1e-3}, "step_size must be a positive number"),
        ({"step_size": "decreasing"}, "step_size must be a positive number.* a schedule.*, got 'decreasing'"),
        ({"step_size": lambda step: 0.1 - step}, "step_size must be positive at every step, got -0.9 at step 1"),
        ({"step_size": lambda step: jnp.ones(3)}, r"one number per step, got an array of shape \(3,\)"),
        (
            {"step_size": Cosine(0.1, 10)},
            "schedule shorter than one cycle: a cycle has 15,000 steps.* all but 10 of them",
        ),
        ({"step_size": optax.linear_schedule(0.1, 0.0, 900)}, "schedule shorter than one cycle"),
        ({"num_samples": 10, "num_cycles": 4}, "10 cannot be shared evenly by 4 cycles; keep 12"),
        ({"num_samples": 3, "num_cycles": 4}, "3 cannot be shared evenly by 4 cycles; keep 4"),
        (
            {"preconditioner": "rmsprob"},
            "preconditioner must be None or 'rmsprop', got 'rmsprob'; did you mean 'rmsprop'",
        ),
        ({"preconditioner": "rmsprop", "num_warmup": 0}, "learned during the warm-up, but num_warmup is 0"),
        (
            {"restart": "priory", "num_cycles": 2},
            "restart must be 'none' or 'prior', got 'priory'; did you mean 'prior'",
        ),
        ({"restart": "prior"}, "num_cycles is 1; ask for more cycles"),
    ],
)
def test_settings(method, settings, message):
    with pytest.raises(ValueError, match=message):
        method(**settings)


@pytest.mark.parametrize("friction", [0.0, -0.1, 1.5, float("nan")])
def test_friction(friction):
    with pytest.raises(ValueError, match="friction must be above 0 and at most 1"):
        SGHMC(friction=friction)


@pytest.mark.parametrize("method", METHODS)
def test_diverging_step_stops_with_the_step_and_advice(model, data, method):
    with pytest.raises(credo.NonFiniteError, match=r"at step \d+\..*take a smaller step_size") as caught:
        credo.fit(model, data, method(**TINY, step_size=1e6))
    assert 0 < caught.value.step < method(**TINY).plan().num_steps


def test_divergence_after_some_draws_keeps_them(model, data):
    """Stable at first, and then not: what was drawn before is handed over, and finite."""
    late = SGLD(num_samples=400, num_warmup=5, thin=1, num_chains=1, step_size=lambda t: jnp.where(t < 200, 1e-3, 1e6))
    with pytest.raises(credo.NonFiniteError, match=r"error\.posterior holds the last good state") as caught:
        run_of(late, model, data, records_per_chunk=10)
    assert 200 < caught.value.step < 300
    posterior = caught.value.posterior
    assert posterior.num_draws >= 190
    assert all(np.isfinite(leaf).all() for leaf in posterior.theta.values())


# --- one step


def started(method, model, data):
    """The state at step 0; a compiled step; and the compiled gradient of the log joint."""
    bound, batch = model.bind(data), data.batch()
    begin = jax.jit(lambda key: method.init(key, bound, bound.initial_theta(key), batch, None))
    step = jax.jit(lambda key, state: method.step(key, bound, state, batch)[0])
    gradient = jax.jit(jax.grad(lambda theta: bound.log_joint(theta, batch)))
    return begin(random.key(0)), step, gradient


def test_a_step_ascends_the_log_joint_and_adds_noise_of_variance_epsilon(model, data, seed):
    """ε is the step size over N; over many keys, moves have mean ε/2·∇log p(theta, D) and variance ε."""
    state, step, gradient_of = started(SGLD(**TINY, step_size=0.24), model, data)
    keys = jax.random.split(random.key(seed), 4000)
    moved = jax.jit(lambda keys: jax.lax.map(lambda key: step(key, state).theta, keys))(keys)
    epsilon = 0.24 / 24
    for name, gradient in gradient_of(state.theta).items():
        moves = np.asarray(moved[name] - state.theta[name])
        error = np.sqrt(epsilon / 4000)
        # A mean and a variance of each of 13 numbers.
        np.testing.assert_allclose(moves.mean(0), epsilon / 2 * gradient, atol=sigmas(26) * error)
        np.testing.assert_allclose(moves.var(0), epsilon, rtol=sigmas(26) * np.sqrt(2 / 4000))


def test_sghmc_with_full_friction_is_sgld(model, data):
    settings = TINY | {"step_size": 0.02, "batch_size": 7}
    ours, theirs = (run_of(method, model, data) for method in (SGHMC(**settings, friction=1.0), SGLD(**settings)))
    for name, leaf in ours.draws.items():
        np.testing.assert_allclose(leaf, theirs.draws[name], rtol=1e-4, atol=1e-6)


# --- cycles, restarts, weights


CYCLES = {"num_samples": 12, "num_warmup": 10, "thin": 3, "num_chains": 2, "num_cycles": 3}


@pytest.mark.parametrize("method", METHODS)
def test_draws_come_from_the_sampling_phase_of_each_cycle(model, data, method):
    cyclical = method(**CYCLES, step_size=0.05)
    run = run_of(cyclical, model, data)
    assert cyclical.plan().steps_per_cycle == 22
    in_a_cycle = 10 + 3 * np.arange(1, 5) - 1
    cosine = 0.025 * (1 + np.cos(np.pi * np.arange(22) / 22))
    np.testing.assert_allclose(run.infos.step_size, np.tile(cosine[in_a_cycle], (2, 3)), rtol=1e-4)
    np.testing.assert_allclose(run.warmup_infos.step_size, np.tile(cosine[:10], (2, 3)), rtol=1e-4)
    posterior = cyclical.posterior(model.bind(data), run)
    assert (posterior.num_chains, posterior.num_draws) == (2, 12)
    assert posterior.weights is None


def mirrored() -> tuple[credo.Model, credo.Data]:
    """y ~ N(w², 0.1) around 1: the posterior has modes at −1 and 1, far apart."""

    def program(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(w**2, 0.1), obs=y)

    return credo.Model(program), credo.Data(np.zeros((10, 1)), np.ones(10))


def test_restarts_find_both_modes_and_a_chain_without_them_one(seed):
    """Sixteen cycles from the prior see one side only once in 30,000 seeds."""
    model, data = mirrored()
    settings = {"num_samples": 320, "num_warmup": 200, "num_chains": 1, "thin": 1, "num_cycles": 16, "start": "prior"}
    signs = {
        restart: np.sign(
            run_of(SGLD(**settings, step_size=1e-3, restart=restart), model, data, seed=seed).draws["w"][0]
        )
        for restart in ("none", "prior")
    }
    by_cycle = signs["prior"].reshape(16, 20)
    assert (by_cycle == by_cycle[:, :1]).all()
    assert set(by_cycle[:, 0]) == {-1, 1}
    assert len(set(signs["none"])) == 1


def test_restarts_begin_at_rest(model, data):
    """After a restart theta is near a draw from the prior, not near the last draw of the cycle before."""
    method = SGHMC(num_samples=2, num_warmup=0, thin=1, num_chains=1, num_cycles=2, restart="prior", step_size=1e-9)
    run = run_of(method, model, data)
    kernel = run.draws["head.kernel"][0]
    assert np.abs(kernel[1] - kernel[0]).min() > 1e-2
    assert max(np.abs(leaf).max() for leaf in run.states.aux.values()) < 1e-3


def test_decreasing_steps_weigh_the_draws(model, data, tmp_path):
    decreasing = SGLD(**TINY, step_size=Polynomial(1e-2, delay=2))
    posterior = credo.fit(model, data, decreasing)
    sizes = posterior.infos["step_size"]
    assert np.all(np.diff(sizes) < 0)
    np.testing.assert_allclose(posterior.weights, sizes / sizes.sum())
    prediction = posterior.predict([0.0])
    by_hand = np.average(prediction.functions[:, 0], weights=posterior.weights.ravel())
    np.testing.assert_allclose(prediction.mean, by_hand, rtol=1e-5)
    posterior.save(tmp_path / "run")
    np.testing.assert_array_equal(credo.load(tmp_path / "run").weights, posterior.weights)


def test_a_schedule_that_is_constant_weighs_all_draws_alike(model, data):
    posterior = credo.fit(model, data, SGLD(**TINY, step_size=optax.constant_schedule(1e-3)))
    assert posterior.weights is None


# --- preconditioner


def test_preconditioner_is_the_mean_square_and_fixed_after_the_warm_up(model, data):
    method = SGLD(num_samples=5, num_warmup=3, thin=1, num_chains=1, step_size=1e-3, preconditioner="rmsprop")
    state, step, gradient_of = started(method, model, data)
    squares, seen = [], []
    for seed in range(6):
        seen.append(np.asarray(gradient_of(state.theta)["head.kernel"]) / 24)
        state = step(random.key(seed), state)
        squares.append(np.asarray(state.mean_square["head.kernel"]))
    weights = 0.99 ** np.array([2, 1, 0])
    expected = np.average(np.square(seen[:3]), axis=0, weights=weights)
    np.testing.assert_allclose(squares[0], seen[0] ** 2, rtol=1e-4)
    np.testing.assert_allclose(squares[2], expected, rtol=1e-4)
    assert all(np.array_equal(squares[2], later) for later in squares[3:])


# --- the same draws


@pytest.mark.parametrize(
    "method",
    [
        SGLD(**TINY, batch_size=7),
        SGLD(**TINY, step_size=Polynomial(1e-2, delay=3), start="prior"),
        SGHMC(**CYCLES, restart="prior", preconditioner="rmsprop", batch_size=5),
    ],
    ids=["minibatches", "decreasing", "cycles"],
)
@pytest.mark.full
def test_same_seed_same_draws_for_any_chunk_size_and_chains_differ(model, data, method):
    whole, by_one = (run_of(method, model, data, seed=3, records_per_chunk=size) for size in (4096, 1))
    other = run_of(method, model, data, seed=4)
    for name, leaf in whole.draws.items():
        assert leaf.tobytes() == by_one.draws[name].tobytes()
        assert not np.array_equal(leaf[0], leaf[1])
        assert not np.array_equal(leaf, other.draws[name])
    assert np.isfinite(whole.infos.log_joint).all()
    np.testing.assert_allclose(whole.infos.log_joint, whole.infos.log_prior + whole.infos.log_likelihood, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_says_what_it_will_keep(model, data, method):
    needs = method(**CYCLES).describe(model, data)
    assert "24 draws" in str(needs)
    assert needs.num_bytes == 4 * 24 * 13 == credo.fit(model, data, method(**CYCLES)).num_bytes


@pytest.mark.parametrize("method", METHODS)
def test_settings_are_values(method):
    one, twin = (method(**TINY, step_size=Polynomial(0.1)) for _ in range(2))
    assert one == twin
    assert hash(one) == hash(twin)
    assert json.loads(json.dumps(one.to_config()))["step_size"] == repr(Polynomial(0.1))


@pytest.mark.parametrize("method", METHODS)
def test_ensemble_of_chains(model, data, method):
    posterior = credo.fit(model, data, credo.DeepEnsemble(method(**(TINY | {"num_chains": 1})), members=3))
    assert (posterior.num_chains, posterior.num_draws) == (3, 6)


# --- the bias of the step


@pytest.fixture(scope="module")
def line() -> tuple[credo.Model, credo.Data]:
    """A constant and nothing else: y ~ N(w, 0.5), w ~ N(0, 1), of precision λ = 1 + N/0.25."""

    def program(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(w * jnp.ones(x.shape[0]), 0.5), obs=y)

    y = np.random.default_rng(0).normal(size=30)
    return credo.Model(program), credo.Data(np.zeros((30, 1)), y)


def true_bias(step_size: float) -> float:
    """Twice the difference of sd(ε) and sd(ε/2), over the latter: sd² = 1/(λ(1 − ελ/4))."""
    stiffness = step_size / 30 * (1 + 30 / 0.25)
    whole, half = 1 / np.sqrt(1 - stiffness / 4), 1 / np.sqrt(1 - stiffness / 8)
    return 2 * (whole / half - 1)


@pytest.mark.parametrize(
    ("method", "verdict"),
    [
        (SGLD(num_samples=2000, num_warmup=100, thin=5, step_size=0.4), "The step is too large"),
        (SGLD(num_samples=2000, num_warmup=100, thin=50, step_size=0.02), "The step will do"),
    ],
    ids=["large", "small"],
)
def test_bias_of_the_step_is_found(line, method, verdict, seed):
    bias = discretisation_bias(*line, method, seed=seed)
    assert bias.verdict.startswith(verdict)
    assert str(bias).endswith(bias.verdict)
    assert bias.mean.shape == bias.sd.shape == (10,)
    assert json.loads(json.dumps(bias.to_dict()))["verdict"] == bias.verdict
    # All inputs have the same function here.
    np.testing.assert_allclose(bias.sd[0], true_bias(method.step_size), atol=sigmas(2) * bias.sd_error[0])
    np.testing.assert_allclose(bias.mean[0], 0.0, atol=sigmas(2) * bias.mean_error[0])


def test_a_short_run_does_not_say_that_all_is_well(line, seed):
    """Its standard errors are too rough for more: it may see a bias where there is none."""
    bias = discretisation_bias(*line, SGLD(num_samples=20, num_warmup=100, thin=5, step_size=0.02), seed=seed)
    assert "will do" not in bias.verdict


def test_verdict_on_few_effective_draws():
    figures = {"mean": np.zeros(2), "mean_error": np.ones(2), "sd": np.zeros(2), "sd_error": np.ones(2)}
    assert DiscretisationBias(np.zeros((2, 1)), **figures).verdict.startswith("Too few effective draws")


def test_verdict_on_a_small_bias_that_is_seen():
    figures = {
        "mean": np.zeros(2),
        "mean_error": np.full(2, 0.01),
        "sd": np.full(2, 0.06),
        "sd_error": np.full(2, 0.01),
    }
    bias = DiscretisationBias(np.zeros((2, 1)), **figures)
    assert bias.verdict == "The step will do: its bias is seen, but small compared with the posterior sd."


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (credo.NUTS(), "method must have a constant step"),
        (SGLD(step_size=Polynomial(0.1)), "only a constant step can be halved, but step_size follows Polynomial"),
        (SGHMC(num_samples=10, num_cycles=2), "only a constant step can be halved, but step_size follows Cosine"),
    ],
)
def test_bias_of_a_step_that_is_not_constant_is_refused(line, method, message):
    with pytest.raises(ValueError, match=message):
        discretisation_bias(*line, method)


def test_halved_keeps_time_and_draws():
    whole = SGHMC(num_samples=10, num_warmup=7, thin=3, step_size=0.02, friction=0.2)
    half = whole.halved()
    assert half == SGHMC(num_samples=10, num_warmup=14, thin=6, step_size=0.01, friction=0.2)
    assert half.plan().num_steps * half.step_size == pytest.approx(whole.plan().num_steps * whole.step_size)
