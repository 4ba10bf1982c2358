"""The driver: Ctrl-C, runs that go non-finite, early stopping, devices, the progress bar, starting points."""

import hashlib
import os
import subprocess
import sys
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import credo
from credo.inference.engine import driver as engine

WALK = credo.Metropolis(num_samples=2000, num_warmup=5, num_chains=3, thin=1)


@pytest.fixture(scope="module")
def data() -> credo.Data:
    x = np.linspace(-1, 1, 12)
    return credo.Data(x, 100 + 5 * x + np.sin(40 * x), standardise=True)


@pytest.fixture(scope="module")
def model() -> credo.Model:
    return credo.models.regression(credo.networks.MLP([4], out=1), noise=0.3)


def interrupt_when(monkeypatch, condition) -> None:
    """Press Ctrl-C between two chunks, as soon as the chains are where the condition wants them."""

    def show(self, bar, chains) -> None:
        if condition(chains):
            raise KeyboardInterrupt

    monkeypatch.setattr(engine.Driver, "show", show)


# --- Ctrl-C


def test_interrupted_run_returns_what_was_drawn(model, data, monkeypatch):
    whole = credo.fit(model, data, WALK)
    interrupt_when(monkeypatch, lambda chains: min(chain.num_kept for chain in chains) >= 5)
    with pytest.warns(UserWarning, match=r"interrupted: the result holds the \d+ of 2000 records"):
        part = credo.fit(model, data, WALK)
    assert part.num_chains == 3
    assert 5 <= part.num_draws < 2000
    assert part.provenance.interrupted
    for name, leaf in part.theta.items():
        np.testing.assert_array_equal(leaf, whole.theta[name][:, : part.num_draws])
    assert {figure.shape for figure in part.infos.values()} == {(3, part.num_draws)}
    assert np.isfinite(part.predict([0.0]).mean).all()


def test_interrupted_members_in_lockstep_return_where_they_are(model, data, monkeypatch):
    monkeypatch.setattr(engine, "available_cores", lambda: 2)
    interrupt_when(monkeypatch, lambda chains: min(chain.num_kept for chain in chains) >= 5)
    with pytest.warns(UserWarning, match=r"interrupted: the result holds the \d+ of 100000 records"):
        part = credo.fit(model, data, credo.DeepEnsemble(credo.MAP(num_steps=100_000), members=5))
    assert part.provenance.interrupted
    assert part.num_chains == 5
    assert 5 <= part.trace["log_joint"].shape[1] < 100_000


def test_interrupted_warm_up_is_raised(model, data, monkeypatch):
    interrupt_when(monkeypatch, lambda chains: True)
    with pytest.raises(KeyboardInterrupt, match="during warm-up"):
        credo.fit(model, data, WALK)


def test_interrupted_search_for_starting_points_is_raised(model, data, monkeypatch):
    interrupt_when(monkeypatch, lambda chains: chains[0].num_kept > 1)
    walk = credo.Metropolis(num_samples=10, num_warmup=0, num_chains=2, start=credo.MAP(num_steps=500))
    with (
        pytest.warns(UserWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt, match="starting points"),
    ):
        credo.fit(model, data, walk)


# --- non-finite runs


def poisoned_after(num_steps: int) -> optax.GradientTransformation:
    """Climbs, and sets theta to nan after so many good steps."""

    def update(gradient, count, params=None):
        return jax.tree.map(lambda g: jnp.where(count == num_steps, jnp.nan, -1e-3 * g), gradient), count + 1

    return optax.GradientTransformation(lambda theta: jnp.array(0), update)


@pytest.mark.parametrize(("records_per_chunk", "num_steps"), [(1, 20), (512, 20), (512, 8)])
def test_non_finite_theta_stops_the_run_wherever_it_appears(model, data, records_per_chunk, num_steps):
    """After 7 good steps the 8th breaks theta: inside a chunk, at the end of one, and at the end of the run."""
    bound, method = model.bind(data), credo.MAP(num_steps=num_steps, optimizer=poisoned_after(7))
    with pytest.raises(credo.NonFiniteError) as caught:
        engine.run(method, bound, data.batch(), records_per_chunk=records_per_chunk)
    assert caught.value.step == 8
    assert all(np.isfinite(leaf).all() for leaf in caught.value.posterior.theta.values())


