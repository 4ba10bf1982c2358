"""Floor 2 for SGLD and SGHMC: on linear regression the law of their draws is known, bias and all.

The gradient of a normal log joint is linear, so a chain is a linear recursion z ← A z + noise. Its stationary
covariance solves a discrete Lyapunov equation, exactly, at any step size. Broken samplers fail the same assertion.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from credo.inference.engine import driver as engine
from credo.inference.method import Method
from credo.inference.outcome import NonFiniteError, Outcome
from credo.inference.sgmcmc import schedules
from credo.inference.sgmcmc.sghmc import SGHMC
from credo.inference.sgmcmc.sgld import SGLD
from credo.posterior import Draws
from credo.typing import Batch, Theta
from tests.statistical.moments import assert_mean, assert_moments, ess, sigmas
from tests.statistical.targets import NOISE, linear_regression

TARGET = linear_regression()
NUM_DATA, BATCH_SIZE = TARGET.data.size, 5
DESIGN = np.column_stack([TARGET.data.x, np.ones(NUM_DATA)])
PRECISION = np.eye(4) + DESIGN.T @ DESIGN / NOISE**2
LARGEST = np.linalg.eigvalsh(PRECISION)[-1]
EYE = np.eye(4)
# Steps are given as ελ for the largest precision λ: a chain is stable up to 4.
RUN = {"num_samples": 4000, "num_warmup": 500, "thin": 5, "num_chains": 4}
# The prediction for minibatches takes the curvature of all batches for the same. Over 40 seeds it was off by 3% of an
# sd at the step ελ = 0.6, and by 1.4% at 0.1.
OF_LARGE_STEPS, OF_SMALL_STEPS = 0.05, 0.02


def step_size(stiffness: float) -> float:
    """Such that ελ is as asked for."""
    return stiffness * NUM_DATA / LARGEST


def fitted(method: Method, seed: int, total: int = NUM_DATA) -> tuple[np.ndarray, Outcome, Draws]:
    """Draws (chains, draws, 4), the run, and the posterior; of a batch that says it is one of `total` rows."""
    model = TARGET.model.bind(TARGET.data)
    run = engine.run(method, model, TARGET.data.batch()._replace(total=total), seed=seed)
    posterior = method.posterior(model, run)
    return TARGET.draws(posterior), run, posterior


def assert_law(draws: np.ndarray, covariance: np.ndarray, slack: float = 0.0) -> None:
    """The posterior's mean and this covariance: 4 means and 10 products of whitened draws, by their ESS."""
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - TARGET.mean)[..., None])[..., 0]
    first, second = np.triu_indices(4)
    products = white[..., first] * white[..., second]
    sd = np.where(first == second, np.sqrt(2), 1.0)
    mean_error, product_error = 1 / np.sqrt(ess(white)), sd / np.sqrt(ess(products))
    mean_off, product_off = np.abs(white.mean((0, 1))), np.abs(products.mean((0, 1)) - (first == second))
    assert np.all(mean_off < sigmas(14) * mean_error + slack), f"means off by {mean_off.round(3)}"
    assert np.all(product_off < sigmas(14) * product_error + slack), f"covariances off by {product_off.round(3)}"


