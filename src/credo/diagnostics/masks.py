"""Diagnostics of dropout: has training settled, do the masks matter, and where did the rates go?"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credo.diagnostics.base import Diagnostics
from credo.diagnostics.functions import ratio, total_variance
from credo.diagnostics.variational import still_climbing, tenth
from credo.predictive import Predictive

# Below this share of the sd of y, the spread of the functions moves that of y by under one part in 10⁴.
SMALL_SPREAD = 0.01
# Learned rates outside are at an edge: with the first a mask is off by 3%, with the second it drops nearly all.
LOW_RATE, HIGH_RATE = 1e-3, 0.9


@dataclass(frozen=True, kw_only=True)
class DropoutDiagnostics(Diagnostics):
    """What a fit by dropout tells about itself. Print it for the verdict.

    Arguments:
        num_steps: of training; 0 for a network that was trained elsewhere.
        elbo, log_likelihood: averages over the last tenth of the steps, the first up to a constant; None without steps.
        rates: of each place for masks.
        spread: largest ratio, over probed outputs, of the sd of the functions to the sd of y; None without probes.
    """

    num_steps: int
    elbo: float | None
    log_likelihood: float | None
    rates: dict[str, float]
    spread: float | None

    @property
    def praise(self) -> str:
        settled = "The ELBO has settled" if self.num_steps else "The network was trained elsewhere"
        return f"{settled}, and the masks change what it says: judge by held-out data whether as much as they should."

    @property
    def figures(self) -> list[str]:
        lines = [f"Dropout at {len(self.rates)} place(s), {self.num_steps:,} steps"]
        if self.elbo is not None:
            lines.append(
                f"ELBO {self.elbo:.5g} up to a constant, expected log likelihood {self.log_likelihood:.5g} (nats)"
            )
        lines.append("rates " + ", ".join(f"{rate:.3g} ({name})" for name, rate in self.rates.items()))
        if self.spread is not None:
            lines.append(f"spread of the functions up to {self.spread:.2g} sds of y")
        return lines


def diagnose_masks(
    rates: Mapping[str, float], trace: Mapping[str, np.ndarray], prediction: Predictive | None
) -> DropoutDiagnostics:
    """All diagnostics of masks.

    Arguments:
        trace: figures of training by step, empty for a network that was trained elsewhere.
        prediction: at inputs to probe the functions at; None where there are none.
    """
    spread = None if prediction is None else _spread(prediction)
    return DropoutDiagnostics(
        num_steps=len(trace.get("elbo", ())),
        elbo=float(np.mean(tenth(trace["elbo"], -1))) if trace else None,
        log_likelihood=float(np.mean(tenth(trace["log_likelihood"], -1))) if trace else None,
        rates=dict(rates),
        spread=spread,
        advice=tuple(_advice(bool(trace) and still_climbing(trace["elbo"]), rates, spread)),
    )


def _spread(prediction: Predictive) -> float:
    """The largest ratio of the sd of the functions to that of y."""
    functions = prediction.functions.astype(np.float64)
    epistemic = functions.var(axis=0)
    return float(np.sqrt(np.max(ratio(epistemic, total_variance(prediction, functions.mean(axis=0), epistemic)))))


def _advice(is_climbing: bool, rates: Mapping[str, float], spread: float | None) -> list[str]:
    found = []
    if is_climbing:
        found.append("the ELBO is still climbing, so train longer or with a larger learning rate")
    if spread is not None and spread < SMALL_SPREAD:
        found.append("the spread has collapsed: masks hardly change what the network says; take a larger rate")
    low = [name for name, rate in rates.items() if rate < LOW_RATE]
    high = [name for name, rate in rates.items() if rate > HIGH_RATE]
    if low:
        found.append(f"the rate of {', '.join(low)} went to zero, and no uncertainty comes from there")
    if high:
        found.append(f"the rate of {', '.join(high)} went to one: what enters there is of no use to the network")
    return found
