"""Targets of one kind: each law against scipy, what a posterior answers, and values that a law has no density for."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import biject_to, constraints
from scipy import integrate, stats

import credo
from credo.evaluation.coverage import levels_of
from credo.models.counts import LEAST_DISPERSION, Counts
from credo.models.ordinal import Ordinal
from credo.models.positive import Positive
from credo.models.shares import Shares
from credo.networks import MLP
from credo.predictive import ClassPredictive

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
F = 0.5 + 0.7 * X[:, 0]
COUNTS = RNG.poisson(np.exp(F) * RNG.gamma(4.0, 0.25, 60)).astype(float)
AMOUNTS = 1000 * np.exp(F + 0.3 * RNG.normal(size=60))
SHARES = 1 / (1 + np.exp(-F - 0.3 * RNG.normal(size=60)))
GRADES = np.digitize(F + RNG.logistic(size=60), [-1.0, 0.0, 1.5])
TARGETS = {"counts": COUNTS, "positive": AMOUNTS, "shares": SHARES, "ordinal": GRADES}
NUMBERS = ("counts", "positive", "shares")
# Rows of outputs: the middle, and its noise on a log scale.
OUTPUTS = np.array([[-2.0, -1.0], [0.3, 0.5], [3.0, -6.0]])


@cache
def fitted(kind):
    """A posterior of the default model of a kind."""
    data = credo.Data(X, TARGETS[kind], standardise=True)
    model = credo.models.table(data, "table:3", likelihood=kind)
    return credo.fit(model, data, credo.MAP(num_steps=200), seed=0)


# -- the laws ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [0, 3, 40])
def test_counts_are_negative_binomial(y):
    """Also where there is hardly any dispersion: single precision keeps 2e-4 of log Γ(400) = 1994, in each of three."""
    law = Counts(base=2.0).around(jnp.asarray(OUTPUTS), None)
    mean = 2 * np.exp(OUTPUTS[:, 0])
    size = 1 / (LEAST_DISPERSION**2 + np.exp(2 * OUTPUTS[:, 1]))
    expected = stats.nbinom(size, size / (size + mean))
    np.testing.assert_allclose(law.log_prob(jnp.full(3, y)), expected.logpmf(y), rtol=1e-5, atol=6e-4)
    np.testing.assert_allclose(law.cdf(jnp.full(3, y)), expected.cdf(y), atol=6e-4)
    np.testing.assert_allclose(law.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(law.variance, mean + mean**2 / size, rtol=1e-5)


def test_counts_are_poisson():
    law = Counts("poisson", base=2.0).around(jnp.asarray(OUTPUTS[:, :1]), None)
    np.testing.assert_allclose(law.log_prob(3), stats.poisson(2 * np.exp(OUTPUTS[:, 0])).logpmf(3), rtol=1e-5)


def test_positive_numbers_are_log_normal():
    law = Positive(credo.models.likelihoods.Heteroscedastic(), 1.5).around(jnp.asarray(OUTPUTS), None)
    sd = 1.5 * (1e-3 + np.log1p(np.exp(OUTPUTS[:, 1])))
    expected = stats.lognorm(sd, scale=np.exp(1.5 * OUTPUTS[:, 0]))
    np.testing.assert_allclose(law.mean, expected.mean(), rtol=1e-4)
    np.testing.assert_allclose(law.variance, expected.var(), rtol=1e-4)
    np.testing.assert_allclose(law.log_prob(2.5), expected.logpdf(2.5), rtol=1e-4)
    np.testing.assert_allclose(law.cdf(2.5), expected.cdf(2.5), rtol=1e-3, atol=1e-6)


def test_shares_are_beta():
    """Single precision keeps 2e-3 of log Γ(2500), in each of three."""
    law = Shares().around(jnp.asarray(OUTPUTS), None)
    mean = 1 / (1 + np.exp(-OUTPUTS[:, 0]))
    precision = 1 / (0.02**2 + np.exp(2 * OUTPUTS[:, 1]))
    expected = stats.beta(mean * precision, (1 - mean) * precision)
    np.testing.assert_allclose(law.log_prob(0.9), expected.logpdf(0.9), rtol=1e-4, atol=6e-3)
    np.testing.assert_allclose(law.cdf(0.9), expected.cdf(0.9), atol=6e-3)
    np.testing.assert_allclose(law.variance, mean * (1 - mean) / (1 + precision), rtol=1e-4)


def test_ordered_classes_lie_between_cut_points():
    """Also far out, where a difference of two probabilities would be one of equal numbers."""
    cuts, place = np.array([-1.0, 0.5, 2.0]), np.array([-30.0, 0.3, 40.0])
    law = Ordinal(4).around(jnp.asarray(place[:, None]), jnp.asarray(cuts))
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    # P = F(above) − F(below) = S(below) − S(above), of which one has all the digits.
    below, above = ends[:-1] - place[:, None], ends[1:] - place[:, None]
    probs = np.where(
        below > 0,
        stats.logistic.sf(below) - stats.logistic.sf(above),
        stats.logistic.cdf(above) - stats.logistic.cdf(below),
    )
    np.testing.assert_allclose(law.logits, np.log(probs), rtol=1e-4, atol=1e-5)


def test_cut_points_have_the_shares_of_the_classes():
    data = (X, GRADES)
    model = credo.models.ordinal(MLP([3], 1), 4).bind(data)
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    theta = {name: jnp.zeros(leaf.shape) for name, leaf in model.template.items()}
    theta["shares"] = biject_to(constraints.simplex).inv(jnp.asarray(shares))
    np.testing.assert_allclose(model.predictive(theta, jnp.asarray(X[:1], jnp.float32)).probs[0], shares, rtol=1e-4)


# -- what a posterior answers ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TARGETS)
def test_it_is_saved_and_answers_the_same(kind, tmp_path):
    fitted(kind).save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    assert again.model.config == fitted(kind).model.config
    y = TARGETS[kind]
    np.testing.assert_array_equal(again.predict(X).log_prob(y), fitted(kind).predict(X).log_prob(y))


@pytest.mark.parametrize("kind", TARGETS)
def test_it_is_better_than_what_does_not_look_at_x(kind):
    """The default model explains rows that it has seen better than one law for all of them."""
    y = TARGETS[kind]
    alone = {
        "counts": lambda: stats.poisson(y.mean()).logpmf(y),
        "positive": lambda: stats.lognorm(np.std(np.log(y)), scale=np.exp(np.mean(np.log(y)))).logpdf(y),
        "shares": lambda: stats.beta(*stats.beta.fit(y, floc=0, fscale=1)).logpdf(y),
        "ordinal": lambda: np.log(np.bincount(GRADES) / 60)[GRADES],
    }
    assert fitted(kind).predict(X).log_prob(y).mean() > alone[kind]().mean()


@pytest.mark.parametrize("kind", NUMBERS)
def test_intervals_stay_where_targets_are(kind):
    far = 3 * X
    lower, upper = fitted(kind).predict(far).interval(0.99)
    assert np.all(lower >= 0)
    assert np.all(upper >= lower)
    if kind == "counts":
        np.testing.assert_array_equal([lower, upper], np.round([lower, upper]))
    if kind == "shares":
        assert np.all(upper <= 1)


@pytest.mark.parametrize("kind", NUMBERS)
def test_the_distribution_function_is_the_integral_of_the_density(kind):
    row = fitted(kind).predict(X[:1])
    if kind == "counts":
        values = np.arange(8.0)
        total = np.sum([np.exp(row.log_prob([value])) for value in values])
        np.testing.assert_allclose(row.cdf([7.0]), total, rtol=2e-3)
        return
    ends = row.quantile([0.2, 0.7])[:, 0]
    grid = np.linspace(*ends, 21)
    density = [np.exp(row.log_prob([value])[0]) for value in grid]
    np.testing.assert_allclose(integrate.simpson(density, x=grid), 0.5, rtol=2e-3)


@pytest.mark.parametrize("kind", NUMBERS)
def test_targets_are_not_standardised(kind):
    scaling = fitted(kind).scaling
    unit = np.exp(np.mean(np.log(AMOUNTS))) if kind == "positive" else 1.0
    assert scaling.y_mean == 0
    np.testing.assert_allclose(scaling.y_scale, unit, rtol=1e-6)
    assert np.any(scaling.x_mean)


@pytest.mark.parametrize("kind", TARGETS)
def test_all_scores_suit_them(kind):
    scores = credo.evaluate(fitted(kind), (X, TARGETS[kind]), num_resamples=0)
    assert np.isfinite(scores["lpd"].value)
    assert scores.task == ("classification" if kind == "ordinal" else "regression")


@pytest.mark.parametrize("kind", ["counts", "positive", "ordinal"])
def test_integers_and_floats_are_the_same(kind):
    y = np.round(TARGETS[kind]).clip(1).astype(float)
    model = credo.models.table((X, y), "table:3", likelihood=kind)
    floats, integers = (model.suited(credo.Data(X, one, standardise=True)).batch().y for one in (y, y.astype(int)))
    np.testing.assert_array_equal(floats, integers)


@pytest.mark.parametrize("kind", TARGETS)
def test_rows_without_a_target_are_left_out(kind):
    y = TARGETS[kind].astype(float)
    y[:5] = np.nan
    model = credo.models.table((X, y), "table:3", likelihood=kind)
    data = model.suited(credo.Data(X, y, standardise=True))
    assert model.suited(data) is data
    assert model.bind(data).suited(data).num_labelled == 55


def test_splits_keep_the_unit():
    model = credo.models.positive(MLP([3], 1))
    data = model.suited(credo.Data(X, AMOUNTS, standardise=True))
    train, test = data.split(0.3)
    assert train.scaling.y_scale == test.scaling.y_scale == data.scaling.y_scale


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("counts", -1.0, "y holds -1 in row 7 .* whole numbers from 0"),
        ("counts", 2.5, "y holds 2.5 in row 7 .*positive is for amounts"),
        ("counts", 1e12, "y holds 1e\\+12 in row 7"),
        ("positive", 0.0, "y holds 0 in row 7 .* numbers above 0"),
        ("shares", 1.0, "y holds 1 in row 7 .* move exact zeros and ones inside"),
        ("shares", 55.0, "divide percentages by 100"),
        ("ordinal", -1, "y holds -1 in row 7 .* in their order"),
    ],
)
def test_values_that_do_not_fit_are_named(kind, value, words):
    y = TARGETS[kind].copy()
    y[7] = value
    with pytest.raises(ValueError, match=words):
        credo.models.table((X, y), "table:3", likelihood=kind).bind((X, y))


def test_a_class_beyond_the_last_one():
    with pytest.raises(ValueError, match="the numbers of 3 classes in their order, 0 to 2"):
        credo.models.ordinal(MLP([3], 1), 3).bind((X, GRADES))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: credo.models.counts(MLP([3], 3)).bind((X, COUNTS)),
            "3 outputs per row, and credo.models.counts needs 1",
        ),
        (lambda: credo.models.counts(MLP([3], 2), "poisson").bind((X, COUNTS)), "needs 1 \\(the log rate\\)$"),
        (lambda: credo.models.counts(MLP([3], 1)).bind((X, np.c_[COUNTS, COUNTS])), "is for one target"),
        (lambda: credo.models.counts(MLP([3], 1), "binomial"), "kind must be .negative_binomial. or"),
        (lambda: credo.models.counts(MLP([3], 1), base=0.0), "base"),
        (lambda: credo.models.positive(MLP([3], 1), spread=-1.0), "spread"),
        (
            lambda: credo.models.positive(MLP([3], 2), noise="heavy_tailed"),
            "'heavy_tailed' is not for positive numbers",
        ),
        (lambda: credo.models.ordinal(MLP([3], 1), 1), "num_classes"),
        (lambda: credo.models.table((X, COUNTS), likelihood="gamma"), "likelihood must be one of"),
        (lambda: credo.models.table((X, COUNTS), noise=0.1, likelihood="counts"), "pass one of the two"),
    ],
)
def test_models_that_cannot_be(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# -- simulations -------------------------------------------------------------------------------------------

DRAWN = {
    "counts": lambda rng, f: rng.poisson(3 * np.exp(f) * rng.gamma(1 / 0.5**2, 0.5**2, len(f))),
    "positive": lambda rng, f: np.exp(f + 0.4 * rng.normal(size=len(f))),
    "shares": lambda rng, f: rng.beta(*np.stack([1 / (1 + np.exp(-f)), 1 / (1 + np.exp(f))]) / 0.3**2),
    "ordinal": lambda rng, f: np.digitize(f + rng.logistic(size=len(f)), [-1.0, 0.0, 1.5]),
}
MODELS = {
    "counts": lambda net: credo.models.counts(net, base=3.0),
    "positive": credo.models.positive,
    "shares": credo.models.shares,
    "ordinal": lambda net: credo.models.ordinal(net, 4),
}
NUM_TRAIN, NUM_TEST, NUM_SIMULATIONS = 100, 300, 20


def levels_of_rows(prediction, y, rng):
    """How far up in its law each target lies; of ordered classes at random in their step."""
    if not isinstance(prediction, ClassPredictive):
        return levels_of(prediction, y)
    above, rows = np.cumsum(prediction.probs, axis=1), np.arange(len(y))
    return above[rows, y] - rng.random(len(y)) * prediction.probs[rows, y]


@pytest.mark.full
@pytest.mark.parametrize("kind", TARGETS)
def test_what_was_simulated_is_recovered(kind, seed):
    """90% intervals hold 85 to 95% of new targets. By chance alone it would be 90 ± 0.4% of 20 × 300 rows; that four
    numbers are learned from 100 rows adds less than a hundredth."""
    rng = np.random.default_rng(seed)
    model, levels = MODELS[kind](MLP([], 1)), []
    for number in range(NUM_SIMULATIONS):
        x = rng.normal(size=(NUM_TRAIN + NUM_TEST, 2))
        y = DRAWN[kind](rng, 0.3 + x @ [0.7, -0.4])
        method = credo.NUTS(num_samples=100, num_warmup=150, num_chains=1)
        posterior = credo.fit(model, (x[:NUM_TRAIN], y[:NUM_TRAIN]), method, seed=number)
        levels.append(levels_of_rows(posterior.predict(x[NUM_TRAIN:]), y[NUM_TRAIN:], rng))
    covered = np.mean(np.abs(2 * np.concatenate(levels) - 1) <= 0.9)
    assert 0.85 < covered < 0.95
