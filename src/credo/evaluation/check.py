"""`credo.check`: may the uncertainties be trusted? Three questions, answered apart, and one status.

1. mixing: do the chains agree about the functions?
2. precision: how far would the predictions of another run be, beside their own sd?
3. calibration: do the intervals hold what they say, on rows that were not seen?

The laws behind the borders are in docs/verdict.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from credo import _html
from credo._schema import checked
from credo.data import as_data
from credo.diagnostics import Diagnostics
from credo.diagnostics.status import Answer, Status, remedies, worst
from credo.evaluation.calibrated import Calibration, can_leave_out, held_out_calibration, left_out_calibration
from credo.evaluation.checks import predicted, rows_for
from credo.inference.registry import METHODS

# Approximations with more parameters than this for each row, and no rows that say otherwise, are not to be trusted:
# training five networks of 50-50 units on 450 rows of boston cost 6 nats a row beside sampling (`inference.auto`).
MANY_PARAMETERS = 10
DERIVED = ("status", "verdict")


@dataclass(frozen=True)
class Check:
    """Whether the uncertainties may be trusted. Print it for the answers, and what to do.

    Arguments:
        answers: to the questions, that about calibration last.
        calibration: what was found on rows that were not seen; None where that could not be judged.
        method: its name and settings.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> print(credo.check(posterior, held_out=credo.datasets.gap(40, seed=1)))
    Verdict: good (green)
    fit          good          the posterior is exact, and so is its evidence
    calibration  good          the 90% interval holds 95 ± 4.7% of 40 rows held out
    """

    answers: tuple[Answer, ...]
    calibration: Calibration | None
    method: Mapping[str, Any]

    @property
    def status(self) -> Status:
        """Green if all answers are good. Red if calibration is, or nobody could judge it and another answer is.

        Intervals that hold what they say on rows that were not seen are usable, whatever the chains say.
        """
        *others, calibration = self.answers
        rest = worst(answer.status for answer in others)
        if calibration.status is None:
            return worst([rest, Status.AMBER])
        if calibration.status is Status.RED:
            return Status.RED
        return Status.GREEN if worst([rest, calibration.status]) is Status.GREEN else Status.AMBER

    @property
    def verdict(self) -> str:
        """One sentence."""
        said = "; ".join(answer.says for answer in self.answers)
        return f"{self.status.words.capitalize()}: {said}."

    @property
    def remedy(self) -> dict[str, Any]:
        """Settings of the method, by name, that would mend what is not good."""
        return remedies(answer for answer in self.answers if answer.status is not Status.GREEN)

    @property
    def mend(self) -> tuple[str, ...]:
        """What else would mend it, in words."""
        return tuple(dict.fromkeys(one.mend for one in self.answers if one.mend and one.status is not Status.GREEN))

    @property
    def other_method(self) -> str:
        """Another method that would mend it, "" for none."""
        return next((answer.method for answer in self.answers if answer.method), "")

    @property
    def call(self) -> str:
        """The fit that would mend it, as Python has it; "" where no setting and no other method would."""
        if self.other_method:
            return f'credo.fit(model, data, "{self.other_method}")'
        return f"credo.fit(model, data, {call_of({**self.method, **self.remedy})})" if self.remedy else ""

    @property
    def lines(self) -> list[str]:
        """The answers, line by line."""
        return in_lines(self.answers)

    @property
    def todo(self) -> list[str]:
        """What would mend it, sentence by sentence."""
        mended = [f"To mend it: {self.call}"] if self.call else []
        return mended + [f"What may help: {words}" for words in self.mend]

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings, and the text of the cells of each answer."""
        return ["question", "answer", "because"], [[one.question, one.in_words, one.says] for one in self.answers]

    @property
    def _lead(self) -> str:
        return f"Verdict: {self.status.words} ({self.status})"

    def __str__(self) -> str:
        return "\n".join([self._lead, *self.lines, *self.todo])

    def _repr_html_(self) -> str:
        lead = _html.verdict(self._lead, self.status)
        return _html.notebook(lead, _html.table(*self.cells()), *map(_html.paragraph, self.todo))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"status": str(self.status), "verdict": self.verdict}

    @classmethod
    def from_dict(cls, stored: dict[str, Any], source: Any = "verdict") -> "Check":
        """The inverse of `to_dict`; `source` is where it was read."""
        return checked(source, {name: value for name, value in stored.items() if name not in DERIVED}, cls)


