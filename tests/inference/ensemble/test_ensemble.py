"""Deep ensembles: several modes where there are several, nothing where there is one, and the mixture they make."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest

import credo
from credo import random
from credo.inference.engine import driver as engine
from credo.inference.outcome import Outcome
from credo.posterior import Mixture, PointEnsemble, Provenance
from credo.posterior.loading import KINDS
from credo.posterior.saving import MANIFEST
from tests.statistical.moments import assert_covariance, assert_mean, sigmas
from tests.statistical.targets import NOISE, Target, linear_regression

BIMODAL_NOISE = 0.2
# A seed with which two of the four members start on each side of zero.
BALANCED = 4
X_NEW = np.linspace(-1, 1, 5)


def square(x: np.ndarray, y: np.ndarray | None = None) -> None:
    """y = w² with noise: what is known of w is known of −w."""
    w = numpyro.sample("w", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(w**2, BIMODAL_NOISE), obs=y)


@pytest.fixture(scope="module")
def bimodal() -> tuple[credo.Model, credo.Data]:
    return credo.Model(square), credo.Data(np.zeros((6, 1)), np.ones(6))


@pytest.fixture(scope="module")
def one_mode() -> tuple[float, float]:
    """Mean and sd of the positive half of the exact posterior of w, by quadrature."""
    w = np.linspace(0, 3, 100_001)
    log_density = -0.5 * w**2 - 6 * 0.5 * ((w**2 - 1) / BIMODAL_NOISE) ** 2
    density = np.exp(log_density - log_density.max())
    mean = np.average(w, weights=density)
    return float(mean), float(np.sqrt(np.average((w - mean) ** 2, weights=density)))


@pytest.fixture(scope="module")
def target() -> Target:
    return linear_regression()


@pytest.fixture(scope="module")
def chosen_family() -> credo.BayesByBackprop:
    # The rate goes down to nothing: where a constant one leaves the members is a matter of chance.
    rate = optax.cosine_decay_schedule(0.02, 1500)
    return credo.BayesByBackprop(num_steps=1500, learning_rate=rate, draws_per_step=8, start="prior")


@pytest.fixture(scope="module")
def mixture(bimodal: tuple, chosen_family: credo.BayesByBackprop) -> Mixture:
    posterior = credo.fit(*bimodal, credo.DeepEnsemble(chosen_family, members=4), seed=BALANCED)
    assert isinstance(posterior, Mixture)
    return posterior


# -- points ------------------------------------------------------------------------------------------------


def test_members_of_a_convex_problem_agree_and_the_diagnostics_say_so(target: Target) -> None:
    posterior = credo.fit(target.model, target.data, credo.DeepEnsemble(credo.MAP(num_steps=1500), members=3))
    assert isinstance(posterior, credo.Draws)
    assert (posterior.num_chains, posterior.num_draws) == (3, 1)
    assert posterior.trace["log_joint"].shape == (3, 1500)
    assert posterior.provenance.method["name"] == "DeepEnsemble"
    assert posterior.provenance.num_data == 30
    found = target.draws(posterior)[:, 0]
    np.testing.assert_allclose(found, np.tile(target.mean, (3, 1)), atol=1e-3)
    assert np.ptp(found, axis=0).max() < 1e-3
    assert "the ensemble adds nothing: members agree everywhere" in posterior.diagnostics.verdict


def test_points_find_both_modes(bimodal: tuple, seed: int) -> None:
    # All on one side once in 32,000 seeds.
    method = credo.DeepEnsemble(credo.MAP(num_steps=300, learning_rate=0.05, start="prior"), members=16)
    posterior = credo.fit(*bimodal, method, seed=seed)
    modes = posterior.theta["w"][:, 0]
    assert set(np.sign(modes)) == {-1.0, 1.0}
    np.testing.assert_allclose(np.abs(modes), np.abs(modes[0]), rtol=1e-3)


def test_members_that_differ_are_said_to() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 20)
    model = credo.models.regression(credo.networks.MLP([10], out=1), noise=0.1)
    posterior = credo.fit(model, (x, np.sin(5 * x)), credo.DeepEnsemble(credo.MAP(num_steps=100), members=3))
    found = posterior.diagnostics
    assert found.disagreement == pytest.approx(1)
    assert found.spread > 0.05
    assert found.advice == ()
    assert found.verdict in str(found)
    assert json.loads(json.dumps(found.to_dict()))["num_members"] == 3
    one = credo.fit(model, (x, np.sin(5 * x)), credo.DeepEnsemble(credo.MAP(num_steps=2), members=1))
    assert "one member is no ensemble" in one.diagnostics.verdict


def test_members_stop_early_each_for_itself(target: Target) -> None:
    method = credo.DeepEnsemble(credo.MAP(num_steps=20_000, start="prior", check_every=10, patience=2), members=3)
    posterior = credo.fit(target.model, target.data, method, validation=0.3)
    assert posterior.trace["log_joint"].shape[1] < 20_000
    alone = credo.fit(target.model, target.data, replace(method, members=1), validation=0.3)
    for name, leaf in alone.theta.items():
        np.testing.assert_array_equal(posterior.theta[name][:1], leaf)


# -- lock-step ---------------------------------------------------------------------------------------------

SMALL = credo.models.regression(credo.networks.MLP([6], out=1), noise=0.2)
# Not symmetric about zero: where a gradient is exactly zero, Adam makes steps out of rounding errors.
CURVE = credo.Data(np.linspace(-1, 2, 40), np.sin(2 * np.linspace(-1, 2, 40)))


@pytest.fixture
def two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are made for so many workers, whatever the machine."""
    monkeypatch.setattr(engine, "available_cores", lambda: 2)


def run_of(method: credo.DeepEnsemble, records_per_chunk: int = engine.RECORDS_PER_CHUNK) -> Outcome:
    return engine.run(method, SMALL.bind(CURVE), CURVE.batch(), records_per_chunk=records_per_chunk)


def same_bits(one: object, other: object) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


