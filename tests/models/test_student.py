"""What a student's outputs mean: the best of them are the teacher's own answers."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from credo.models.student import DirichletHead, NormalHead

RNG = np.random.default_rng(0)
FUNCTIONS, NOISE = jnp.asarray(RNG.normal(size=(40, 3))), jnp.asarray(RNG.uniform(0.5, 1.0, (40, 3)))
PROBS = jnp.asarray(RNG.dirichlet([2.0, 1.0, 0.5], size=(40, 4)))


def inverse_softplus(scale):
    return jnp.log(jnp.expm1(scale))


def normal_draws(outputs):
    """The statistics of each of 40 draws in three rows, and of all of them together."""
    head = NormalHead(1, scalar=True)
    each = [head.of_draw(dist.Normal(f, n), outputs) for f, n in zip(FUNCTIONS, NOISE, strict=True)]
    return head, each, head.statistics(FUNCTIONS.mean(0), FUNCTIONS.var(0), (NOISE**2).mean(0))


def class_draws(outputs):
    head = DirichletHead(3)
    each = [head.of_draw(dist.CategoricalProbs(probs), outputs) for probs in PROBS]
    mean = PROBS.mean(0)
    entropy = -jnp.sum(mean * jnp.log(mean), -1)
    aleatoric = -jnp.sum(PROBS * jnp.log(PROBS), -1).mean(0)
    return head, each, head.statistics(mean, entropy - aleatoric, aleatoric)


def own_outputs(head, statistics):
    """The outputs whose own statistics are these."""
    if isinstance(head, NormalHead):
        mean, *variances = jnp.split(statistics, 3, axis=-1)
        return jnp.concatenate([mean, *(inverse_softplus(jnp.sqrt(one) - 1e-3) for one in variances)], axis=-1)
    share = statistics[:, -2:-1]
    return jnp.concatenate([jnp.log(statistics[:, :-2]), jnp.log((1 - share) / share)], axis=-1)


CASES = {"numbers": (normal_draws, jnp.zeros((3, 3))), "classes": (class_draws, jnp.zeros((4, 4)))}


@pytest.mark.parametrize("case", CASES)
def test_the_best_student_says_what_the_teacher_says(case):
    draws, zeros = CASES[case]
    head, _, statistics = draws(zeros)
    best = own_outputs(head, statistics)
    np.testing.assert_allclose(head.own(best), statistics, rtol=1e-4, atol=1e-5)
    slope = jax.grad(lambda outputs: head.expected_log(outputs, statistics).sum())
    np.testing.assert_allclose(slope(best), 0.0, atol=1e-4)
    # Anywhere else there is a way uphill.
    assert float(jnp.abs(slope(best + 0.3)).max()) > 1e-2


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_single_draws_average_to_that_of_all(case):
    """What the online student climbs; its shares are not divided by the entropy, so that only the optimum is shared."""
    draws, zeros = CASES[case]
    head, _, statistics = draws(zeros)
    best = own_outputs(head, statistics)
    _, each, _ = draws(best)
    slopes = [jax.grad(lambda outputs, one=one: head.expected_log(outputs, one).sum())(best) for one in each]
    np.testing.assert_allclose(jnp.stack(slopes).mean(0), 0.0, atol=1e-4)


def test_the_marginal_is_that_of_the_joint_law():
    head = NormalHead(2, scalar=False)
    outputs = jnp.asarray(RNG.normal(size=(5, 6)))
    law, (mean, epistemic, aleatoric) = head.law(outputs), jnp.split(head.own(outputs), 3, axis=-1)
    assert law.shape() == (5, 2)
    np.testing.assert_allclose(law.mean, mean)
    np.testing.assert_allclose(law.variance, epistemic + aleatoric, rtol=1e-5)