# -- predictions -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recursion:
    """z ← A z + F ξ + injected noise, for z = (theta − mean, velocity), and ξ the noise of gradients on batches."""

    transition: np.ndarray
    injected: np.ndarray
    forcing: np.ndarray

    @classmethod
    def of(cls, stiffness: float, friction: float = 1.0, metric: np.ndarray = EYE) -> "Recursion":
        """SGHMC; SGLD where the friction is 1."""
        rate = 0.5 * stiffness / LARGEST * metric
        stay = (1 - friction) * EYE
        transition = np.block([[EYE - rate @ PRECISION, stay], [-rate @ PRECISION, stay]])
        both = np.vstack([EYE, EYE])
        return cls(transition, 2 * friction * both @ rate @ both.T, both @ rate)

    def covariance(self) -> np.ndarray:
        """Of theta, with full batches."""
        return solve_discrete_lyapunov(self.transition, self.injected)[:4, :4]

    def covariance_of_minibatches(self) -> np.ndarray:
        """Of theta, averaged over the steps of an epoch.

        The K batches of an epoch are disjoint and add up to the data: for two of them Cov(ξⱼ, ξₖ) = −Cov(ξ)/(K − 1).
        """
        num_batches = NUM_DATA // BATCH_SIZE
        powers = [np.linalg.matrix_power(self.transition, power) for power in range(num_batches + 1)]
        shares = np.where(np.eye(num_batches, dtype=bool), 1.0, -1 / (num_batches - 1))
        noise = self.forcing @ gradient_noise() @ self.forcing.T

        def added(num: int) -> np.ndarray:
            """By the first `num` steps of an epoch."""
            pairs = [(one, other) for one in range(num) for other in range(num)]
            by_batches = sum(
                shares[one, other] * powers[num - 1 - one] @ noise @ powers[num - 1 - other].T for one, other in pairs
            )
            return by_batches + sum(powers[place] @ self.injected @ powers[place].T for place in range(num))

        start = solve_discrete_lyapunov(powers[-1], added(num_batches))
        within = [powers[num] @ start @ powers[num].T + added(num) for num in range(1, num_batches + 1)]
        return np.mean(within, axis=0)[:4, :4]


def gradient_noise() -> np.ndarray:
    """Cov(ξ) of the gradient on a batch of n of N rows, drawn without repetition: N²/n (1 − n/N) S², S² over the rows.

    Averaged over theta from the posterior: at its mean, plus what the distance to it adds.
    """
    at_mean = DESIGN * (TARGET.data.y - DESIGN @ TARGET.mean)[:, None] / NOISE**2
    away = [
        -DESIGN * (DESIGN @ column)[:, None] / NOISE**2 for column in np.linalg.cholesky(np.linalg.inv(PRECISION)).T
    ]
    over_rows = sum(np.cov(gradients.T) for gradients in [at_mean, *away])
    return NUM_DATA**2 / BATCH_SIZE * (1 - BATCH_SIZE / NUM_DATA) * over_rows


def test_prediction_of_sgld_is_the_closed_form() -> None:
    """Per eigenvalue λ of the precision: 1/(λ(1 − ελ/4)); with friction α, 1/(λ(1 − ελ/(8 − 4α)))."""
    for stiffness, friction in ((1.5, 1.0), (1.5, 0.3)):
        epsilon = stiffness / LARGEST
        closed = np.linalg.inv(PRECISION - epsilon / (8 - 4 * friction) * PRECISION @ PRECISION)
        np.testing.assert_allclose(Recursion.of(stiffness, friction).covariance(), closed, rtol=1e-8)


# -- full batches ------------------------------------------------------------------------------------------


def test_bias_of_sgld_is_the_predicted_one_and_halves_with_the_step(seed: int) -> None:
    """1 − 1/(λ Var) = ελ/4 in the stiffest direction: first order in ε."""
    direction = np.linalg.eigh(PRECISION)[1][:, -1]
    lost = []
    for stiffness in (2.0, 1.0, 0.5):
        draws, _, _ = fitted(SGLD(**RUN, step_size=step_size(stiffness)), seed)
        assert_law(draws, Recursion.of(stiffness).covariance())
        lost.append(1 - 1 / (LARGEST * np.var(draws @ direction)))
    order = np.log2(lost[0] / lost[-1]) / 2
    # A variance is known to √(2/ESS) = 1.2%, so the last share lost, 0.125, to 8%, and half its logarithm to 0.06.
    assert order == pytest.approx(1.0, abs=sigmas() * 0.06)


@pytest.mark.quick
@pytest.mark.parametrize(("stiffness", "friction"), [(2.0, 0.5), (1.0, 0.1), (0.5, 0.1)])
def test_law_of_sghmc(stiffness: float, friction: float, seed: int) -> None:
    draws, _, _ = fitted(SGHMC(**RUN, step_size=step_size(stiffness), friction=friction), seed)
    assert_law(draws, Recursion.of(stiffness, friction).covariance())


