"""Deep ensembles: several modes where there are several, nothing where there is one, and the mixture they make."""

import json
from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo import random
from credo.inference import engine
from credo.mixture import Mixture, PointEnsemble
from credo.posterior import Provenance
from credo.storage import KINDS, MANIFEST
from tests.statistical.targets import Target, linear_regression

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
    return credo.BayesByBackprop(num_steps=1500, learning_rate=0.02, num_draws=8, start="prior")


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


def test_points_find_both_modes(bimodal: tuple) -> None:
    method = credo.DeepEnsemble(credo.MAP(num_steps=300, learning_rate=0.05, start="prior"), members=6)
    posterior = credo.fit(*bimodal, method)
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


def test_another_method_may_find_the_starts(target: Target) -> None:
    method = credo.DeepEnsemble(credo.BayesByBackprop(num_steps=1, learning_rate=1e-9, start=credo.MAP(num_steps=1500)))
    posterior = credo.fit(target.model, target.data, method)
    for member in posterior.members:
        np.testing.assert_allclose(member.mean["head.kernel"].ravel(), target.mean[:3], atol=2e-3)


# -- mixtures ----------------------------------------------------------------------------------------------


def test_mixture_of_gaussians_is_the_posterior_of_two_modes_and_one_gaussian_is_not(
    mixture: Mixture, bimodal: tuple, chosen_family: credo.BayesByBackprop, one_mode: tuple[float, float]
) -> None:
    mean, sd = one_mode
    signs = [np.sign(member.mean["w"]) for member in mixture.members]
    assert sorted(signs) == [-1, -1, 1, 1]
    draws = mixture.sample(random.key(0), 20_000)["w"]
    assert np.mean(draws) == pytest.approx(0, abs=4 / np.sqrt(20_000))
    assert np.std(draws) == pytest.approx(np.hypot(mean, sd), rel=0.01)
    assert np.mean(np.abs(draws)) == pytest.approx(mean, rel=0.01)
    assert np.std(np.abs(draws)) == pytest.approx(sd, rel=0.1)
    alone = credo.fit(*bimodal, chosen_family).sample(random.key(0), 20_000)["w"]
    assert abs(np.mean(alone)) > 0.9
    assert np.std(alone) < 2 * sd


def test_mixture_diagnostics(mixture: Mixture) -> None:
    """The members differ in w, and agree about the function w²."""
    found = mixture.diagnostics
    assert found.num_members == 4
    assert found.disagreement < 0.05
    assert "members agree everywhere" in found.verdict
    assert found.verdicts == tuple(member.diagnostics.verdict for member in mixture.members)
    assert all("k_hat" in member.evidence for member in mixture.members)
    apart = replace(mixture, members=tuple(moved(member, shift) for shift, member in enumerate(mixture.members)))
    assert apart.diagnostics.disagreement > 0.9
    assert "agree" not in apart.diagnostics.verdict


def moved(member: credo.Gaussian, shift: float) -> credo.Gaussian:
    return replace(member, mean={"w": np.abs(member.mean["w"]) + np.float32(shift)})


def test_chance_is_not_taken_for_disagreement(mixture: Mixture) -> None:
    """Members that are the same distribution differ by the error of their draws only."""
    same = replace(mixture, members=(mixture.members[0],) * 4)
    assert same.diagnostics.disagreement < 0.02


def test_members_in_trouble_are_counted(target: Target) -> None:
    short = credo.BayesByBackprop(num_steps=5, learning_rate=1e-6, initial_scale=1e-6)
    found = credo.fit(target.model, target.data, credo.DeepEnsemble(short, members=3)).diagnostics
    assert "3 of 3 members are in trouble themselves" in found.verdict
    assert "collapsed to a point" in found.verdict


def test_weights_choose_the_members(mixture: Mixture) -> None:
    ordered = sorted(mixture.members, key=lambda member: float(member.mean["w"]))
    weighted = replace(mixture, members=tuple(ordered), weights=np.array([0.7, 0.1, 0.2, 0.0]))
    draws = weighted.sample(random.key(1), 5000)["w"]
    assert np.mean(draws < 0) == pytest.approx(0.8, abs=4 * 0.4 / np.sqrt(5000))
    # Which member a draw is of does not depend on the draws before it.
    assert abs(np.mean((draws[1:] < 0) == (draws[:-1] < 0)) - (0.8**2 + 0.2**2)) < 0.03
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
    inner = credo.BayesByBackprop(num_steps=20_000, learning_rate=0.05, start="prior", patience=2)
    posterior = credo.fit(*bimodal, credo.DeepEnsemble(inner, members=3))
    lengths = {member.trace["elbo"].shape for member in posterior.members}
    assert len(lengths) == 1
    steps = lengths.pop()[1]
    assert steps % 100 == 0
    assert 200 <= steps < 20_000
    assert posterior.trace["elbo"].shape == (3, steps)


# -- xi of their own ---------------------------------------------------------------------------------------


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


# -- storage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inner",
    [credo.MAP(num_steps=5), credo.BayesByBackprop(num_steps=5, family="low_rank")],
    ids=lambda method: type(method).__name__,
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
    assert json.loads((tmp_path / "run" / MANIFEST).read_text())["kind"] == "mixture"
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
    (lambda: Mixture((), Provenance({}, 0, 0.0, 0)), "needs at least one"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_input_of_a_mixture(mixture: Mixture, target: Target) -> None:
    with pytest.raises(ValueError, match="weights must be 4 numbers"):
        replace(mixture, weights=np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="weights must be 4 numbers"):
        replace(mixture, weights=np.array([0.5, 0.5, 0.5, -0.5]))
    other = credo.fit(target.model, target.data, credo.MAP(num_steps=1))
    with pytest.raises(ValueError, match="posteriors of one model"):
        replace(mixture, members=(mixture.members[0], other), weights=None)
    with pytest.raises(ValueError, match="num must be at least 1"):
        mixture.sample(random.key(0), 0)
    with pytest.raises(ValueError, match="num_draws must be at least 1"):
        mixture.predict(X_NEW[:, None], num_draws=0)
