"""Which method: what each costs and gives on three small problems, beside the others.

    python -m benchmarks --keep docs/figures which

A curve with a hole in it, a table with a number to predict, and one with two classes; one hidden layer of 20 units.
Every method has its default settings, but that the samplers of all data are cut to 200 draws of two chains. The cost is
the time of the processor, of all threads and without compilation, in fits of `MAP`: wall time would measure what else
the machine does.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import credo
from benchmarks.printing import console, new_table
from credo.inference.registry import METHODS
from credo.posterior import Posterior

SHORT = {"num_samples": 200, "num_warmup": 300, "num_chains": 2}
# Of these the cost is that of draws, and the defaults are for posteriors that matter.
SHORTENED = ("nuts", "hmc", "mclmc", "parallel_tempering")
LEVEL = 0.9


@dataclass(frozen=True)
class Problem:
    """A model and its data, of which the last rows are for judging."""

    name: str
    model: credo.Model
    data: credo.Data

    @property
    def parts(self) -> tuple[credo.Data, credo.Data]:
        return self.data.split(0.7, seed=0)


def problems() -> Iterator[Problem]:
    """A curve, a number of a table, a class of a table."""
    curve = credo.networks.MLP([20], out=1, activation="tanh")
    yield Problem("a curve", credo.models.regression(curve, noise=0.1), credo.datasets.gap(140))
    number = credo.networks.MLP([20], out=1, activation="tanh")
    diabetes = credo.datasets.load("diabetes", standardise=True)
    yield Problem("diabetes", credo.models.regression(number, prior=credo.priors.fan_in(1.0)), diabetes)
    classes = credo.networks.MLP([20], out=2, activation="tanh")
    cancer = credo.datasets.load("breast_cancer", standardise=True)
    yield Problem("breast cancer", credo.models.classification(classes, prior=credo.priors.fan_in(1.0)), cancer)


def method_of(name: str) -> credo.inference.method.Method:
    """The method as this benchmark runs it."""
    kind = METHODS[name]
    if name == "parallel_tempering":
        return kind(num_samples=200, num_warmup=300, num_chains=1)
    return kind(**SHORT) if name in SHORTENED else kind()


def main() -> None:
    table = new_table(
        "What each method costs and gives",
        "method",
        *(f"{one.name}: {what}" for one in problems() for what in ("log score", "calibration", "cost")),
    )
    found = {problem.name: dict(_judged(problem)) for problem in problems()}
    for name in METHODS:
        table.add_row(name, *(cell for figures in found.values() for cell in figures[name]))
    console.print(table)


def _judged(problem: Problem) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Of each method: the log score of rows not seen, how far its calibration curve is off, the cost in fits of MAP."""
    train, test = problem.parts
    unit = _cpu_seconds(problem, "map", train)[1]
    for name in METHODS:
        try:
            posterior, seconds = _cpu_seconds(problem, name, train)
        except ValueError:  # a method that is not for such a model says so
            yield name, ("–", "–", "–")
            continue
        scores = credo.evaluate(posterior, test)
        distance = scores.calibration.distance
        yield name, (f"{scores['lpd'].value:.2f}", f"{distance:.3f}", f"{seconds / unit:.1f}")
        console.print(problem.name, name, f"{seconds:.1f} s")


def _cpu_seconds(problem: Problem, name: str, train: credo.Data) -> tuple[Posterior, float]:
    """A fit, once to compile and once for the time that all threads were at work."""
    credo.fit(problem.model, train, method_of(name), seed=0, progress=False)
    begin = time.process_time()
    posterior = credo.fit(problem.model, train, method_of(name), seed=0, progress=False)
    return posterior, time.process_time() - begin