LOCKSTEP = {
    "map": credo.DeepEnsemble(credo.MAP(num_steps=60, batch_size=7), members=5),
    "mle": credo.DeepEnsemble(credo.MLE(num_steps=60), members=5),
    "vi": credo.DeepEnsemble(credo.BayesByBackprop(num_steps=60, batch_size=7), members=5),
    "ivon": credo.DeepEnsemble(credo.IVON(num_steps=60, batch_size=7), members=5),
    "anchored": credo.DeepEnsemble(credo.MAP(num_steps=60, batch_size=7), members=5, anchored=True),
    "bagging": credo.DeepEnsemble(credo.MAP(num_steps=60, batch_size=7), members=5, bagging=True),
    "bagging, all rows": credo.DeepEnsemble(credo.MAP(num_steps=60), members=5, bagging=True),
}


# Each compiles two programs; those that say the least beyond the others wait for the long run.
LONG = ("mle", "ivon", "anchored", "bagging", "bagging, all rows")


@pytest.mark.parametrize(
    "method",
    [pytest.param(method, id=name, marks=[pytest.mark.full] * (name in LONG)) for name, method in LOCKSTEP.items()],
)
@pytest.mark.usefixtures("two_workers")
def test_members_in_lockstep_are_the_members_one_by_one(
    method: credo.DeepEnsemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five members on two workers: groups of three, the last one filled up."""
    driver = engine.Driver(method, SMALL.bind(CURVE), method.plan(), 10)
    chains, units = driver.start_all(0, None, CURVE.batch(), None)
    assert [len(unit.chains) for unit in units] == [3, 2]
    assert [chain for unit in units for chain in unit.chains] == chains
    assert {leaf.shape[0] for unit in units for leaf in jax.tree.leaves((unit.state, unit.rows))} == {3}
    together, short = run_of(method), run_of(method, records_per_chunk=7)
    assert same_bits((together.states, together.infos), (short.states, short.infos))
    monkeypatch.setattr("credo.inference.plan.PARAMETERS_PER_GROUP", 0)
    apart = run_of(method)
    pairs = zip(*(jax.tree.leaves((run.states, run.infos)) for run in (together, apart)), strict=True)
    for one, other in pairs:
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("members", "num_workers", "size"), [(10, 2, 5), (5, 2, 3), (3, 4, 1), (1, 2, 1), (400, 2, 200)]
)
def test_each_worker_takes_its_share_of_the_members(members: int, num_workers: int, size: int) -> None:
    method = credo.DeepEnsemble(members=members)
    driver = engine.Driver(method, SMALL.bind(CURVE), method.plan(), 10)
    driver.num_workers = num_workers
    assert driver.group_size() == size


def test_members_of_large_networks_and_of_other_methods_run_apart() -> None:
    large = credo.models.regression(credo.networks.MLP([200, 200], out=1)).bind(CURVE)
    small = SMALL.bind(CURVE)
    sampler = credo.NUTS(num_samples=1, num_chains=1)
    for model, inner, held_out in (
        (large, credo.MAP(), None), (small, sampler, None), (small, credo.MAP(), CURVE.batch())
    ):  # fmt: skip
        method = credo.DeepEnsemble(inner, members=100)
        assert engine.Driver(method, model, method.plan(), 10).group_size(held_out) == 1


@pytest.mark.full
@pytest.mark.usefixtures("two_workers")
def test_members_in_lockstep_stop_each_for_itself() -> None:
    inner = credo.BayesByBackprop(num_steps=5000, learning_rate=0.05, elbo_patience=1)
    method = credo.DeepEnsemble(inner, members=4)
    run, short = run_of(method), run_of(method, records_per_chunk=30)
    assert same_bits(run.states, short.states)
    assert np.all(run.states.checks_since == 1)
    assert len(set(run.states.step.tolist())) > 1
    posterior = method.posterior(SMALL.bind(CURVE), run)
    assert posterior.trace["elbo"].shape == (4, run.states.step.min())


@pytest.mark.usefixtures("two_workers")
def test_one_broken_member_stops_its_group_and_all_keep_their_last_good_state() -> None:
    def update(gradient, state, params=None):
        count, broken = state
        moved = jax.tree.map(lambda g: jnp.where((count == 7) & broken, jnp.nan, -1e-3 * g), gradient)
        return moved, (count + 1, broken)

    # Members that start with a large noise break at the eighth step, the others never.
    poison = optax.GradientTransformation(lambda theta: (jnp.array(0), theta["noise"] > 0), update)
    model = credo.models.regression(credo.networks.MLP([6], out=1)).bind(CURVE)
    method = credo.DeepEnsemble(credo.MAP(num_steps=50, optimizer=poison, start="prior"), members=4)
    chains, _ = engine.Driver(method, model, method.plan(), 5).start_all(0, None, CURVE.batch(), None)
    assert len({bool(chain.state.optimizer[1]) for chain in chains}) == 2
    for records_per_chunk in (5, 512):
        with pytest.raises(credo.NonFiniteError, match="at step 8") as caught:
            engine.run(method, model, CURVE.batch(), records_per_chunk=records_per_chunk)
        assert caught.value.step == 8
        if caught.value.posterior is not None:
            assert all(np.isfinite(leaf).all() for leaf in caught.value.posterior.theta.values())
            assert caught.value.posterior.num_chains == 4


# -- what tells members apart ------------------------------------------------------------------------------

NUM_MEMBERS = 400


@cache
def settled(batch_size: int | None = None, num_steps: int = 600) -> credo.MAP:
    """MAP that ends in the mode itself."""
    rate = optax.cosine_decay_schedule(0.05, num_steps)
    return credo.MAP(num_steps=num_steps, learning_rate=rate, batch_size=batch_size)


@pytest.mark.quick
@pytest.mark.parametrize("batch_size", [None, pytest.param(10, marks=pytest.mark.full)])
def test_anchored_members_are_draws_of_the_posterior_of_linear_regression(
    target: Target, batch_size: int | None, seed: int
) -> None:
    method = credo.DeepEnsemble(settled(batch_size), members=NUM_MEMBERS, anchored=True)
    posterior = credo.fit(target.model, target.data, method, seed=seed)
    scores = (target.draws(posterior)[:, 0] - target.mean) / target.sd
    assert np.all(np.abs(scores.mean(0)) < sigmas(8) / np.sqrt(NUM_MEMBERS))
    # The square of a standard normal number has a variance of 2.
    assert np.all(np.abs((scores**2).mean(0) - 1) < sigmas(8) * np.sqrt(2 / NUM_MEMBERS))
    assert posterior.diagnostics.advice == ()


def test_members_without_an_anchor_have_no_spread_on_that_problem(target: Target) -> None:
    posterior = credo.fit(target.model, target.data, credo.DeepEnsemble(settled(), members=3))
    assert target.draws(posterior).std(axis=0).max() < 1e-4 * target.sd.min()
    assert "the ensemble adds nothing: members agree everywhere" in posterior.diagnostics.verdict


def test_anchored_members_are_the_modes_of_their_own_problems(target: Target) -> None:
    """theta = S(Aᵀy'/σ² + anchor), S⁻¹ = I + AᵀA/σ²: exactly, also where rows of the data are the same."""
    data = credo.Data(np.concatenate([target.data.x] * 2), np.concatenate([target.data.y] * 2))
    bound, method = target.model.bind(data), credo.DeepEnsemble(settled(), members=4, anchored=True)
    run = engine.run(method, bound, data.batch())
    design = np.column_stack([data.x, np.ones(data.size)])
    for index in range(4):
        key = jax.random.fold_in(random.key(0), run.states.seed[index])
        noise = np.array([random.normal(jax.random.fold_in(key, row), ()) for row in range(data.size)])
        assert len(set(noise.tolist())) == data.size
        anchor = np.append(run.states.offset["head.kernel"][index].ravel(), run.states.offset["head.bias"][index])
        disturbed = design.T @ (data.y + NOISE * noise) / NOISE**2 + anchor
        expected = np.linalg.solve(np.eye(4) + design.T @ design / NOISE**2, disturbed)
        theta = run.states.inner.theta
        found = np.append(theta["head.kernel"][index].ravel(), theta["head.bias"][index])
        np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.full
def test_anchored_members_follow_the_prior_where_the_data_are_silent(seed: int) -> None:
    """A prior of mean 3, correlated outputs with a known covariance, and one input that is always zero."""
    covariance = np.array([[0.5, 0.3], [0.3, 0.4]])
    prior = {"*": dist.Normal(3.0, 2.0)}
    model = credo.models.regression(credo.networks.MLP([], out=2), prior=prior, noise=covariance)
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=25), np.zeros(25)])
    y = np.column_stack([x[:, 0], -x[:, 0]]) + rng.multivariate_normal([0, 0], covariance, 25)
    posterior = credo.fit(model, (x, y), credo.DeepEnsemble(settled(), members=NUM_MEMBERS, anchored=True), seed=seed)
    kernel = posterior.theta["head.kernel"][:, 0]
    assert np.abs(kernel[:, 1].mean(0) - 3).max() < sigmas(2) * 2 / np.sqrt(NUM_MEMBERS)
    # The exact posterior of all (2 × 3) weights: S⁻¹ = I/4 + (AᵀA ⊗ Σ⁻¹).
    design = np.column_stack([x, np.ones(25)])
    exact = np.linalg.inv(np.eye(6) / 4 + np.kron(design.T @ design, np.linalg.inv(covariance)))
    found = np.concatenate([kernel.reshape(-1, 4), posterior.theta["head.bias"][:, 0]], axis=1)
    assert_covariance(found, exact)