@pytest.mark.parametrize(
    "method",
    [SGLD(**(RUN | {"thin": 40}), step_size=step_size(0.1)), SGHMC(**RUN, step_size=step_size(0.1))],
    ids=["sgld", "sghmc"],
)
def test_small_steps_give_the_posterior(method: SGLD, seed: int) -> None:
    # A variance is too large by ελ/4 at most.
    assert_moments(fitted(method, seed)[0], TARGET.mean, TARGET.sd, bias=0.1 / 8)


# -- minibatches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stiffness", "friction", "slack"),
    [(0.6, 1.0, OF_LARGE_STEPS), (0.3, 0.3, OF_LARGE_STEPS), (0.1, 0.1, OF_SMALL_STEPS)],
)
def test_minibatches_add_the_noise_of_their_gradients(
    stiffness: float, friction: float, slack: float, seed: int
) -> None:
    """By far less than independent batches would; a prediction without it fails."""
    # Draws every 7 steps come from all steps of an epoch of 6 alike.
    settings = RUN | {"num_samples": 40_000, "thin": 7, "step_size": step_size(stiffness), "batch_size": BATCH_SIZE}
    draws, _, _ = fitted(SGLD(**settings) if friction == 1 else SGHMC(**settings, friction=friction), seed)
    recursion = Recursion.of(stiffness, friction)
    assert_law(draws, recursion.covariance_of_minibatches(), slack)
    with pytest.raises(AssertionError, match="off by"):
        assert_law(draws, recursion.covariance(), slack)


# -- preconditioning, decreasing steps ---------------------------------------------------------------------


def metric_of(run: Outcome) -> np.ndarray:
    """G of the first chain, as a matrix."""
    squares = run.states.mean_square
    names = sorted(squares, key=lambda name: "bias" in name)
    return np.diag(np.concatenate([1 / (1e-5 + np.sqrt(squares[name][0].ravel())) for name in names]))


@pytest.mark.parametrize("friction", [1.0, 0.3])
def test_law_of_a_preconditioned_chain(friction: float, seed: int) -> None:
    """G is fixed after the warm-up: the recursion is linear, and its law is known."""
    settings = RUN | {"num_chains": 1, "num_samples": 16_000, "step_size": 0.1, "preconditioner": "rmsprop"}
    draws, run, _ = fitted(SGLD(**settings) if friction == 1 else SGHMC(**settings, friction=friction), seed)
    predicted = Recursion.of(0.1 * LARGEST / NUM_DATA, friction, metric_of(run)).covariance()
    assert np.linalg.eigvals(predicted @ PRECISION).real.max() > 1.1, "too small a step for its bias to be seen"
    assert_law(draws, predicted)


def test_preconditioned_sgld_gives_the_posterior_as_the_step_shrinks(seed: int) -> None:
    method = SGLD(**(RUN | {"thin": 80}), step_size=0.005, preconditioner="rmsprop")
    draws, run, _ = fitted(method, seed)
    predicted = Recursion.of(0.005 * LARGEST / NUM_DATA, 1.0, metric_of(run)).covariance()
    bias = 0.5 * (np.linalg.eigvals(predicted @ PRECISION).real.max() - 1)
    assert bias < 0.02
    assert_moments(draws, TARGET.mean, TARGET.sd, bias=bias)


def test_decreasing_steps_are_weighted(seed: int) -> None:
    """Draw by draw the variance is that of its step size; the weighted average of these is what the draws must show."""
    schedule = schedules.Polynomial(step_size(2.5), delay=100, power=0.5)
    settings = RUN | {"num_chains": 16, "num_samples": 2000, "num_warmup": 100}
    draws, run, posterior = fitted(SGLD(**settings, step_size=schedule), seed)
    sizes = run.infos.step_size[0]
    np.testing.assert_allclose(sizes, schedule(99 + 5 * np.arange(1, 2001)), rtol=1e-5)
    np.testing.assert_allclose(posterior.weights, np.tile(sizes / sizes.sum() / 16, (16, 1)), rtol=1e-5)
    weights = 16 * posterior.weights[0]
    direction = np.linalg.eigh(PRECISION)[1][:, -1]
    along = (draws - TARGET.mean) @ direction
    stiffness = sizes * LARGEST / NUM_DATA
    predicted = np.sum(weights / (1 - stiffness / 4)) / LARGEST
    by_chain = along**2 @ weights
    assert_mean(by_chain, predicted)
    with pytest.raises(AssertionError):  # long enough a run to see the bias
        assert_mean(by_chain, 1 / LARGEST)
    assert_mean(along @ weights, 0.0)


