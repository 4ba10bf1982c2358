"""What a cheaper posterior costs in quality: size, time, log score, epistemic part, foreign inputs, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from credo import _html
from credo._text import nearest, size_in_words
from credo.posterior import Posterior

FULL = "full"
# Nobody notices a log score that is worse by this: one in a hundred of a factor e of probability.
NEGLIGIBLE_NATS = 0.01
# Error bars that are off by a quarter still tell what is known from what is not.
MAX_EPISTEMIC_ERROR = 0.25


@dataclass(frozen=True)
class Option:
    """One way to keep and to use a posterior, measured on rows that were not used to make it.

    Arguments:
        num_bytes: in memory, with layers that are points.
        microseconds_per_row: to predict.
        lpd: mean log predictive density of the test targets.
        lost: how much less that is than the full posterior's, in nats per row; negative where it is more.
        lost_error: standard error of this difference over the rows, which both have answered.
        epistemic_error: root-mean-square error of the epistemic sd, as a share of its root-mean-square.
        auroc: by the epistemic uncertainty, the probability that a foreign input has more of it than a test input.
    """

    num_bytes: int
    microseconds_per_row: float
    lpd: float
    lost: float
    lost_error: float
    epistemic_error: float
    auroc: float

    @property
    def keeps(self) -> bool:
        """Whether it is as good as the full posterior, for all that the test rows can tell."""
        return self.lost <= max(NEGLIGIBLE_NATS, self.lost_error) and self.epistemic_error <= MAX_EPISTEMIC_ERROR


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Ways to simplify a posterior, side by side. Print it for a table; `result["student"]` is one of the posteriors.

    Arguments:
        options: what was measured, by name; "full" is the posterior itself.
        posteriors: the simplified posteriors, by the same names.
        left_out: why others are missing, by name.
        budget: the most bytes that the user can afford, if there is a limit.
        num_rows: test rows.
    """

    options: dict[str, Option]
    posteriors: Mapping[str, Posterior] = field(repr=False)
    left_out: dict[str, str] = field(default_factory=dict)
    budget: int | None = None
    num_rows: int = 0

    def __getitem__(self, name: str) -> Posterior:
        if name not in self.posteriors:
            hint = nearest(name, self.posteriors)
            raise KeyError(f"no option {name!r}{hint}; there are {', '.join(self.posteriors)}")
        return self.posteriors[name]

    @property
    def affordable(self) -> list[str]:
        """The options within the budget; all of them without one."""
        return [name for name, one in self.options.items() if self.budget is None or one.num_bytes <= self.budget]

    @property
    def recommended(self) -> str:
        """Of those within the budget that keep what the posterior knows, the fastest; if none does, the best."""
        candidates = self.affordable or list(self.options)
        good = [name for name in candidates if self.options[name].keeps]
        if good:
            return min(good, key=lambda name: self.options[name].microseconds_per_row)
        return min(candidates, key=lambda name: self.options[name].lost)

    @property
    def recommendation(self) -> str:
        """The recommendation in words, with what it saves and what it costs."""
        name = self.recommended
        one = self.options[name]
        if self.budget is not None and not self.affordable:
            return f"Nothing fits into {size_in_words(self.budget)}; the best that was tried is {name}: {_loses(one)}."
        limit = "" if self.budget is None else f" within {size_in_words(self.budget)}"
        if name == FULL:
            return f"Recommended: the full posterior. Nothing simpler{limit} keeps what it knows."
        if one.keeps:
            return f"Recommended: {name}. It is {self._saves(one)}; {_loses(one)}."
        return f"Nothing{limit} keeps all that is known. The best is {name}, {self._saves(one)}, but {_loses(one)}."

    def _saves(self, one: Option) -> str:
        full = self.options[FULL]
        smaller, faster = full.num_bytes / one.num_bytes, full.microseconds_per_row / one.microseconds_per_row
        return f"{smaller:,.3g} times smaller and {faster:,.3g} times as fast"

    def to_frame(self) -> pandas.DataFrame:
        """One row for each option."""
        rows = [{"option": name} | vars(one) for name, one in self.options.items()]
        return pandas.DataFrame(rows).set_index("option")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "options": {name: vars(one) for name, one in self.options.items()},
            "left_out": self.left_out,
            "budget": self.budget,
            "recommended": self.recommended,
            "recommendation": self.recommendation,
        }

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings, and the text of the cells of each option."""
        headings = ["option", "size", "per row", "log score", "lost (nats per row)", "epistemic error", "OOD AUROC"]
        rows = [
            [
                name,
                size_in_words(one.num_bytes),
                f"{one.microseconds_per_row:,.3g} µs",
                f"{one.lpd:.4g}",
                "–" if name == FULL else f"{one.lost:+.4f} ± {one.lost_error:.4f}",
                "–" if name == FULL else f"{one.epistemic_error:.0%}",
                f"{one.auroc:.3f}",
            ]
            for name, one in self.options.items()
        ]
        return headings, rows

    @property
    def _without(self) -> list[str]:
        return [f"Without {name}: {why}." for name, why in self.left_out.items()]

    def _repr_html_(self) -> str:
        headings, rows = self.cells()
        chosen = list(self.options).index(self.recommended)
        best = [(chosen, place) for place in range(len(headings))]
        shown = _html.table(headings, rows, range(1, len(headings)), best=best)
        title, without = _html.paragraph(f"{self.num_rows:,} test rows"), map(_html.paragraph, self._without)
        return _html.notebook(title, shown, *without, _html.verdict(self.recommendation))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(title=f"{self.num_rows:,} test rows", title_justify="left")
        headings, rows = self.cells()
        for position, heading in enumerate(headings):
            table.add_column(heading, justify="left" if position == 0 else "right")
        for row in rows:
            best = row[0] == self.recommended
            table.add_row(*(f"[bold]{text}[/]" if best else text for text in row))
        yield table
        yield from self._without
        yield self.recommendation

    def __str__(self) -> str:
        """The table as Markdown, and the recommendation."""
        headings, rows = self.cells()
        lines = [headings, ["---"] * len(headings), *rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([table, *self._without, self.recommendation])


def _loses(one: Option) -> str:
    lost = f"it loses {one.lost:.2g} nats per row" if one.lost > 0 else "it loses nothing of the log score"
    return f"{lost}, and its epistemic sd is off by {one.epistemic_error:.0%}"


def epistemic_error(found: np.ndarray, full: np.ndarray) -> float:
    """√ mean (s − s_full)² / mean s_full² of epistemic sds, over rows and outputs."""
    scale = float(np.mean(full**2))
    return float(np.sqrt(np.mean((found - full) ** 2) / scale)) if scale > 0 else 0.0