def test_a_learned_noise_does_not_chase_the_disturbance(seed: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    data = credo.Data(x, x[:, 0] + 0.5 * rng.normal(size=200))
    model = credo.models.regression(credo.networks.MLP([], out=1))
    anchored, plain = (
        credo.fit(model, data, credo.DeepEnsemble(settled(), members=20, anchored=anchored), seed=seed).constrained()[
            "noise"
        ]
        for anchored in (True, False)
    )
    assert np.median(plain) == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose(anchored, plain, rtol=0.05)


@pytest.mark.full
def test_anchored_members_of_a_classifier_differ_in_their_anchor_only() -> None:
    """At the mode of log p(D | theta) + log N(theta; anchor, I) the pull of the data is the way from the anchor."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    data = credo.Data(x, (x[:, 0] > 0).astype(int))
    bound = credo.models.classification(credo.networks.MLP([], out=2)).bind(data)
    run = engine.run(credo.DeepEnsemble(settled(), members=4, anchored=True), bound, data.batch())
    assert run.states.inner.theta["head.kernel"].std(axis=0).min() > 0.05
    for index in range(4):
        theta = {name: leaf[index] for name, leaf in run.states.inner.theta.items()}
        pull = jax.grad(bound.log_likelihood)(theta, data.batch())
        for name, leaf in theta.items():
            np.testing.assert_allclose(pull[name], leaf - run.states.offset[name][index], atol=0.05)


@pytest.mark.parametrize("batch_size", [None, 10])
def test_bagged_members_are_the_modes_of_their_own_samples(target: Target, batch_size: int | None, seed: int) -> None:
    bound, method = target.model.bind(target.data), credo.DeepEnsemble(settled(), members=4, bagging=True)
    batch = target.data.batch()
    chains, _ = engine.Driver(method, bound, method.plan(), 10).start_all(seed, None, batch, None)
    found = target.draws(method.posterior(bound, engine.run(method, bound, batch, seed=seed)))[:, 0]
    for chain, theta in zip(chains, found, strict=True):
        rows = np.asarray(chain.rows)
        # About 1 − 1/e of the rows are there: of N rows, all but N/e ± √(N (1/e − 2/e²)), which is 0.057 of 30.
        share = len(set(rows.tolist())) / target.data.size
        assert share == pytest.approx(1 - 1 / np.e, abs=5 * 0.057)
        design = np.column_stack([target.data.x, np.ones(30)])[rows]
        expected = np.linalg.solve(
            np.eye(4) + design.T @ design / NOISE**2, design.T @ target.data.y[rows] / NOISE**2
        )  # fmt: skip
        np.testing.assert_allclose(theta, expected, atol=1e-3)
    assert len({tuple(np.asarray(chain.rows)) for chain in chains}) == 4
    if batch_size is not None:
        small = replace(method, method=settled(batch_size, num_steps=3000))
        again = target.draws(method.posterior(bound, engine.run(small, bound, batch, seed=seed)))[:, 0]
        np.testing.assert_allclose(again, found, atol=0.02)


# -- weights -----------------------------------------------------------------------------------------------


def test_weights_of_points_are_weights_of_draws(tmp_path) -> None:
    method = credo.DeepEnsemble(credo.MAP(num_steps=5), members=3, weights=[1, 0, 3])
    assert json.loads(json.dumps(method.to_config()))["weights"] == [0.25, 0.0, 0.75]
    assert hash(method) == hash(replace(method, weights=(0.25, 0.0, 0.75)))
    posterior = credo.fit(SMALL, CURVE, method)
    np.testing.assert_allclose(posterior.weights, [[0.25], [0.0], [0.75]])
    prediction = posterior.predict(X_NEW)
    np.testing.assert_allclose(prediction.mean, [0.25, 0, 0.75] @ prediction.functions, rtol=1e-5, atol=1e-6)
    posterior.save(tmp_path / "run")
    np.testing.assert_array_equal(credo.load(tmp_path / "run").weights, posterior.weights)


def test_weights_of_distributions_are_those_of_the_mixture() -> None:
    method = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=5), members=2, weights=(3, 1))
    np.testing.assert_allclose(credo.fit(SMALL, CURVE, method).weights, [0.75, 0.25])


def test_weights_of_samplers_are_shared_by_their_draws(target: Target) -> None:
    sampler = credo.NUTS(num_samples=4, num_warmup=5, num_chains=1, max_depth=3)
    posterior = credo.fit(target.model, target.data, credo.DeepEnsemble(sampler, members=2, weights=(3, 1)))
    np.testing.assert_allclose(posterior.weights, np.repeat([[0.75], [0.25]], 4, axis=1) / 4)


# -- starts ------------------------------------------------------------------------------------------------


def starts(method: credo.DeepEnsemble, model: credo.Model, data: credo.Data) -> dict[str, np.ndarray]:
    """Where the members begin: each (members, …)."""
    bound, batch = model.bind(data), data.batch()
    driver = engine.Driver(method, bound, method.plan(), 1)
    chains = [driver.start(index, 0, None, batch, None) for index in range(method.members)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *[chain.state.theta for chain in chains])


def test_network_members_start_from_their_own_shuffle_of_the_networks_values() -> None:
    data = credo.Data(np.zeros((5, 3)), np.zeros(5))
    model = credo.models.regression(credo.networks.MLP([8], out=1))
    own = model.bind(data).initial_theta(random.key(0))
    found = starts(credo.DeepEnsemble(members=3), model, data)
    assert found.keys() == own.keys()
    for name in (name for name in own if name.endswith("kernel")):
        for one, other in ((0, 1), (0, 2), (1, 2)):
            assert not np.array_equal(found[name][one], found[name][other])
        for member in found[name]:
            np.testing.assert_array_equal(np.sort(member.ravel()), np.sort(np.ravel(own[name])))
    # Latents that are not the network's are drawn from the prior, for each member anew.
    assert len(set(found["noise"].tolist())) == 3


def test_what_the_program_draws_is_not_shuffled() -> None:
    def ordered(x: np.ndarray, y: np.ndarray | None = None) -> None:
        w = numpyro.sample("w", dist.Normal(jnp.arange(5) * 100.0, 1.0).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, 1.0), obs=y)

    data = credo.Data(np.zeros((4, 5)), np.zeros(4))
    found = starts(credo.DeepEnsemble(members=2), credo.Model(ordered), data)
    assert np.all(np.diff(found["w"], axis=1) > 50)
    assert not np.array_equal(*found["w"])


@pytest.mark.full
def test_another_method_may_find_the_starts(target: Target) -> None:
    method = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=1, learning_rate=1e-9, start=credo.MAP(num_steps=1500)))
    posterior = credo.fit(target.model, target.data, method)
    for member in posterior.members:
        np.testing.assert_allclose(member.mean["head.kernel"].ravel(), target.mean[:3], atol=2e-3)


# -- mixtures ----------------------------------------------------------------------------------------------


def test_mixture_of_gaussians_is_the_posterior_of_two_modes_and_one_gaussian_is_not(
    bimodal: tuple, chosen_family: credo.BayesByBackprop, one_mode: tuple[float, float], seed: int
) -> None:
    mean, sd = one_mode
    # All members on one side once in 32,000 seeds; both sides get half of the weight, however many they are.
    mixture = credo.fit(*bimodal, credo.DeepEnsemble(chosen_family, members=16), seed=seed)
    signs = np.array([np.sign(member.mean["w"]) for member in mixture.members])
    assert set(signs) == {-1, 1}
    weights = 0.5 / np.where(signs > 0, np.sum(signs > 0), np.sum(signs < 0))
    draws = replace(mixture, weights=weights).sample(random.key(seed), 20_000)["w"]
    # A Gaussian with the mode's width: its mean is off by less than 1%, its sd by less than 5%.
    assert_mean(np.column_stack([draws, np.abs(draws)]), [0, mean], slack=[0, 0.01 * mean])
    assert_mean((np.abs(draws) - mean) ** 2, sd**2, slack=0.1 * sd**2)
    alone = credo.fit(*bimodal, chosen_family, seed=seed).sample(random.key(seed), 20_000)["w"]
    assert abs(np.mean(alone)) > 0.9
    assert np.std(alone) < 2 * sd


def test_mixture_diagnostics(mixture: Mixture) -> None:
    """The members differ in w, and agree about the function w²."""
    found = mixture.diagnostics
    assert found.num_members == 4
    assert found.disagreement < 0.05
    assert "members agree everywhere" in found.verdict
    assert found.verdicts == tuple(member.diagnostics.verdict for member in mixture.members)
    assert all(member.evidence.k_hat is not None for member in mixture.members)
    apart = replace(mixture, members=tuple(moved(member, shift) for shift, member in enumerate(mixture.members)))
    assert apart.diagnostics.disagreement > 0.9
    assert "agree" not in apart.diagnostics.verdict


def moved(member: credo.Gaussian, shift: float) -> credo.Gaussian:
    return replace(member, mean={"w": np.abs(member.mean["w"]) + np.float32(shift)})


def test_chance_is_not_taken_for_disagreement(mixture: Mixture) -> None:
    """Members that are the same distribution differ by the error of their draws only."""
    same = replace(mixture, members=(mixture.members[0],) * 4)
    assert same.diagnostics.disagreement < 0.02


@pytest.mark.full
def test_members_in_trouble_are_counted(target: Target) -> None:
    short = credo.BayesByBackprop(num_steps=5, learning_rate=1e-6, initial_scale=1e-6)
    found = credo.fit(target.model, target.data, credo.DeepEnsemble(short, members=3)).diagnostics
    assert "3 of 3 members are in trouble themselves" in found.verdict
    assert "collapsed to a point" in found.verdict


def test_weights_choose_the_members(mixture: Mixture, seed: int) -> None:
    ordered = sorted(mixture.members, key=lambda member: float(member.mean["w"]))
    weighted = replace(mixture, members=tuple(ordered), weights=np.array([0.7, 0.1, 0.2, 0.0]))
    draws = weighted.sample(random.key(seed), 5000)["w"]
    assert np.mean(draws < 0) == pytest.approx(0.8, abs=sigmas(2) * 0.4 / np.sqrt(5000))
    # Which member a draw is of does not depend on the draws before it. Pairs that overlap in a draw are both of one
    # kind with probability 0.8³ + 0.2³ = 0.52, so the mean over pairs has the variance (0.68 − 3 · 0.68² + 2 · 0.52)/n.
    error = np.sqrt((0.68 - 3 * 0.68**2 + 2 * 0.52) / 5000)
    assert np.mean((draws[1:] < 0) == (draws[:-1] < 0)) == pytest.approx(0.68, abs=sigmas(2) * error)
    prediction = weighted.predict(X_NEW[:, None], num_draws=8)
    np.testing.assert_allclose(prediction.weights, np.repeat([0.35, 0.05, 0.1, 0.0], 2))


@pytest.mark.parametrize(("num", "by_member"), [(None, [25] * 4), (10, [3, 3, 2, 2]), (1, [1] * 4)])
def test_predictive_draws_are_spread_over_the_members(mixture: Mixture, num: int | None, by_member: list) -> None:
    prediction = mixture.predict(X_NEW[:, None], num_draws=num)
    assert prediction.num_draws == sum(by_member)
    np.testing.assert_allclose(prediction.weights, np.repeat(0.25 / np.array(by_member), by_member))
    signs = np.repeat([np.sign(member.mean["w"]) for member in mixture.members], by_member)
    np.testing.assert_array_equal(np.sign(prediction.draws["w"]), signs)
    # Each member has draws of its own: with common noise these would be shifts of each other.
    if num is None:
        noise = [prediction.draws["w"][25 * index : 25 * index + 25] for index in range(4)]
        assert abs(np.corrcoef(noise)[0, 1]) < 0.7


def test_same_seed_same_bits(bimodal: tuple) -> None:
    method = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=20, start="prior"), members=3)
    one, again, other = (credo.fit(*bimodal, method, seed=seed) for seed in (3, 3, 4))
    assert one.trace["elbo"].shape == (3, 20)
    assert one.trace["elbo"].tobytes() == again.trace["elbo"].tobytes()
    draws = [posterior.sample(random.key(0), 9)["w"] for posterior in (one, again, other)]
    assert draws[0].tobytes() == draws[1].tobytes() != draws[2].tobytes()
    x = X_NEW[:, None]
    assert one.predict(x).mean.tobytes() == again.predict(x).mean.tobytes()


def test_gaussians_that_stop_early_have_figures_of_one_length(bimodal: tuple) -> None:
    inner = credo.BayesByBackprop(num_steps=20_000, learning_rate=0.05, start="prior", elbo_patience=2)
    posterior = credo.fit(*bimodal, credo.DeepEnsemble(inner, members=3))
    lengths = {member.trace["elbo"].shape for member in posterior.members}
    assert len(lengths) == 1
    steps = lengths.pop()[1]
    assert steps % 100 == 0
    assert 200 <= steps < 20_000
    assert posterior.trace["elbo"].shape == (3, steps)


# -- xi of their own ---------------------------------------------------------------------------------------


def steep(x: np.ndarray, y: np.ndarray | None = None) -> None:
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(2 * slope * x[:, 0], BIMODAL_NOISE), obs=y)


def learned_noise(x: np.ndarray, y: np.ndarray | None = None) -> None:
    scale = numpyro.param("scale", 1.0, constraint=dist.constraints.positive)
    w = numpyro.sample("w", dist.Normal(0, 1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(w * x[:, 0], scale), obs=y)


def test_each_member_predicts_with_the_xi_it_has_learned(tmp_path) -> None:
    rng = np.random.default_rng(0)
    data = credo.Data(X_NEW[:, None], X_NEW + 0.3 * rng.normal(size=5))
    model = credo.Model(learned_noise)
    method = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=20, learning_rate=0.05, batch_size=2), members=3)
    posterior = credo.fit(model, data, method)
    scales = np.exp([member.model.frozen_xi["scale"] for member in posterior.members])
    assert len(set(scales.tolist())) == 3
    prediction = posterior.predict(X_NEW[:, None])
    counts = [34, 33, 33]
    np.testing.assert_allclose(np.exp(prediction.draws["scale"]), np.repeat(scales, counts), rtol=1e-6)
    np.testing.assert_allclose(prediction.aleatoric, np.mean(scales**2), rtol=1e-5)
    sample = posterior.sample(random.key(0), 6)
    assert set(sample) == {"w", "scale"}
    assert set(np.exp(sample["scale"]).tolist()) <= set(scales.astype(np.float32).tolist())

    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", model=model)
    assert loaded.predict(X_NEW[:, None]).variance.tobytes() == prediction.variance.tobytes()
    assert [member.model.xi for member in loaded.members] == [member.model.xi for member in posterior.members]


def test_points_with_xi_of_their_own_are_a_mixture() -> None:
    bound = credo.Model(learned_noise).bind((X_NEW[:, None], X_NEW))
    made = Provenance({"name": "by hand"}, 0, 0.0, 5)
    members = tuple(
        credo.Draws(bound.freeze({"scale": np.log(scale)}), {"w": np.full((1, 1), w)}, made)
        for scale, w in ((0.1, 0.0), (2.0, 1.0))
    )
    prediction = Mixture(members, made).predict(np.ones((3, 1)))
    assert prediction.num_draws == 2  # a point is a point, however many draws are asked for
    np.testing.assert_allclose(prediction.mean, 0.5)
    np.testing.assert_allclose(prediction.aleatoric, (0.1**2 + 2.0**2) / 2, rtol=1e-5)


def test_local_latents_get_noise_of_their_own_for_each_draw() -> None:
    """Stochastic activations have no theta at all: a member is what it has learned, a draw is its noise."""
    method = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=10), members=2)
    posterior = credo.fit(credo.models.activations([3], out=1), (X_NEW, X_NEW), method)
    assert isinstance(posterior, Mixture)
    prediction = posterior.predict(X_NEW, num_draws=6)
    np.testing.assert_array_equal(prediction.draws["local_noise"], np.arange(6))
    assert len(np.unique(prediction.functions[:, 0])) == 6
    assert set(posterior.sample(random.key(0), 3)) == set(posterior.model.frozen_xi)


# -- different architectures ---------------------------------------------------------------------------------

SHALLOW = credo.models.regression(credo.networks.MLP([4], out=1), noise=0.1)
# A noise of its own: a learned one, or one per row, beside a known one.
DEEP = credo.models.regression(credo.networks.MLP([3, 3], out=1, activation="relu"))
TWO_SCALES = credo.models.regression(credo.networks.MLP([5], out=2), noise="heteroscedastic")
WAVE = credo.Data(np.linspace(-1, 2, 40), 5 + 3 * np.sin(2 * np.linspace(-1, 2, 40)), standardise=True)
SHARES = np.array([0.4, 0.3, 0.1, 0.2])


@pytest.fixture(scope="module")
def of_points() -> Mixture:
    method = credo.DeepEnsemble(credo.MAP(num_steps=100), members=4, weights=SHARES.tolist())
    return credo.fit([SHALLOW, DEEP, TWO_SCALES], WAVE, method, seed=1)


@pytest.fixture(scope="module")
def of_gaussians() -> Mixture:
    return credo.fit([SHALLOW, DEEP], WAVE, credo.DeepEnsemble(credo.BayesByBackprop(num_steps=20), members=3))


def test_members_are_dealt_to_the_models_in_turn(of_points: Mixture) -> None:
    assert isinstance(of_points, Mixture)
    programs = [member.model.program for member in of_points.members]
    assert programs == [model.program for model in (SHALLOW, DEEP, TWO_SCALES, SHALLOW)]
    np.testing.assert_allclose(of_points.weights, SHARES)
    assert of_points.trace["log_joint"].shape == (4, 100)
    assert (of_points.provenance.seed, of_points.provenance.num_data) == (1, 40)
    first, last = (of_points.members[index].theta["hidden.0.kernel"] for index in (0, 3))
    assert not np.array_equal(first, last)
    assert of_points.num_bytes == 4 * (2 * 13 + 23 + 22)


def test_the_same_model_twice_has_members_that_differ() -> None:
    posterior = credo.fit([SHALLOW, SHALLOW], WAVE, credo.DeepEnsemble(credo.MAP(num_steps=2), members=2))
    one, other = (member.theta["hidden.0.kernel"] for member in posterior.members)
    assert not np.array_equal(one, other)
    assert set(posterior.sample(random.key(0), 3)) == set(SHALLOW.bind(WAVE).template)


def test_moments_are_those_of_the_members_by_hand(of_points: Mixture) -> None:
    prediction = of_points.predict(WAVE.x)
    each = [member.predict(WAVE.x) for member in of_points.members]
    means = np.stack([one.mean for one in each])
    mean = SHARES @ means
    np.testing.assert_allclose(prediction.functions, means, rtol=1e-5)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-5)
    spread = SHARES @ (means - mean) ** 2 / (1 - np.sum(SHARES**2))
    np.testing.assert_allclose(prediction.epistemic, spread, rtol=1e-3)
    np.testing.assert_allclose(prediction.aleatoric, SHARES @ [one.aleatoric for one in each], rtol=1e-4)
    np.testing.assert_allclose(
        prediction.input_covariance,
        np.einsum("s,si,sj->ij", SHARES, means - mean, means - mean) / (1 - np.sum(SHARES**2)),
        atol=1e-4,
    )


def test_probabilities_are_those_of_the_whole_mixture(of_points: Mixture, seed: int) -> None:
    """Densities and distribution functions average over the members; a quantile is one of that average."""
    prediction = of_points.predict(WAVE.x)
    each = [member.predict(WAVE.x) for member in of_points.members]
    density = SHARES @ np.exp([one.log_prob(WAVE.y) for one in each])
    np.testing.assert_allclose(prediction.log_prob(WAVE.y), np.log(density), rtol=1e-3, atol=1e-3)
    by_draw = prediction.log_prob_by_draw(WAVE.y)
    np.testing.assert_allclose(by_draw, [one.log_prob(WAVE.y) for one in each], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(prediction.cdf(WAVE.y), SHARES @ [one.cdf(WAVE.y) for one in each], atol=1e-4)
    lower, upper = prediction.interval(0.8)
    np.testing.assert_allclose(prediction.cdf(lower), 0.1, atol=1e-3)
    np.testing.assert_allclose(prediction.cdf(upper), 0.9, atol=1e-3)
    assert_mean(prediction[:3].samples(random.key(seed), 4000), prediction.mean[:3])


@pytest.mark.full
def test_classes_of_the_whole_mixture() -> None:
    x = np.random.default_rng(0).normal(size=(30, 2))
    data = credo.Data(x, (x[:, 0] > 0).astype(int) + (x[:, 1] > 1))
    models = [credo.models.classification(credo.networks.MLP(sizes, out=3)) for sizes in ([4], [3, 3])]
    posterior = credo.fit(models, data, credo.DeepEnsemble(credo.MAP(num_steps=50), members=2))
    prediction = posterior.predict(x)
    each = np.stack([member.predict(x).probs for member in posterior.members])
    np.testing.assert_allclose(prediction.probs, each.mean(axis=0), atol=1e-6)
    entropies = [member.predict(x).entropy for member in posterior.members]
    np.testing.assert_allclose(prediction.aleatoric, np.mean(entropies, axis=0), atol=1e-5)
    scores = credo.compare({"ensemble": posterior, "shallow": posterior.members[0]}, data).scores["ensemble"]
    assert scores["accuracy"].value == np.mean(prediction.label == data.y)


@pytest.mark.full
def test_architectures_of_gaussians(of_gaussians: Mixture) -> None:
    """A hundred draws over three members: each is of the model of its member, and the others' leaves are zero."""
    prediction = of_gaussians.predict(WAVE.x)
    counts = [34, 33, 33]
    np.testing.assert_array_equal(prediction.draws["model"], np.repeat([0, 1, 0], counts))
    assert not np.any(prediction.draws["0.hidden.0.kernel"][34:67])
    functions = np.split(prediction.functions, np.cumsum(counts)[:-1])
    mean = np.mean([own.mean(axis=0) for own in functions], axis=0)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-4)
    assert of_gaussians.diagnostics.num_members == 3
    assert "13 or 23 numbers" in repr(of_gaussians)