def test_absurd_learning_rate_gets_advice_and_the_last_good_state(model, data):
    with pytest.raises(credo.NonFiniteError, match=r"at step \d+.*lower the learning rate") as caught:
        credo.fit(model, data, credo.MAP(num_steps=50, optimizer="sgd", learning_rate=1e6))
    assert f"at step {caught.value.step}." in str(caught.value)
    posterior = caught.value.posterior
    assert np.isfinite(posterior.predict([0.0]).mean).all()
    # It knows the user's units.
    assert posterior.scaling.y_mean == pytest.approx(100, abs=1)


# --- early stopping


def test_early_stop_returns_the_best_theta_for_any_chunk_size(model, data):
    method = credo.MLE(num_steps=4000, learning_rate=0.05, check_every=5, patience=4)
    # The wiggle differs on the held-out rows, so that fitting it does not pay.
    x = np.linspace(-0.9, 0.9, 10)
    held_out = credo.Data(x, 100 + 5 * x)
    posterior = credo.fit(model, data, method, validation=held_out)
    trace = posterior.trace["held_out"][0]
    assert len(trace) < 4000
    assert len(trace) % method.check_every == 0
    bound, batch = posterior.model, held_out.with_scaling(data.scaling).batch()
    score = bound.log_likelihood({name: leaf[0, 0] for name, leaf in posterior.theta.items()}, batch) / 10
    assert float(score) == pytest.approx(trace[-1], rel=1e-4)
    # The best was `patience` checks ago.
    assert trace[-1] == trace[-1 - method.check_every * method.patience]
    assert trace[-1] > trace[-2 - method.check_every * method.patience]

    run = engine.run(method, bound, data.batch(), held_out=batch, records_per_chunk=3)
    again = method.posterior(bound, run)
    assert all(again.theta[name].tobytes() == leaf.tobytes() for name, leaf in posterior.theta.items())
    assert all(again.trace[name].tobytes() == values.tobytes() for name, values in posterior.trace.items())


# --- devices


def digest() -> str:
    """The bits of small runs of three chains, alone and in lock-step, told apart from any other by a hash."""
    x = np.linspace(-1, 1, 10)
    model = credo.models.regression(credo.networks.MLP([3], out=1), noise=0.3)
    sampler = credo.NUTS(num_samples=5, num_warmup=10, num_chains=3, max_depth=3)
    ensemble = credo.DeepEnsemble(credo.MAP(num_steps=20), members=3)
    with mock.patch.object(engine, "available_cores", return_value=2):
        thetas = [credo.fit(model, (x, np.sin(x)), method, seed=1).theta for method in (sampler, ensemble)]
    return hashlib.sha256(b"".join(theta[name].tobytes() for theta in thetas for name in sorted(theta))).hexdigest()


@pytest.mark.full
def test_chains_on_two_devices_draw_the_same_bits():
    script = (
        "import jax; from tests.inference.engine.test_engine import digest; print(jax.local_device_count(), digest())"
    )
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    env = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["2", digest()]


# --- progress


def test_progress_bar_shows_speed_and_figure(model, data, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    method = credo.Metropolis(num_samples=4, num_warmup=4, num_chains=1, thin=1)
    credo.fit(model, data, method, progress=True)
    shown = capsys.readouterr().err
    assert "Metropolis" in shown
    assert "100%" in shown
    assert "steps/s" in shown
    assert "acceptance" in shown
    credo.fit(model, data, method, progress=False)
    assert capsys.readouterr().err == ""


def test_progress_bar_counts_the_steps_of_all_members(model, data, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    credo.fit(model, data, credo.DeepEnsemble(credo.MAP(num_steps=4), members=9), progress=True)
    shown = capsys.readouterr().err
    assert "100%" in shown
    assert "log joint" in shown


# --- starting points


def test_chains_start_near_the_mode_when_asked():
    x = np.linspace(-1, 1, 30)
    model = credo.models.regression(credo.networks.MLP([], out=1), prior=credo.priors.normal(10.0), noise=0.1)
    settings = {"num_samples": 1, "num_warmup": 0, "num_chains": 3, "thin": 1, "scale": 1e-6}
    search = credo.MAP(num_steps=300, learning_rate=optax.cosine_decay_schedule(2.0, 300))
    near = credo.fit(model, (x, 2 * x + 1), credo.Metropolis(**settings, start=search))
    far = credo.fit(model, (x, 2 * x + 1), credo.Metropolis(**settings))
    np.testing.assert_allclose(near.theta["head.kernel"].ravel(), 2.0, atol=0.05)
    np.testing.assert_allclose(near.theta["head.bias"].ravel(), 1.0, atol=0.05)
    assert np.all(np.abs(far.theta["head.kernel"].ravel() - 2.0) > 0.5)
    assert np.ptp(far.theta["head.kernel"]) > 1.0
