"""The paper's third practical example: which methods find both folds, and which weigh them right.

The reference is exact (±0.001), for the prior of the supplement: the model reduced to a = γ₁α and b = |γ₂|β, whose six
numbers importance sampling can integrate over.
"""

import numpy as np
import pytest

import credo
from credo.inference.mcmc.tempering import ParallelTempering
from credo.inference.method import Method
from credo.models.paperfold import paperfold
from tests.statistical.moments import sigmas

POINTS = np.array([[0.0, 0.0], [2**0.5, 2**0.5], [0.5**0.5, 0.5**0.5], [1.0, 0.0], [0.3, 0.9]])
MEAN = np.array([0.494, 0.506, 0.500, 0.825, 0.280])
SD = np.array([0.477, 0.511, 0.076, 0.151, 0.129])
MASS_OF_A = 0.506
PRECISION = 0.001

MODEL = paperfold(prior={"*.bias": credo.priors.normal(10.0)})
DATA = credo.datasets.paperfold()


def heights(posterior: credo.Posterior) -> np.ndarray:
    """f at the five points, (draws, 5)."""
    return posterior.predict(POINTS).functions.reshape(-1, len(POINTS))


def assert_reference(posterior: credo.Draws, standard_error: float) -> None:
    """Mass of fold A, mean and sd of f, each up to its standard error, which the spread of the chains gives."""
    draws = heights(posterior).astype(np.float64).reshape(posterior.num_chains, posterior.num_draws, -1)
    is_a = (draws[..., :1] < 0.5).astype(float)
    # Of the sds their squares, which are means too: (sd ± p)² = sd² ± 2 sd p.
    figures = np.concatenate([is_a, draws, (draws - MEAN) ** 2], axis=-1).mean(axis=1)
    exact = np.concatenate([[MASS_OF_A], MEAN, SD**2])
    precision = np.concatenate([np.full(6, PRECISION), 2 * SD * PRECISION])
    error = figures.std(axis=0, ddof=1) / np.sqrt(posterior.num_chains)
    off = np.abs(figures.mean(axis=0) - exact)
    allowed = sigmas(len(exact), posterior.num_chains - 1) * error + precision
    assert (off < allowed).all(), f"off by {(off / error).round(1)} standard errors"
    assert error[0] < standard_error, f"the folds are weighed to {error[0]:.3f} only"


def tempering(num_samples: int) -> ParallelTempering:
    # At β = 0.01 the noise is 1, as large as the difference of the folds: there is nothing left to cross.
    return ParallelTempering(num_samples=num_samples, num_chains=8, min_beta=0.01, target_acceptance=0.65)


@pytest.mark.full
def test_tempering_reproduces_the_reference(seed: int) -> None:
    posterior = credo.fit(MODEL, DATA, tempering(8000), seed=seed)
    assert posterior.infos["round_trips"][:, -1].min() >= 10
    assert_reference(posterior, standard_error=0.05)


@pytest.mark.full
def test_long_tempering_reproduces_the_reference_closely(seed: int) -> None:
    assert_reference(credo.fit(MODEL, DATA, tempering(60_000), seed=seed), standard_error=0.02)


def test_a_chain_of_nuts_stays_in_its_fold_and_chains_together_find_both(seed: int) -> None:
    # All 16 in one fold once in 32,000 seeds.
    posterior = credo.fit(MODEL, DATA, credo.NUTS(num_samples=200, num_warmup=400, num_chains=16), seed=seed)
    centre = heights(posterior)[:, 0].reshape(16, 200)
    is_a = centre < 0.5
    assert (is_a.all(axis=1) | (~is_a).all(axis=1)).all()
    assert 0 < is_a[:, 0].sum() < 16


# Over half of the starts end on a plane without a fold, a local optimum. Those that do fold find both ways: of an
# ensemble's members 8% the rarer one, of SGLD's restarts (60 for each of 4 chains) 5%. None would do once in 10⁵ seeds.
# Other ways to find both go here: one line each.
@pytest.mark.parametrize(
    "method",
    [
        credo.DeepEnsemble(credo.MAP(num_steps=2000, learning_rate=0.05, start="prior"), members=160),
        credo.SGLD(num_samples=600, num_warmup=3000, step_size=1e-5, start="prior", num_cycles=60, restart="prior"),
    ],
    ids=["ensemble of MAP", "SGLD with warm restarts"],
)
def test_both_folds_are_found(method: Method, seed: int) -> None:
    in_a, in_b = in_folds(credo.fit(paperfold(), DATA, method, seed=seed))
    assert in_a > 0
    assert in_b > 0


@pytest.mark.full
def test_mean_field_vi_finds_one_fold_and_an_ensemble_of_it_both(seed: int) -> None:
    member = credo.BayesByBackprop(num_steps=10_000, learning_rate=0.05, start="prior")
    ensemble = credo.fit(paperfold(), DATA, credo.DeepEnsemble(member, members=10), seed=seed)
    shares = np.array([in_folds(one) for one in ensemble.members])
    assert (shares.min(axis=1) == 0).all()
    assert (shares.max(axis=0) > 0.9).all()


def in_folds(posterior: credo.Posterior) -> tuple[float, float]:
    """The shares of the draws that lie in fold A and in fold B, by their height at the centre."""
    centre = heights(posterior)[:, 0]
    return float(np.mean(np.abs(centre) < 0.25)), float(np.mean(np.abs(centre - 1) < 0.25))


def test_default_prior_is_the_papers() -> None:
    prior = str(paperfold().bind(DATA).describe())
    assert prior.count("Normal(loc=0, scale=5)") == 5
    with pytest.raises(ValueError, match="matches no parameter"):
        paperfold(prior={"*.offset": credo.priors.normal(10.0)})
