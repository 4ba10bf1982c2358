"""Rows that belong together, that came first, and that were seen several times."""

import jax
import numpy as np
import pytest

import credo
from credo import models, networks
from credo.data import Data

X = np.random.default_rng(0).normal(size=(60, 2))
Y = X @ [1.0, -1.0] + 0.2 * np.sin(np.arange(60))
GROUPS = [f"p{n % 12}" for n in range(60)]


@pytest.mark.parametrize("seed", range(5))
def test_no_split_cuts_a_group(seed):
    train, test = Data(X, Y, groups=GROUPS).split(0.25, seed=seed)
    assert not set(train.groups) & set(test.groups)
    assert (train.size, test.size) == (45, 15)
    again, _ = train.split(0.2, seed=seed)
    assert len(set(again.groups)) == 7


def test_what_is_held_out_is_the_latest():
    order = np.random.default_rng(1).permutation(60)
    days = np.datetime64("2020-01-01") + order
    train, test = Data(X, Y, times=days).split(0.2)
    assert (test.size, train.times.max() < test.times.min()) == (12, True)
    whole = Data(X, Y, times=order // 20).split(0.1)[1]
    assert whole.size == 20  # rows of one time stay together
    late = Data(X, Y, groups=GROUPS, times=order).split(0.2)[1]
    assert set(late.groups) <= set(GROUPS)
    assert late.times.max() == 59


def test_rows_without_a_target_are_not_what_is_held_out():
    y = np.where(np.arange(60) < 10, Y, np.nan)
    train, test = Data(X, y, groups=GROUPS).split(0.5)
    assert train.num_labelled > 0
    assert test.num_labelled > 0


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"groups": ["a", None] * 30}, "groups is missing in row 1"),
        ({"groups": ["a"] * 3}, r"groups has shape \(3,\), and there are 60 rows"),
        ({"times": [1.0, np.nan] * 30}, "times is missing in row 1"),
        ({"times": ["late", "early"] * 30}, "times holds text, such as 'late'"),
        ({"counts": [1.0] * 59 + [-2.0]}, "counts is -2 in row 59"),
        ({"counts": [1.0] * 59 + [np.nan]}, "counts is nan in row 59"),
        ({"counts": np.zeros(60)}, "counts is zero in every row"),
        ({"counts": [1.0]}, r"counts has shape \(1,\)"),
    ],
)
def test_what_rows_cannot_be_is_refused(what, words):
    with pytest.raises(ValueError, match=words):
        Data(X, Y, **what)


def test_one_group_cannot_be_split():
    with pytest.raises(ValueError, match="groups holds one group with a target, and a split needs two"):
        Data(X, Y, groups=["a"] * 60).split(0.1)


# -- how often rows were seen -------------------------------------------------------------------------------------

COUNTS = np.random.default_rng(2).integers(0, 4, 60)
TWICE = np.repeat(np.arange(60), COUNTS)
COUNTED = Data(X, Y, counts=COUNTS, standardise=True)
WRITTEN_OUT = Data(X[TWICE], Y[TWICE], standardise=True)
LINE = models.regression(networks.from_text("linear", 1))


def test_a_row_seen_twice_scales_columns_as_two_rows():
    for name in ("x_mean", "x_scale", "y_mean", "y_scale"):
        np.testing.assert_allclose(
            getattr(COUNTED.scaling, name), getattr(WRITTEN_OUT.scaling, name), rtol=1e-12, atol=1e-14
        )
    image = Data(X.reshape(60, 2, 1), Y, counts=COUNTS, standardise=True).scaling.x_scale
    np.testing.assert_allclose(image, X.reshape(60, 2)[TWICE].std(), rtol=1e-12)


def test_a_row_seen_twice_is_that_row_twice():
    model = models.regression(networks.MLP([4], out=1))
    one, other = model.bind(COUNTED), model.bind(WRITTEN_OUT)
    theta = {name: leaf[0] for name, leaf in one.sample_prior(jax.random.key(0), 1).items()}
    # The rounding of sums of 90 terms in single precision.
    np.testing.assert_allclose(
        one.log_joint(theta, COUNTED.batch()), other.log_joint(theta, WRITTEN_OUT.batch()), rtol=1e-5
    )
    blocks = replaced_blocks(one, theta, COUNTED.batch())
    np.testing.assert_allclose(blocks, one.log_likelihood(theta, COUNTED.batch()), rtol=1e-5)


def replaced_blocks(model, theta, batch):
    from credo.models.row_blocks import sum_by_block

    return sum_by_block(lambda theta, rows, _: model.log_likelihood(theta, rows), theta, batch, 4)


def test_minibatches_of_counted_rows_are_unbiased():
    """All batches of an epoch together are the data: no row comes twice."""
    from credo.inference.engine.minibatch import minibatch

    data = COUNTED.batch()
    size = data.num_rows // 3
    bound = LINE.bind(COUNTED)
    theta = {name: leaf[0] for name, leaf in bound.sample_prior(jax.random.key(0), 1).items()}
    short = data._replace(x=data.x[: 3 * size], y=data.y[: 3 * size], counts=data.counts[: 3 * size])
    often = float(short.counts.sum())
    short = short._replace(total=often, mean_count=often / (3 * size))
    parts = [bound.log_parts(theta, minibatch(jax.random.key(1), step, short, size))[1] for step in range(3)]
    np.testing.assert_allclose(np.mean(parts), bound.log_likelihood(theta, short), rtol=1e-5)


@pytest.mark.parametrize("method", [credo.ClosedForm(), credo.Laplace(structure="full"), credo.Laplace()])
def test_posteriors_of_counted_rows_are_those_of_rows_written_out(method):
    one, other = (credo.fit(LINE, data, method).predict(X) for data in (COUNTED, WRITTEN_OUT))
    # Of a training in single precision, whose sums are in another order.
    np.testing.assert_allclose(one.mean, other.mean, atol=2e-3)
    np.testing.assert_allclose(one.std, other.std, rtol=2e-3)


def test_rows_are_judged_as_often_as_they_were_seen():
    posterior = credo.fit(LINE, WRITTEN_OUT, credo.ClosedForm())
    for name in ("rmse", "crps", "coverage_95"):
        one, other = (credo.evaluate(posterior, data, num_resamples=0)[name].value for data in (COUNTED, WRITTEN_OUT))
        np.testing.assert_allclose(one, other, rtol=1e-6)
    with pytest.raises(ValueError, match="counts are not whole numbers"):
        credo.evaluate(posterior, Data(X, Y, counts=COUNTS + 0.5))