def test_draws_hold_the_leaves_of_all_architectures(of_gaussians: Mixture, seed: int) -> None:
    sample = of_gaussians.sample(random.key(seed), 600)
    assert np.mean(sample["model"] == 0) == pytest.approx(2 / 3, abs=sigmas() * 0.47 / np.sqrt(600))
    is_shallow = np.any(sample["0.head.kernel"] != 0, axis=(1, 2))
    np.testing.assert_array_equal(is_shallow, sample["model"] == 0)
    assert set(of_gaussians.sample(random.key(0), 1)) == set(sample)


@pytest.mark.parametrize("kind", ["of_points", pytest.param("of_gaussians", marks=pytest.mark.full)])
def test_architectures_are_saved_and_loaded(kind: str, request: pytest.FixtureRequest, tmp_path) -> None:
    posterior = request.getfixturevalue(kind)
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    assert repr(loaded) == repr(posterior)
    assert loaded.num_bytes == posterior.num_bytes
    assert loaded.predict(WAVE.x).variance.tobytes() == posterior.predict(WAVE.x).variance.tobytes()
    assert str(loaded.diagnostics) == str(posterior.diagnostics)


def test_architectures_with_xi_and_programs_of_their_own(tmp_path) -> None:
    """Programs are passed to `load` in the order in which the models were passed to `fit`."""
    models = [credo.Model(learned_noise), credo.Model(steep)]
    data = credo.Data(X_NEW[:, None], X_NEW)
    method = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=10, batch_size=2), members=3)
    posterior = credo.fit(models, data, method)
    prediction = posterior.predict(data.x)
    scales = np.exp(prediction.draws["0.scale"][prediction.draws["model"] == 0])
    assert len(np.unique(scales)) == 2
    variance = (np.unique(scales) ** 2).sum() / 3 + BIMODAL_NOISE**2 / 3
    np.testing.assert_allclose(prediction.aleatoric, variance, rtol=1e-4)
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", model=models)
    assert loaded.predict(data.x).variance.tobytes() == prediction.variance.tobytes()
    with pytest.raises(ValueError, match=r"model: .* was fitted with 2 models; pass a list of 2"):
        credo.load(tmp_path / "run", model=models[0])


