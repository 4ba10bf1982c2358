"""Predictions given as arrays: the same answers as numpy, and clear errors."""

import numpy as np
import pytest

import credo

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(3), size=(5, 7))
MEANS, SDS = 1e6 + RNG.normal(size=(5, 7)), 0.5 + RNG.random((5, 7))


def test_probabilities_are_averaged_over_draws() -> None:
    prediction = credo.from_probs(PROBS)
    np.testing.assert_allclose(prediction.probs, PROBS.mean(0), rtol=1e-5)
    np.testing.assert_allclose(prediction.probs_std, PROBS.std(0, ddof=1), rtol=1e-4)
    np.testing.assert_allclose(prediction.functions, PROBS, rtol=1e-6)
    np.testing.assert_allclose(prediction.aleatoric, -np.sum(PROBS * np.log(PROBS), -1).mean(0), rtol=1e-4)
    assert credo.from_probs(PROBS[0]).num_draws == 1


def test_normals_are_mixed_and_keep_their_digits() -> None:
    """A million plus one: single precision holds seven digits, so the level is set aside."""
    prediction = credo.from_normal(MEANS, SDS)
    np.testing.assert_allclose(prediction.mean - 1e6, MEANS.mean(0) - 1e6, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(prediction.epistemic, MEANS.var(0, ddof=1), rtol=1e-3)
    np.testing.assert_allclose(prediction.aleatoric, (SDS**2).mean(0), rtol=1e-4)
    assert not prediction.is_normal
    assert credo.from_normal(MEANS[0], 1.0).is_normal


def test_rows_can_be_chosen() -> None:
    prediction = credo.from_probs(PROBS)
    for rows in (slice(2, 5), [1, 3], np.arange(7) > 4):
        np.testing.assert_allclose(prediction[rows].probs, prediction.probs[rows], rtol=1e-6)
    assert len(prediction[3]) == 1


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        ([[0.5, 0.6]], "add up to 1, and one adds up to 1.1"),
        ([[0.5, np.nan]], "1 values that are not finite"),
        ([[1.5, -0.5]], "between 0 and 1"),
        ([0.5, 0.5], r"shape \(2,\)"),
        ([[1.0]], "at least two classes"),
        (np.empty((0, 2)), r"shape \(0, 2\)"),
    ],
)
def test_bad_probabilities(probs: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        credo.from_probs(probs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": [0.0, np.inf], "std": 1.0}, "mean holds 1 values"),
        ({"mean": [0.0], "std": 0.0}, "std must be positive"),
        ({"mean": [0.0]}, "one of std and covariance"),
        ({"mean": [0.0], "covariance": [[1.0]]}, "a covariance needs a mean of shape"),
        ({"mean": np.zeros((1, 4, 2)), "covariance": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
    ],
)
def test_bad_normals(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        credo.from_normal(**arguments)
