"""What conditions do, in numbers and words: figures of a posterior, compared with those of the plain network."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from credo.examples import page
from credo.examples.conditions_problems import Fits, Problem
from credo.models.conditions import Monotone

# A rise or fall is that of the function over a tenth of a column's standard deviation.
STEP = 0.1
LEVEL = 0.9
# "No loss" of log-likelihood: a mean that is off by a fifth of the noise costs 0.02 nats a row.
NO_LOSS = 0.02
# What is claimed: falls this much smaller, errors this much smaller, and most of the truth within the interval.
FALLS, EVEN_ERROR, FAR_ERROR, MOST = 10.0, 2.0, 3.0, 0.5

Figures = dict[str, float]


def of_rising(posterior: Any, problem: Problem) -> Figures:
    """Violations at the test rows, averaged over draws, rows and the columns in which the function should rise.

    fall = E relu(f(x) − f(x + h eⱼ))/h, in standard deviations of y per standard deviation of the column; share =
    P(f(x + h eⱼ) < f(x)).
    """
    x, y = problem.train.x, problem.train.y
    here = functions(posterior, problem.test.x)
    rises = []
    for column, sign in directions(problem):
        there = problem.test.x.astype(float)
        there[:, column] += STEP * x[:, column].std()
        rises.append(sign * (functions(posterior, there) - here) / (STEP * y.std()))
    return {
        "fall": float(np.mean(np.maximum(-np.array(rises), 0))),
        "share of falls": float(np.mean(np.array(rises) < 0)),
        "held-out log-likelihood": float(np.mean(posterior.predict(problem.test.x).log_prob(problem.test.y))),
    }


def of_even(posterior: Any, problem: Problem) -> Figures:
    """Error of the mean against the truth, and how far functions are from even ones, both as root mean squares."""
    here, mirrored = (functions(posterior, x) for x in (problem.test.x, -problem.test.x))
    return {
        "test error": rms(here.mean(axis=0) - known(problem)),
        "asymmetry": rms(here - mirrored),
        "held-out log-likelihood": float(np.mean(posterior.predict(problem.test.x).log_prob(problem.test.y))),
    }


def of_oscillator(posterior: Any, problem: Problem) -> Figures:
    """Beyond the data: error of the mean, coverage of the truth by the 90% interval of functions, and its width."""
    drawn = functions(posterior, problem.test.x)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    truth = known(problem)
    off = np.abs(drawn.mean(axis=0) - truth)
    return {
        "error beyond the data": rms(off),
        "coverage of 90% intervals": float(np.mean((low <= truth) & (truth <= high))),
        "width of 90% intervals": float(np.mean(high - low)),
        "largest error in sds": float(np.max(off / drawn.std(axis=0))),
    }


MEASURES = {"rising": of_rising, "diabetes": of_rising, "even": of_even, "oscillator": of_oscillator}


def measured(name: str, problem: Problem, found: Fits) -> tuple[Figures, Figures]:
    """Figures of the plain network, and of that with the condition."""
    measure = MEASURES[name]
    return measure(found.plain, problem), measure(found.conditioned, problem)


def judged(name: str, plain: Figures, conditioned: Figures) -> str:
    """Whether the condition does what is claimed, in words."""

    def smaller(figure: str) -> float:
        return plain[figure] / conditioned[figure]

    if name in ("rising", "diabetes"):
        gain = conditioned["held-out log-likelihood"] - plain["held-out log-likelihood"]
        holds = smaller("fall") >= FALLS and gain >= -NO_LOSS
        return _verdict(holds, f"falls are {smaller('fall'):.1f} × smaller, and log-likelihood changes by {gain:+.3f}")
    if name == "even":
        return _verdict(smaller("test error") >= EVEN_ERROR, f"the test error is {smaller('test error'):.1f} × smaller")
    ratio, covered = smaller("error beyond the data"), conditioned["coverage of 90% intervals"]
    width = smaller("width of 90% intervals")
    return _verdict(
        ratio >= FAR_ERROR and covered >= MOST and width >= FAR_ERROR,
        f"beyond the data the error is {ratio:.1f} × smaller, and intervals that are {width:.0f} × narrower hold "
        f"{covered:.0%} of the truth",
    )


def written(figures: Mapping[str, Sequence[tuple[Figures, Figures]]], *, quick: bool = False) -> str:
    """The page: means over the data sets of each problem, and a verdict on each."""
    rows, words = [], []
    for name, pairs in figures.items():
        plain, conditioned = (averaged([pair[side] for pair in pairs]) for side in (0, 1))
        rows += [[name, figure, f"{plain[figure]:.3g}", f"{conditioned[figure]:.3g}"] for figure in plain]
        words.append(f"- **{name}**: {judged(name, plain, conditioned)}.")
    num = len(next(iter(figures.values())))
    note = "\n\nFar too little was computed: the numbers mean nothing yet." if quick else ""
    title = f"# What conditions do\n\nMeans over {num} data set(s) of each problem.{note}"
    return "\n\n".join(
        [title, page.table(["problem", "figure", "plain", "with the condition"], rows), "\n".join(words)]
    )


def averaged(figures: Sequence[Figures]) -> Figures:
    """The mean of each figure over data sets.

    >>> averaged([{"fall": 1.0}, {"fall": 3.0}])
    {'fall': 2.0}
    """
    return {name: float(np.mean([one[name] for one in figures])) for name in figures[0]}


def functions(posterior: Any, x: np.ndarray) -> np.ndarray:
    """Draws of the function without noise, (draws, rows)."""
    return np.asarray(posterior.predict(x).functions, np.float64)


def directions(problem: Problem) -> tuple[tuple[int, int], ...]:
    """The columns in which the function should rise (1) or fall (−1), by number."""
    condition = problem.condition.resolved(problem.train.names or ())
    if not isinstance(condition, Monotone):
        raise ValueError(f"falls are of a monotone condition, and this one is {condition.name!r}")
    return tuple((int(column), sign) for column, sign in condition.directions)


def known(problem: Problem) -> np.ndarray:
    """The truth at the test rows."""
    if problem.truth is None:
        raise ValueError("nobody knows the truth of this problem; compare with its test rows")
    return problem.truth(problem.test.x)


def rms(values: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


def _verdict(holds: bool, words: str) -> str:
    return f"{'as claimed' if holds else 'NOT as claimed'}: {words}"
