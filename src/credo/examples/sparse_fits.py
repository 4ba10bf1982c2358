"""The fits of the sparse measure: two methods, each with everything that is known and with parts of it left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import credo
from credo.evaluation.calibration import CalibrationCurve, nssr_curve
from credo.examples import page
from credo.examples.sparse_data import Measure
from credo.examples.sparse_model import EVERYTHING, NOTHING, Knowledge, model
from credo.inference.method import Method
from credo.predictive import RegressionPredictive

BATCH_SIZE, LEARNING_RATE, NUM_DRAWS = 50, 1e-2, 100
# Half of the units are dropped. A mask is shared by the whole batch, as a draw of the weights is: eight for each step
# lessen its noise.
RATE, MASKS_PER_STEP = 0.5, 8


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Arguments:
        known: what the model knows.
        falls: whether the learning rate falls to zero, along a cosine; the paper's is constant.
        num_layers: how many of the six layers are stochastic, by method: the last two, and for dropout, which masks
            what enters them, the last three.
    """

    known: Knowledge = EVERYTHING
    falls: bool = True
    num_layers: dict[str, int] = field(default_factory=lambda: {"VI": 2, "MC dropout": 3})


CASES = {
    "everything": Case(),
    "without the outlier model": Case(Knowledge(outliers=False)),
    "without the subspace": Case(Knowledge(subspace=False)),
    "without semi-supervision": Case(Knowledge(slopes=False)),
    "without all three": Case(NOTHING),
    "everything, at a constant learning rate": Case(falls=False),
    "everything, masks at the last two hidden layers": Case(num_layers={"MC dropout": 2}),
}


@dataclass(frozen=True, eq=False)
class Fit:
    """A posterior, and its answer to the test inputs.

    Arguments:
        answer: the prediction at the test inputs.
        truth: (rows, 9), the function there, without noise.
    """

    posterior: Any
    answer: RegressionPredictive
    truth: np.ndarray

    @cached_property
    def errors(self) -> np.ndarray:
        """Root mean square error of the posterior mean, by output."""
        return np.sqrt(np.mean((self.answer.mean - self.truth) ** 2, axis=0))

    @property
    def error(self) -> float:
        """The same over all outputs."""
        return float(np.sqrt(np.mean(self.errors**2)))

    @cached_property
    def rates(self) -> np.ndarray | None:
        """The probability of an outlier, by output; None for a model without them."""
        fitted = self.posterior.model
        return np.asarray(fitted.constrain(fitted.frozen_xi)["rate"]) if "rate" in fitted.frozen_xi else None

    @cached_property
    def curves(self) -> dict[str, CalibrationCurve]:
        """Of the marginal, noise included; and of the draws of the function alone, by two laws of their covariance."""
        return {
            "y with its noise, χ²": nssr_curve(self.answer, self.truth),
            "the function alone, χ²": nssr_curve(self.answer, self.truth, noise=False),
            "the function alone, Hotelling": nssr_curve(self.answer, self.truth, law="hotelling", noise=False),
        }


def fit_all(measure: Measure, cases: Sequence[str], epochs: int, seed: int) -> dict[str, dict[str, Fit]]:
    """Each of these cases by each of its methods."""
    num_steps = epochs * measure.train.size // BATCH_SIZE
    found: dict[str, dict[str, Fit]] = {}
    for name in cases:
        case, found[name] = CASES[name], {}
        for method, num_layers in case.num_layers.items():
            page.say(f"Fitting: {name}, {method} …")
            program = model(measure.subspace, case.known, num_layers=num_layers)
            posterior = credo.fit(program, measure.train, climb(method, num_steps, falls=case.falls), seed=seed)
            answer: Any = posterior.predict(measure.test.x, num_draws=NUM_DRAWS)
            found[name][method] = Fit(posterior, answer, measure.test.y)
    return found


def climb(name: str, num_steps: int, *, falls: bool) -> Method:
    """The method, for so many steps."""
    rate = credo.schedules.Cosine(LEARNING_RATE, num_steps) if falls else LEARNING_RATE
    common: dict[str, Any] = {"num_steps": num_steps, "learning_rate": rate, "batch_size": BATCH_SIZE}
    if name == "VI":
        return credo.BayesByBackprop(**common)
    return credo.MCDropout(**common, rate=RATE, draws_per_step=MASKS_PER_STEP)