BAD_MODELS: list[tuple[list, object, str]] = [
    ([SHALLOW, DEEP], credo.MAP(), "model is a list, which only an ensemble can deal .* and method is MAP"),
    ([], credo.DeepEnsemble(), "model is a list of 0"),
    ([SHALLOW, DEEP], credo.DeepEnsemble(members=1), "model is a list of 2, to which 1 members cannot be dealt"),
    ([SHALLOW, "mlp"], credo.DeepEnsemble(), "model must be a credo.Model, got str"),
]


@pytest.mark.parametrize(("models", "method", "message"), BAD_MODELS, ids=[message for *_, message in BAD_MODELS])
def test_bad_lists_of_models(models: list, method: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        credo.fit(models, WAVE, method)


def test_architectures_must_agree_about_y() -> None:
    two = credo.Data(np.zeros((6, 1)), np.zeros((6, 2)))
    apart = credo.models.regression(credo.networks.MLP([2], out=2), noise=0.1)
    together = credo.models.regression(credo.networks.MLP([2], out=2), noise="full")
    wanted = r"the first gives Normal\(loc, scale\) of shape \(rows, 2\), number 2 gives MultivariateNormal\(loc, scale"
    with pytest.raises(ValueError, match=wanted):
        credo.fit([apart, together], two, credo.DeepEnsemble(members=2))
    labels = credo.Data(np.zeros((6, 1)), np.arange(6) % 2)
    three, five = (credo.models.classification(credo.networks.MLP([2], out=num)) for num in (3, 5))
    with pytest.raises(ValueError, match=r"of shape \(rows, 3\), number 2 gives .* of shape \(rows, 5\)"):
        credo.fit([three, five], labels, credo.DeepEnsemble(members=2))


# -- storage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(credo.MAP(num_steps=5), id="MAP"),
        pytest.param(credo.BayesByBackprop(num_steps=5, family="low_rank"), id="VI", marks=pytest.mark.full),
    ],
)
def test_saved_and_loaded_is_the_same(inner: object, tmp_path) -> None:
    model = credo.models.regression(credo.networks.MLP([3], out=1))
    data = credo.Data(X_NEW, 5 + 2 * X_NEW, standardise=True)
    posterior = credo.fit(model, data, credo.DeepEnsemble(inner, members=2))
    posterior.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    assert type(loaded) is type(posterior)
    assert isinstance(loaded, Mixture | PointEnsemble)
    assert loaded.provenance == posterior.provenance
    assert loaded.num_bytes == posterior.num_bytes
    assert repr(loaded) == repr(posterior)
    ours, theirs = posterior.predict(X_NEW), loaded.predict(X_NEW)
    assert ours.mean.tobytes() == theirs.mean.tobytes()
    assert ours.variance.tobytes() == theirs.variance.tobytes()
    assert all(posterior.trace[name].tobytes() == loaded.trace[name].tobytes() for name in posterior.trace)
    assert str(loaded.diagnostics) == str(posterior.diagnostics)


