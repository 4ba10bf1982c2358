"""What y says about the numbers that set its distribution: the Fisher information, against integrals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from credo.models.outputs import BetaOutputs, LogNormalOutputs, NormalOutputs, StudentOutputs

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("df", [1.0, 3.5, 20.0])
def test_the_information_of_a_student_t(df):
    """F = E[∇ log p ∇ log pᵀ], with gradients by differences in double precision."""
    at = np.array([0.7, np.log(0.4), np.log(df)])

    def log_density(outputs, y):
        return stats.t.logpdf(y, np.exp(outputs[2]), outputs[0], np.exp(outputs[1]))

    def gradient(y):
        steps = 1e-5 * np.eye(3)
        return np.array([(log_density(at + step, y) - log_density(at - step, y)) / 2e-5 for step in steps])

    # y = 0.7 + 0.4 tan φ: all of the line is a finite interval.
    def integrand(angle):
        y = 0.7 + 0.4 * np.tan(angle)
        weight = np.exp(log_density(at, y)) * 0.4 / np.cos(angle) ** 2
        return np.einsum("i,j->ij", *2 * [gradient(y)]).ravel() * weight

    expected = integrate.quad_vec(integrand, -np.pi / 2 + 1e-6, np.pi / 2 - 1e-6)[0].reshape(3, 3)
    row = jnp.asarray(at, jnp.float32)[None]
    root = np.asarray(jax.jacobian(lambda outputs: StudentOutputs(1, True).informed(outputs, row)[0])(row))[:, 0]
    np.testing.assert_allclose(root.T @ root, expected, rtol=2e-3, atol=2e-4)


def test_outputs_of_a_student_t_are_its_numbers():
    kind = StudentOutputs(2, False)
    outputs = jnp.asarray(np.random.default_rng(0).normal(size=(3, 6)), jnp.float32)
    np.testing.assert_allclose(kind.read(kind.distribution(outputs)), outputs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("a", "b"), [(0.3, 2.0), (5.0, 60.0)])
def test_the_information_of_a_beta_law(a, b):
    """F = −E[∇² log p] of log a and log b: of a log density that is linear in log y and log(1 − y) it is the Hessian of
    log B(a, b), scaled."""

    def log_beta(logs):
        return special.betaln(*np.exp(logs))

    at, step = np.log([a, b]), 1e-4 * np.eye(2)
    # ∇² log B in a and b, from differences in log a and log b: a second derivative has the gradient added.
    gradient = np.array([(log_beta(at + one) - log_beta(at - one)) / 2e-4 for one in step])
    hessian = np.array(
        [
            [
                (log_beta(at + i + j) - log_beta(at + i - j) - log_beta(at - i + j) + log_beta(at - i - j)) / 4e-8
                for j in step
            ]
            for i in step
        ]
    )
    row = jnp.asarray(at, jnp.float32)[None]
    root = np.asarray(jax.jacobian(lambda outputs: BetaOutputs().informed(outputs, row)[0])(row))[:, 0]
    np.testing.assert_allclose(root.T @ root, hessian - np.diag(gradient), rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("kind", [BetaOutputs(), LogNormalOutputs(NormalOutputs(1, True))])
def test_outputs_are_the_numbers_of_their_law(kind):
    outputs = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)), jnp.float32)
    np.testing.assert_allclose(kind.read(kind.distribution(outputs)), outputs, rtol=1e-5, atol=1e-6)
