"""The tables of `python -m benchmarks tables`, and what they say about credo's default."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks import printing
from benchmarks.figures import Figure, cell, mean_of
from benchmarks.printing import console, new_table
from benchmarks.resumable import Fit

Found = Mapping[Fit, dict[str, Any]]
CREDO, PROCESS = "credo", "gaussian_process"
SIMPLE = ("linear", "constant")
UNITS = "in the target's own units"
# What is asked of the default: nats beside simple models, a share inside 90% intervals, nats where nobody has been.
MOST_BELOW = 0.1
HONEST = (0.80, 0.97)
WORST_GAP = -10.0

TIMES = (
    ("seconds", "Seconds of a fit and its predictions, on the clock"),
    ("processor", "Seconds of a fit and its predictions, of the processors"),
)
NUMBERS = (
    ("log_likelihood", f"Tables: log-likelihood, nats per row {UNITS} (higher is better)"),
    ("crps", f"Tables: CRPS {UNITS} (lower is better)"),
    ("rmse", f"Tables: RMSE {UNITS} (lower is better)"),
    ("coverage", "Tables: share of test targets in their 90% intervals"),
    *TIMES,
)
CLASSES = (
    ("log_likelihood", "Classes: log-likelihood (−NLL), nats per row (higher is better)"),
    ("ece", "Classes: expected calibration error (lower is better)"),
    ("accuracy", "Classes: accuracy"),
    *TIMES,
)
# What is averaged over the sets.
AVERAGES = {"coverage": "share in 90% intervals (asked 0.85–0.95)", "ece": "expected calibration error"}


def show_scores(
    found: Found, sets: Sequence[str], markdown: bool, *, titles: Sequence[tuple[str, str]] = NUMBERS
) -> None:
    """A table of each score, and the rules by which the default is judged."""
    for score, title in titles:
        _print_scores(found, sets, score, title, markdown)
    _print_given_up(found, markdown)
    if CREDO in _methods(found) and len(_methods(found)) > 1:
        rules = (ranking(found, sets), *(beside(found, sets, simple) for simple in SIMPLE), longest(found, sets))
        for words in (fitted(found, sets), *rules):
            _say(words, markdown)
    for score, words in AVERAGES.items():
        averages = {method: mean_of(_means(found, sets, method, score)) for method in _methods(found)}
        cells = [f"{method} {cell(figure)}" for method, figure in averages.items() if figure is not None]
        if cells:
            _say(f"{words}, mean over the sets: {', '.join(cells)}", markdown)


def show_gaps(found: Found, sets: Sequence[str], markdown: bool) -> None:
    """Log-likelihoods where nobody has been: the mean over inputs left out in the middle, and the worst of them."""
    title = f"Gaps: log-likelihood, nats per row {UNITS}: mean over inputs, worst of them (its number)"
    table = new_table(title, "problem", "inputs", *_methods(found))
    for name in sets:
        common = set.intersection(*(set(_values(found, name, method)) for method in _methods(found)))
        table.add_row(name, str(len(common)), *(_gap_cell(found, name, method) for method in _methods(found)))
    printing.show(table, markdown=markdown)
    for score, words in TIMES:
        _print_scores(found, sets, score, words, markdown)
    _print_given_up(found, markdown)
    paired = {name: difference(found, name, CREDO, PROCESS) for name in sets}
    level = [name for name, figure in paired.items() if figure is not None and figure.mean >= 0]
    num_sets = sum(figure is not None for figure in paired.values())
    _say(f"{CREDO}: at least level with {PROCESS} on {len(level)} of {num_sets} sets (asked 8 of 10)", markdown)
    worst = [value for name in sets for value in _values(found, name, CREDO).values()]
    if worst:
        _say(f"{CREDO}: worst input of all {min(worst):.2f} nats (asked above {WORST_GAP:.0f})", markdown)


def show_verdicts(found: Found, markdown: bool = False) -> None:
    """How often each status is given, and how often 90% intervals then hold a share of test targets that is honest."""
    lowest, highest = HONEST
    kept = [scores for scores in found.values() if "status" in scores and "coverage" in scores]
    title = (
        f"Verdicts of {len(kept)} fits, and whether 90% intervals hold {lowest:.0%} to {highest:.0%} of test targets"
    )
    table = new_table(title, "what", "fits", "share", "honest intervals", "others")
    for status in sorted({scores["status"] for scores in kept}):
        shares = [scores["coverage"] for scores in kept if scores["status"] == status]
        honest = sum(lowest <= share <= highest for share in shares)
        share = f"{len(shares) / len(kept):.0%}"
        table.add_row(status, str(len(shares)), share, str(honest), str(len(shares) - honest))
    printing.show(table, markdown=markdown)
    if len(kept) < len(found):
        _say(f"{len(found) - len(kept)} fits have no status.", markdown)


SHOW: dict[str, Callable[[Found, Sequence[str], bool], None]] = {
    "splits": show_scores,
    "gaps": show_gaps,
    "large": show_scores,
    "classes": partial(show_scores, titles=CLASSES),
}


# -- rules ---------------------------------------------------------------------------------------------------------


def fitted(found: Found, sets: Sequence[str]) -> str:
    """On how many parts of each set the default stands."""
    return f"{CREDO}: parts of each set: {', '.join(f'{name} {len(_values(found, name, CREDO))}' for name in sets)}"


def ranking(found: Found, sets: Sequence[str]) -> str:
    """On how many sets the default is best, or within one standard error of the best, differences being paired."""
    behind, num_sets = [], 0
    for name in sets:
        rivals = {other: difference(found, name, CREDO, other) for other in _methods(found) if other != CREDO}
        known = {other: figure for other, figure in rivals.items() if figure is not None}
        if not known:
            continue
        num_sets += 1
        best = min(known, key=lambda other: known[other].mean)
        if known[best].mean + (known[best].error or 0) < 0:
            behind.append(f"{name} ({cell(known[best])} beside {best})")
    words = f"{CREDO}: best in log-likelihood or within one standard error of the best on {num_sets - len(behind)}"
    return f"{words} of {num_sets} sets (asked of numbers: 8 of 10)" + (
        f"; behind on {', '.join(behind)}" if behind else ""
    )


def beside(found: Found, sets: Sequence[str], simple: str) -> str:
    """Whether the default is ever clearly worse than a simple model."""
    figures = {name: difference(found, name, CREDO, simple) for name in sets}
    known = {name: figure for name, figure in figures.items() if figure is not None}
    if not known:
        return f"{CREDO} beside {simple}: nothing to compare"
    worst = min(known, key=lambda name: known[name].mean)
    below = sum(figure.mean < -MOST_BELOW for figure in known.values())
    return (
        f"{CREDO}: more than {MOST_BELOW} nats below {simple} on {below} of {len(known)} sets (asked 0); "
        f"the least above it on {worst}: {cell(known[worst])}"
    )


def longest(found: Found, sets: Sequence[str]) -> str:
    """How long the default has taken at most on each set: of the processors, since the clock counts what else runs."""
    times = {name: _values(found, name, CREDO, "processor").values() for name in sets}
    words = (f"{name} {max(seconds):.0f}" for name, seconds in times.items() if seconds)
    asked = "asked 60 on two, elevators 180"
    return f"{CREDO}: longest fits in seconds of the processors ({asked}): {', '.join(words) or 'none'}"


def difference(found: Found, name: str, method: str, other: str) -> Figure | None:
    """By how much a method's log-likelihood is above another's, over the parts of a set that both were fitted to."""
    first, second = (_values(found, name, which) for which in (method, other))
    return mean_of(first[part] - second[part] for part in first.keys() & second.keys())


# -- pieces --------------------------------------------------------------------------------------------------------


def _methods(found: Found) -> list[str]:
    return list(dict.fromkeys(fit.method for fit in found))


def _values(found: Found, name: str, method: str, score: str = "log_likelihood") -> dict[int, float]:
    """A score by the part of the set."""
    return {
        fit.split: scores[score]
        for fit, scores in found.items()
        if (fit.name, fit.method) == (name, method) and score in scores
    }


def _means(found: Found, sets: Sequence[str], method: str, score: str) -> list[float]:
    """A score of each set, averaged over its parts."""
    figures = [mean_of(_values(found, name, method, score).values()) for name in sets]
    return [figure.mean for figure in figures if figure is not None]


def _print_scores(found: Found, sets: Sequence[str], score: str, title: str, markdown: bool) -> None:
    table: Table = new_table(title, "problem", *_methods(found))
    plain = score in dict(TIMES)
    for name in sets:
        figures = [mean_of(_values(found, name, method, score).values()) for method in _methods(found)]
        table.add_row(name, *(cell(figure, plain=plain) for figure in figures))
    printing.show(table, markdown=markdown)


def _gap_cell(found: Found, name: str, method: str) -> str:
    values = _values(found, name, method)
    if not values:
        return "–"
    worst = min(values, key=values.__getitem__)
    return f"{np.mean(list(values.values())):.2f}, {values[worst]:.2f} ({worst})"


def _print_given_up(found: Found, markdown: bool) -> None:
    """Fits that took too long have no scores."""
    counts: dict[tuple[str, str], list[float]] = {}
    for fit, scores in found.items():
        if "given_up_after" in scores:
            counts.setdefault((fit.name, fit.method), []).append(scores["given_up_after"])
    for (name, method), limits in counts.items():
        _say(f"{name}, {method}: {len(limits)} fits given up after {max(limits):.0f} s of the processors", markdown)


def _say(words: str, markdown: bool) -> None:
    """A sentence below a table; in a document, of a list."""
    console.print(f"- {words}" if markdown else words)
