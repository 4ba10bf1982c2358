"""Which kind of numbers, or of classes, a target holds: found from its values, and from rows that were held out.

Values say which laws there can be: whole numbers from 0 on may be counts, numbers above 0 may be skewed, those between
0 and 1 may be shares, classes that are numbers may be in an order. Whether such a law is the better one they do not
say: years and marks are whole numbers too. So lines take the place of networks, with the outputs that the laws of
`credo.models.table` have, and each fold of the rows is predicted from the others,

    W = argmax Σ log law(yₙ | outputs = W (1, xₙ)) − ½ |W|²    over the rows of the other folds

A law of numbers is taken if held-out rows are a tenth more probable under it than under the one for any numbers, and by
more than the standard error of that; an order, if they are more probable with it than without.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from credo.data import Data, as_numbers
from credo.models.counts import Counts
from credo.models.likelihoods import HeavyTailed, Heteroscedastic
from credo.models.ordinal import Ordinal, cut_points
from credo.models.positive import Positive
from credo.models.scales import in_logs, least_scales
from credo.models.shares import Shares
from credo.predictive.sharpened import sharpened
from credo.typing import Array

# What is asked is which of some laws, not how good it is: some rows are enough, and a climb that has nearly ended.
MAX_ROWS, NUM_FOLDS, MAX_CLIMB = 2_000, 4, 200
# Fewer rows tell nothing that way.
FEW_ROWS = 20
# Nats: one row must not decide for all of them, since lines go further there than networks.
MOST_OF_A_ROW = 3.0
# Nats: networks may turn a smaller gain of lines round. Of 22 tables of counts and positive numbers lines gained more
# than this in 11, where networks gained 0.28 on average and never lost; less in 5, where networks lost in 3.
LEAST_GAIN = 0.1
ANY = "any"
CALLED = {"counts": "counts", "positive": "skewed numbers", "shares": "shares", "ordinal": "classes in an order"}


class Found(NamedTuple):
    """The likelihood that suits a target, and why.

    Arguments:
        likelihood: as for `credo.models.table`.
        why: in words; "" where the values suggest no other.
    """

    likelihood: str
    why: str


class Lines(NamedTuple):
    """A law around lines.

    Arguments:
        num_outputs: of the lines.
        law: p(y | outputs, rest), for outputs of shape (rows, num_outputs).
        y: targets in the unit of the law.
        rest: where the numbers of the law that no line sets begin.
        unit: of y.
    """

    num_outputs: int
    law: Callable[[Array, Any], Any]
    y: np.ndarray
    rest: Any = ()
    unit: float = 1.0


def found(data: Data) -> Found:
    """The likelihood that suits the targets of a table, and why.

    Arguments:
        data: standardised; numbers as floats, classes as labels.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> found(Data(x, rng.poisson(np.exp(x[:, 0])).astype(float), standardise=True)).likelihood
    'counts'
    """
    seen = data.only_labelled()
    looks, others = _suggested(seen)
    if not others:
        return Found(ANY, "")
    if seen.censored is not None:
        return Found("positive", "numbers above 0, some of which are only lower bounds, as of durations")
    if seen.size < FEW_ROWS:
        return Found(ANY, f"{looks}, of which {seen.size} rows are too few to tell more")
    if seen.size > MAX_ROWS:
        seen = seen.select(np.sort(np.random.default_rng(0).choice(seen.size, MAX_ROWS, replace=False)))
    scores = {likelihood: held_out_scores(seen, likelihood) for likelihood in (ANY, *others)}
    gains = {name: np.clip(scores[name] - scores[ANY], -MOST_OF_A_ROW, MOST_OF_A_ROW) for name in others}
    best = max(others, key=lambda name: gains[name].mean())
    gain, error = gains[best].mean(), gains[best].std() / np.sqrt(seen.size)
    told = f"as {CALLED[best]}, rows held out from lines are {np.exp(gain):.2f} times as probable"
    if gain > (0.0 if best == "ordinal" else max(LEAST_GAIN, error)):
        return Found(best, f"{looks}, and {told}")
    return Found(ANY, f"{looks}, but {told}")


def _suggested(data: Data) -> tuple[str, tuple[str, ...]]:
    """What the values look like, and the laws that there are for such."""
    if data.y.ndim > 1:
        return "", ()
    y = as_numbers(data.y)
    if data.y.dtype.kind == "i":
        return (f"grades {y.min():g} to {y.max():g}", ("ordinal",)) if y.max() > 1 else ("", ())
    if data.precisions is not None or data.censored is not None:
        return ("numbers above 0", ("positive",)) if y.min() > 0 else ("", ())
    if y.min() >= 0 and np.all(y == np.round(y)):
        return "whole numbers from 0 on", ("counts", *(["positive"] if y.min() > 0 else []))
    if y.min() > 0 and y.max() < 1:
        return "numbers between 0 and 1", ("shares", "positive")
    return ("numbers above 0", ("positive",)) if y.min() > 0 else ("", ())


def held_out_scores(data: Data, likelihood: str) -> np.ndarray:
    """log p(y | x) of each row in the units of y, from lines through the rows of the other folds."""
    lines = LINES[likelihood](data)
    y = jnp.asarray(lines.y)
    x = jnp.asarray(np.column_stack([np.ones(data.size), data.scaling.inputs(data.x).reshape(data.size, -1)]))
    start, unravel = ravel_pytree({"lines": jnp.zeros((x.shape[1], lines.num_outputs)), "rest": lines.rest})

    @jax.jit
    def climb(flat: Array, counted: Array) -> tuple[tuple[Array, Array], Array]:
        def lost(flat: Array) -> tuple[Array, Array]:
            own = unravel(flat)
            law = lines.law(x @ own["lines"], own["rest"])
            terms = (law if data.precisions is None else sharpened(law, jnp.asarray(data.precisions))).log_prob(y)
            return 0.5 * jnp.sum(own["lines"][1:] ** 2) - jnp.sum(jnp.where(counted, terms, 0.0)), terms

        return jax.value_and_grad(lost, has_aux=True)(flat)

    def objective(flat: np.ndarray, counted: np.ndarray) -> tuple[float, np.ndarray]:
        (value, _), slope = climb(jnp.asarray(flat, start.dtype), counted)
        # Where the law is none, a wall turns the search back.
        return float(np.nan_to_num(value, nan=np.inf)), np.nan_to_num(np.asarray(slope, np.float64))

    fold, scores = np.random.default_rng(0).permutation(data.size) % NUM_FOLDS, np.empty(data.size)
    for number in range(NUM_FOLDS):
        there = fold == number
        end = minimize(objective, start, (~there,), "L-BFGS-B", jac=True, options={"maxiter": MAX_CLIMB}).x
        scores[there] = np.asarray(climb(jnp.asarray(end, start.dtype), ~there)[0][1])[there]
    return scores - np.log(lines.unit)


def _any(data: Data) -> Lines:
    if data.y.dtype.kind == "i":
        return Lines(int(data.y.max()) + 1, lambda outputs, _: dist.Categorical(logits=outputs), data.y)
    law = HeavyTailed(least_scales(data))
    y = data.scaling.targets(data.y)
    unit = float(data.scaling.y_scale)
    return Lines(2, lambda outputs, rest: law.around(outputs, jnp.exp(rest)), y, jnp.log(20.0), unit)


def _counts(data: Data) -> Lines:
    law = Counts(base=float(np.mean(data.y)) or 1.0)
    return Lines(2, lambda outputs, _: law.around(outputs, None), data.y)


def _positive(data: Data) -> Lines:
    unit, spread, least = in_logs(data)
    law = Positive(Heteroscedastic(least), spread)
    return Lines(2, lambda outputs, _: law.around(outputs, None), data.y / unit, unit=unit)


def _ordinal(data: Data) -> Lines:
    law = Ordinal(int(data.y.max()) + 1)
    cuts = jnp.zeros(law.num_classes)
    return Lines(1, lambda outputs, rest: law.around(outputs, cut_points(jax.nn.softmax(rest))), data.y, cuts)


LINES: dict[str, Callable[[Data], Lines]] = {
    ANY: _any,
    "counts": _counts,
    "positive": _positive,
    "shares": lambda data: Lines(2, lambda outputs, _: Shares().around(outputs, None), data.y),
    "ordinal": _ordinal,
}