def test_unknown_kind_is_refused(mixture: Mixture, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixture.save(tmp_path / "run")
    assert json.loads((tmp_path / "run" / MANIFEST).read_text())["posterior"]["kind"] == "mixture"
    monkeypatch.delitem(KINDS, "mixture")
    with pytest.raises(ValueError, match=r"of the kind 'mixture'.*install a newer credo"):
        credo.load(tmp_path / "run", model=credo.Model(square))


# -- the rest ----------------------------------------------------------------------------------------------


def test_memory_is_that_of_all_members(target: Target) -> None:
    for inner in (credo.MAP(), credo.BayesByBackprop()):
        one = inner.describe(target.model, target.data)
        all_of_them = credo.DeepEnsemble(inner, members=7).describe(target.model, target.data)
        assert all_of_them.num_bytes == 7 * one.num_bytes
        assert all_of_them.num_parameters == one.num_parameters
        assert "7 × " in str(all_of_them)


def test_a_member_that_goes_non_finite_stops_the_run(target: Target) -> None:
    method = credo.DeepEnsemble(credo.MAP(num_steps=200, optimizer="sgd", learning_rate=1e6), members=2)
    with pytest.raises(credo.NonFiniteError, match="lower the learning rate"):
        credo.fit(target.model, target.data, method)


@pytest.mark.full
def test_gaussians_and_draws_of_stochastic_gradients_are_members(target: Target, tmp_path) -> None:
    langevin = credo.SGLD(num_samples=6, num_warmup=5, num_chains=1)
    assert type(credo.fit(target.model, target.data, credo.DeepEnsemble(langevin, members=3))) is credo.Draws
    flow = credo.BayesByBackprop(num_steps=5, family="flow")
    for inner in (credo.SWAG(num_steps=25, num_warmup=5, collect_every=2, rank=4), flow):
        posterior = credo.fit(target.model, target.data, credo.DeepEnsemble(inner, members=2))
        assert isinstance(posterior, Mixture)
        posterior.save(tmp_path / type(posterior.members[0]).__name__)
        loaded = credo.load(tmp_path / type(posterior.members[0]).__name__)
        assert loaded.predict(target.data.x[:3]).mean.tobytes() == posterior.predict(target.data.x[:3]).mean.tobytes()


def test_chains_of_a_sampler_become_chains(target: Target) -> None:
    sampler = credo.NUTS(num_samples=5, num_warmup=5, num_chains=1, max_depth=3)
    posterior = credo.fit(target.model, target.data, credo.DeepEnsemble(sampler, members=3))
    assert type(posterior) is credo.Draws
    assert (posterior.num_chains, posterior.num_draws) == (3, 5)
    assert posterior.infos["log_joint"].shape == (3, 5)


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: credo.DeepEnsemble(members=0), "members must be a whole number of at least 1"),
    (lambda: credo.DeepEnsemble(credo.NUTS()), "NUTS runs 4 chains, which are an ensemble already"),
    (lambda: credo.DeepEnsemble(credo.DeepEnsemble()), "DeepEnsemble itself"),
    (lambda: credo.DeepEnsemble("map"), "method must be a method such as"),
    (lambda: credo.DeepEnsemble(members=2, weights=[1.0]), "weights must be 2 numbers of at least zero"),
    (lambda: credo.DeepEnsemble(members=2, weights=[1.0, -1.0]), "weights must be 2 numbers of at least zero"),
    (lambda: credo.DeepEnsemble(members=2, weights=[0.0, 0.0]), "not all zero"),
    (lambda: credo.DeepEnsemble(members=2, weights=[1.0, np.nan]), "weights must be 2 numbers of at least zero"),
    (lambda: credo.DeepEnsemble(credo.BayesByBackprop(), anchored=True), "modes of the posterior.*is BayesByBackprop"),
    (lambda: credo.DeepEnsemble(credo.MLE(), anchored=True), "modes of the posterior.*is MLE"),
    (lambda: credo.DeepEnsemble(anchored=True, bagging=True), "count that noise twice; choose one"),
    (lambda: Mixture((), Provenance({}, 0, 0.0, 0)), "needs at least one"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "prior",
    [credo.priors.laplace(), credo.priors.scale_mixture(), {"*.bias": dist.StudentT(3.0)}],
    ids=["laplace", "scale mixture", "student"],
)
def test_priors_that_cannot_be_moved_are_refused(prior: object) -> None:
    model = credo.models.regression(credo.networks.MLP([3], out=1), prior=prior)
    with pytest.raises(ValueError, match=r"that of '.*' is not normal by itself; take normal priors"):
        credo.fit(model, CURVE, credo.DeepEnsemble(anchored=True))


def test_a_prior_within_a_prior_cannot_be_moved() -> None:
    def hierarchical(x: np.ndarray, y: np.ndarray | None = None) -> None:
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
        w = numpyro.sample("w", dist.Normal(0, scale))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(w * x[:, 0], 1.0), obs=y)

    with pytest.raises(ValueError, match="that of 'w' is not normal by itself"):
        credo.fit(credo.Model(hierarchical), CURVE, credo.DeepEnsemble(anchored=True))


def test_bad_input_of_a_mixture(mixture: Mixture, target: Target) -> None:
    with pytest.raises(ValueError, match="weights must be 4 numbers"):
        replace(mixture, weights=np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="weights must be 4 numbers"):
        replace(mixture, weights=np.array([0.5, 0.5, 0.5, -0.5]))
    other = credo.fit(target.model, target.data, credo.MAP(num_steps=1))
    with pytest.raises(ValueError, match="models must be of the same data"):
        replace(mixture, members=(mixture.members[0], other), weights=None)
    with pytest.raises(ValueError, match="num must be at least 1"):
        mixture.sample(random.key(0), 0)
    with pytest.raises(ValueError, match="num_draws must be at least 1"):
        mixture.predict(X_NEW[:, None], num_draws=0)