# -- negative controls -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TooNoisy(SGLD):
    """Noise of variance 2ε: that of another convention, beside the drift of this one."""

    def move(self, theta: Theta, drift: Theta, scale: Theta, noise: Theta, aux: Any) -> tuple[Theta, Any]:
        return super().move(theta, drift, scale, jax.tree.map(lambda leaf: 2**0.5 * leaf, noise), aux)


@dataclass(frozen=True, kw_only=True)
class Unbalanced(SGHMC):
    """Friction without the noise that balances it: the noise of SGLD."""

    def move(self, theta: Theta, drift: Theta, scale: Theta, noise: Theta, aux: Any) -> tuple[Theta, Any]:
        louder = jax.tree.map(lambda leaf: leaf / self.friction**0.5, noise)
        return super().move(theta, drift, scale, louder, aux)


@dataclass(frozen=True, kw_only=True)
class Descending(SGLD):
    """The update as the paper's algorithm prints it: theta − (ε/2·∇log p(theta, D) + η)."""

    def move(self, theta: Theta, drift: Theta, scale: Theta, noise: Theta, aux: Any) -> tuple[Theta, Any]:
        return super().move(theta, *jax.tree.map(jnp.negative, (drift, scale)), noise, aux)


@dataclass(frozen=True, kw_only=True)
class PriorTwice(SGLD):
    """The gradient as the paper's update equation prints it: ∇log p(D, theta) + ∇log p(theta)."""

    def step(self, key: jax.Array, model: Any, state: Any, batch: Batch) -> tuple[Any, Any]:
        def log_parts(theta: Theta, batch: Batch) -> tuple[jax.Array, jax.Array]:
            log_prior, log_likelihood = model.log_parts(theta, batch)
            return 2 * log_prior, log_likelihood

        return super().step(key, SimpleNamespace(log_parts=log_parts), state, batch)


def test_update_as_printed_runs_away(seed: int) -> None:
    with pytest.raises(NonFiniteError):
        fitted(Descending(**RUN, step_size=step_size(0.5)), seed)


def test_prior_counted_twice_fails(seed: int) -> None:
    draws, _, _ = fitted(PriorTwice(**RUN, step_size=step_size(0.5)), seed)
    with pytest.raises(AssertionError, match="means off"):
        assert_law(draws, Recursion.of(0.5).covariance())


@pytest.mark.parametrize(("broken", "friction"), [(TooNoisy, 1.0), (Unbalanced, 0.1)])
def test_wrong_noise_fails(broken: type[SGLD], friction: float, seed: int) -> None:
    draws, _, _ = fitted(broken(**RUN, step_size=step_size(0.5)), seed)
    with pytest.raises(AssertionError, match="off by"):
        assert_law(draws, Recursion.of(0.5, friction).covariance())


@pytest.mark.parametrize("method", [SGLD, SGHMC])
def test_missing_scale_of_the_batch_fails(method: type[SGLD], seed: int) -> None:
    """The batch says that it is the whole data set, so that N/n = 1; ε is the same as before."""
    right = method(**RUN, step_size=step_size(0.1), batch_size=BATCH_SIZE)
    predicted = Recursion.of(0.1, getattr(right, "friction", 1.0)).covariance_of_minibatches()
    assert_law(fitted(right, seed)[0], predicted, OF_SMALL_STEPS)
    wrong = replace(right, step_size=step_size(0.1) * BATCH_SIZE / NUM_DATA)
    with pytest.raises(AssertionError):
        assert_law(fitted(wrong, seed, total=BATCH_SIZE)[0], predicted, OF_SMALL_STEPS)
