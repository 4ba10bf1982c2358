"""`credo.compare`: methods side by side on one test set: scores, training time, prediction time, memory."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from credo import _html
from credo._text import nearest, size_in_words
from credo.data import Data, as_data
from credo.evaluation.evaluate import NUM_RESAMPLES, Scores, evaluate
from credo.evaluation.recalibration import Recalibrated
from credo.posterior import Posterior
from credo.predictive import ClassPredictive

NUM_TIMINGS = 3
# The columns of the table; `Comparison.scores` has the rest.
REGRESSION_COLUMNS = ("lpd", "rmse", "crps", "coverage_95", "calibration_distance")
CLASSIFICATION_COLUMNS = ("lpd", "accuracy", "brier", "ece", "risk_coverage_area")


@dataclass(frozen=True)
class Cost:
    """What a posterior costs: seconds to train, microseconds to predict one row, bytes of memory."""

    training_seconds: float
    microseconds_per_row: float
    num_bytes: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side, best first. Print it for a table with the best of each column in bold.

    `evidences` holds log p(D) of the training data for methods that know it (`credo.Laplace`): it compares
    architectures that were fitted to the same data.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> train, test = credo.datasets.gap(40).split(0.5)
    >>> compared = credo.compare({"exact": credo.fit(model, train, credo.ClosedForm())}, test)
    >>> compared.winner("rmse"), round(compared.evidences["exact"], 1)
    ('exact', -4.0)
    """

    scores: dict[str, Scores]
    costs: dict[str, Cost]
    by: str
    columns: tuple[str, ...] = field(repr=False)
    evidences: dict[str, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The methods, best first."""
        return tuple(self.scores)

    def winner(self, column: str) -> str:
        """The method with the best score, or the lowest cost."""
        return min(self.scores, key=lambda name: self._badness(name, column))

    def to_frame(self) -> pandas.DataFrame:
        """One row per method: every score, its standard error, and the costs."""
        rows = [
            {"method": name}
            | {column: scores[column].value for column in scores}
            | {f"{column}_error": scores[column].standard_error for column in scores}
            | self._costs(name)
            for name, scores in self.scores.items()
        ]
        return pandas.DataFrame(rows).set_index("method")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: scores.to_dict() | self._costs(name) for name, scores in self.scores.items()}

    def cells(self) -> tuple[list[str], list[list[tuple[str, bool]]]]:
        """Headings, and for each method the text of its cells and whether it is the best of its column."""
        first = next(iter(self.scores.values()))
        costs = {
            "training_seconds": ("training", _seconds),
            "microseconds_per_row": ("per row", lambda value: f"{value:,.3g} µs"),
            "num_bytes": ("memory", size_in_words),
        }
        evidence = ["log evidence"] if self.evidences else []
        labels = [first.label(name) for name in self.columns]
        headings = ["method", *labels, *evidence, *(label for label, _ in costs.values())]
        winners = {column: self.winner(column) for column in (*self.columns, *costs)}
        if self.evidences:
            winners["log_evidence"] = max(self.evidences, key=lambda name: self.evidences[name])
        rows = []
        for name, scores in self.scores.items():
            texts = [(column, str(scores[column])) for column in self.columns]
            if self.evidences:
                known = self.evidences.get(name)
                texts.append(("log_evidence", "–" if known is None else f"{known:,.1f}"))
            texts += [(column, text(getattr(self.costs[name], column))) for column, (_, text) in costs.items()]
            rows.append([(name, False), *((text, winners[column] == name) for column, text in texts)])
        return headings, rows

    @property
    def _title(self) -> str:
        return f"{next(iter(self.scores.values())).rows_judged}, sorted by {self.by}{self._sites}"

    def _repr_html_(self) -> str:
        headings, rows = self.cells()
        best = [(i, j) for i, row in enumerate(rows) for j, (_, is_best) in enumerate(row) if is_best]
        shown = _html.table(headings, [[text for text, _ in row] for row in rows], range(1, len(headings)), best=best)
        return _html.notebook(_html.paragraph(self._title), shown)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(title=self._title, title_justify="left")
        headings, rows = self.cells()
        for position, heading in enumerate(headings):
            table.add_column(heading, justify="left" if position == 0 else "right")
        for row in rows:
            table.add_row(*(f"[bold]{text}[/]" if best else text for text, best in row))
        yield table

    def __str__(self) -> str:
        """The table as Markdown, the best of each column in bold."""
        headings, rows = self.cells()
        lines = [headings, ["---"] * len(headings)]
        lines += [[f"**{text}**" if best else text for text, best in row] for row in rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    @property
    def _sites(self) -> str:
        """What was judged, where that is not what all methods observe."""
        of = {name: scores.of for name, scores in self.scores.items()}
        if set(of.values()) == {"y"}:
            return ""
        each = ", ".join(f"{site} of {name}" for name, site in of.items())
        return f"; judged: {each if len(set(of.values())) > 1 else next(iter(of.values()))}"

    def _costs(self, name: str) -> dict[str, Any]:
        evidence = {"log_evidence": self.evidences[name]} if name in self.evidences else {}
        return vars(self.costs[name]) | evidence

    def _badness(self, name: str, column: str) -> float:
        if column in self.scores[name].values:
            scores = self.scores[name]
            return scores.metrics[column].badness(scores[column].value)
        return float(getattr(self.costs[name], column))


def compare(
    posteriors: Mapping[str, Posterior | Recalibrated],
    data: Data | tuple[Any, Any],
    *,
    by: str = "lpd",
    num_draws: int | None = None,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
    of: str | None = None,
) -> Comparison:
    """Compare methods on one test set: scores, training time, time per predicted row, size in memory.

    Arguments:
        posteriors: name → posterior.
        data: the test set, credo.Data or (x, y).
        by: the score to sort by, best first.
        num_draws: draws to average per prediction; all by default.
        num_resamples: as in `evaluate`; all methods see the same resamples.
        of: the site to judge, as in `evaluate`.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> train, test = credo.datasets.gap(40).split(0.5)
    >>> exact, map = credo.fit(model, train, credo.ClosedForm()), credo.fit(model, train, credo.MAP(num_steps=50))
    >>> [*credo.compare({"exact": exact, "map": map}, test).scores]
    ['map', 'exact']
    """
    if not isinstance(posteriors, Mapping) or not posteriors:
        raise ValueError("pass the posteriors as a dictionary with at least one {name: posterior}")
    test = as_data(data)
    scores = {
        name: evaluate(posterior, test, num_draws=num_draws, num_resamples=num_resamples, seed=seed, of=of)
        for name, posterior in posteriors.items()
    }
    if len({one.task for one in scores.values()}) > 1:
        raise ValueError("regressions and classifiers cannot be compared on one test set")
    first = next(iter(scores.values()))
    if by not in first.values:
        raise ValueError(f"by must be one of {', '.join(first)}, got {by!r}{nearest(by, first.values)}")
    ordered = sorted(scores, key=lambda name: first.metrics[by].badness(scores[name][by].value))
    columns = REGRESSION_COLUMNS if first.task == "regression" else CLASSIFICATION_COLUMNS
    return Comparison(
        scores={name: scores[name] for name in ordered},
        costs={name: cost_of(posteriors[name], test.x, num_draws) for name in ordered},
        by=by,
        columns=tuple(dict.fromkeys([by, *columns])),
        evidences={name: found for name in ordered if (found := _log_evidence(posteriors[name])) is not None},
    )


def _log_evidence(posterior: Any) -> float | None:
    """log p(D) of a Laplace approximation: it compares models by their training data, given the same data."""
    return getattr(getattr(posterior, "evidence", None), "log_evidence", None)


def cost_of(posterior: Posterior | Recalibrated, x: np.ndarray, num_draws: int | None = None) -> Cost:
    """What a posterior costs: training, predicting these rows, keeping it."""
    _seconds_to_predict(posterior, x, num_draws)  # compiles
    seconds = min(_seconds_to_predict(posterior, x, num_draws) for _ in range(NUM_TIMINGS))
    return Cost(posterior.provenance.seconds, 1e6 * seconds / len(x), posterior.num_bytes)


def _seconds_to_predict(posterior: Posterior | Recalibrated, x: np.ndarray, num_draws: int | None) -> float:
    """Time the main answer: probabilities, or the mean. Some posteriors run their network when they are asked."""
    began = time.perf_counter()
    prediction = posterior.predict(x, num_draws=num_draws)
    _ = prediction.probs if isinstance(prediction, ClassPredictive) else prediction.mean
    return time.perf_counter() - began


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 100 else f"{value / 60:.1f} min"