def check(posterior: Any, data: Any = None, *, held_out: Any = None) -> Check:
    """May the uncertainties be trusted? Did the chains mix, is the Monte Carlo error small, are the intervals right?

    Calibration is judged on `held_out` rows; without them on those of the fit, each left out in turn by weighting the
    draws of a sampler, without a refit. Other methods leave nothing to weigh: they need held-out rows.

    Arguments:
        posterior: from `credo.fit`.
        data: what it was fitted to, `credo.Data` or (x, y).
        held_out: rows that it has not seen, `credo.Data` or (x, y).

    >>> import credo
    >>> data = credo.datasets.gap()
    >>> posterior = credo.fit(credo.models.regression(credo.networks.from_text("linear", 1)), data)
    >>> print(check(posterior, data).status)
    green
    """
    if data is None and held_out is None:
        raise ValueError("data is None: pass the rows of the fit (data=…), or rows that it has not seen (held_out=…)")
    found: Calibration | str
    if held_out is not None:
        rows = rows_for(posterior, as_data(held_out))
        found = held_out_calibration(predicted(posterior, rows), rows.outcomes)
    elif can_leave_out(posterior):
        found = left_out_calibration(posterior, as_data(data))
    else:
        found = "this method leaves no draws to leave rows out by, and no rows were held out"
    return verdict_of(posterior, found)


def verdict_of(posterior: Any, found: Calibration | str) -> Check:
    """The answers of a posterior's diagnostics, and what was found about its calibration, or why it was not."""
    diagnostics: Diagnostics = posterior.diagnostics
    answer = found.answer if isinstance(found, Calibration) else _unjudged(posterior, found)
    calibration = found if isinstance(found, Calibration) else None
    return Check((*diagnostics.answers, answer), calibration, dict(posterior.provenance.method))


def _unjudged(posterior: Any, why: str) -> Answer:
    """Where calibration could not be judged: red where parameters are too many for an approximation to be believed."""
    num, rows = posterior.model.num_parameters, posterior.provenance.num_data
    mend = "judge it on rows that it has not seen (credo evaluate, or credo.check with held_out=…)"
    if can_leave_out(posterior) or num <= MANY_PARAMETERS * rows:
        return Answer("calibration", None, why, mend=mend)
    says = f"{why}; {num:,} parameters are many for {rows:,} rows, and such an approximation is then often far too sure"
    return Answer("calibration", Status.RED, says, mend=mend, method="auto")


def in_lines(answers: Sequence[Answer]) -> list[str]:
    """Questions, statuses and answers below each other."""
    width = max(len(answer.question) for answer in answers)
    return [f"{one.question:<{width}}  {one.in_words:<12}  {one.says}" for one in answers]


def call_of(config: Mapping[str, Any]) -> str:
    """A method as Python makes it, from its name and settings: those that differ from its defaults.

    >>> call_of({"name": "NUTS", "num_samples": 50, "num_chains": 4})
    'credo.NUTS(num_samples=50)'
    """
    known = {kind.__name__: kind for kind in METHODS.values()}
    name = str(config["name"])
    defaults = known[name]().to_config() if name in known else {}
    shown = {key: value for key, value in config.items() if key != "name" and defaults.get(key) != value}
    inner = {key: call_of(value) if isinstance(value, Mapping) else repr(value) for key, value in shown.items()}
    return f"credo.{name}({', '.join(f'{key}={value}' for key, value in inner.items())})"
