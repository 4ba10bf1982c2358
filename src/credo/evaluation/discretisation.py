"""The bias of a step size: samplers without an accept step have a bias of the order of their step.

The method runs twice for the same simulated time, with its step and with half of it. A bias of first order in the step
is twice the difference of the two runs.
"""

from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from credo._html import InNotebook
from credo.data import as_data
from credo.diagnostics._arviz import mcse
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.models.program import Model
from credo.posterior import Draws

# Training inputs at which the functions are compared, evenly spaced over the rows.
NUM_PROBES = 10
# Biases below this share of the posterior sd are small: an sd that is 10% off turns a 95% interval into 93%.
SMALL = 0.1
# A bias counts as seen if it is this many standard errors from zero. A normal error exceeds 3.5 once in 2,000, and some
# tens of numbers are tested.
NUM_STANDARD_ERRORS = 3.5


@runtime_checkable
class ConstantStep(Protocol):
    """A method with a step size that can be halved."""

    def halved(self) -> Method:
        """Half the step, for the same simulated time."""


@dataclass(frozen=True, eq=False)
class DiscretisationBias(InNotebook):
    """The bias of the functions E[y | x, theta] at the given step. Print it for the verdict.

    Arguments:
        x: a few training inputs; the arrays below have an entry for each of them (and for each output).
        mean, mean_error: the bias of the posterior mean, in posterior sds, and its Monte Carlo standard error.
        sd, sd_error: the bias of the posterior sd, as a share of it, and its Monte Carlo standard error.

    >>> import numpy as np
    >>> import credo
    >>> x, bias, error = np.zeros((1, 1)), np.array([0.3]), np.array([0.05])
    >>> found = credo.evaluation.DiscretisationBias(x, mean=bias, mean_error=error, sd=0 * bias, sd_error=error)
    >>> found.is_seen, found.is_small
    (True, False)
    """

    x: np.ndarray
    mean: np.ndarray
    mean_error: np.ndarray
    sd: np.ndarray
    sd_error: np.ndarray

    @property
    def is_seen(self) -> bool:
        """Whether some bias is larger than chance explains."""
        return any(np.any(np.abs(bias) > NUM_STANDARD_ERRORS * error) for bias, error in self._figures)

    @property
    def is_small(self) -> bool:
        """Whether the typical bias is small compared with the posterior sd."""
        return max(_root_mean_square(bias) for bias, _ in self._figures) <= SMALL

    @property
    def is_precise(self) -> bool:
        """Whether the Monte Carlo error is small enough to tell a small bias from a large one."""
        return max(_root_mean_square(error) for _, error in self._figures) <= SMALL

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.is_seen and not self.is_small:
            return "The step is too large: its bias is seen, and not small; halve the step (and double thin)."
        if not self.is_precise:
            return "Too few effective draws to tell: the Monte Carlo error is as large as a bias that would matter."
        if self.is_seen:
            return "The step will do: its bias is seen, but small compared with the posterior sd."
        return "The step will do: no bias is seen above the Monte Carlo error."

    def __str__(self) -> str:
        lines = [f"bias of the step at {len(self.x)} training inputs (worst, and typical ± Monte Carlo error)"]
        for label, unit, (bias, error) in zip(("mean", "sd"), ("sd", "of itself"), self._figures, strict=True):
            worst = bias.flat[np.argmax(np.abs(bias))]
            typical, typical_error = _root_mean_square(bias), _root_mean_square(error)
            lines.append(f"posterior {label:5} {worst:+.3f}, {typical:.3f} ± {typical_error:.3f} {unit}")
        return "\n".join([*lines, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for tables and JSON."""
        return {name: value.tolist() for name, value in asdict(self).items()} | {"verdict": self.verdict}

    @property
    def _figures(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        return (self.mean, self.mean_error), (self.sd, self.sd_error)


def discretisation_bias(model: Model, data: Any, method: Method, *, seed: int = 0) -> DiscretisationBias:
    """Estimate the bias of a constant step size: fit with the step and with half of it, and compare the functions.

        bias(ε) ≈ 2 (estimate(ε) − estimate(ε/2)),    first order in ε

    It costs three times the run itself. The estimate needs both runs to have converged; if they have not, they have few
    effective draws, and the Monte Carlo error shows it.

    Arguments:
        model, data, method: as for `credo.fit`; the method is `credo.SGLD` or `credo.SGHMC` with a constant step.
        seed: of the first run; the second takes the next, so that their errors are independent.

    >>> from credo import datasets, models, networks
    >>> from credo.inference.sgmcmc.sgld import SGLD
    >>> model = models.regression(networks.MLP([], out=1), noise=0.3)
    >>> method = SGLD(num_samples=200, num_warmup=500, num_chains=2, step_size=0.02)
    >>> discretisation_bias(model, datasets.gap(), method).is_seen
    False
    """
    if not isinstance(method, ConstantStep):
        raise ValueError(f"method must have a constant step, as credo.SGLD() and credo.SGHMC() do, got {method!r}")
    halved = method.halved()
    rows = as_data(data)
    chosen = np.linspace(0, rows.size - 1, min(NUM_PROBES, rows.size)).round().astype(int)
    x = rows.x[chosen]
    whole = _moments(cast(Draws, fit(model, rows, method, seed=seed)), x)
    half = _moments(cast(Draws, fit(model, rows, halved, seed=seed + 1)), x)
    # A function that never moves (a saturated probability) has no bias worth dividing by.
    unit = np.maximum(half["sd"], np.finfo(np.float32).tiny)
    return DiscretisationBias(
        x=x,
        mean=2 * (whole["mean"] - half["mean"]) / unit,
        mean_error=2 * np.hypot(whole["mean_error"], half["mean_error"]) / unit,
        sd=2 * (whole["sd"] - half["sd"]) / unit,
        sd_error=2 * np.hypot(whole["sd_error"], half["sd_error"]) / unit,
    )


def _moments(posterior: Draws, x: np.ndarray) -> dict[str, np.ndarray]:
    """Mean and sd of the functions at x, and their Monte Carlo standard errors."""
    functions = posterior.predict(x).functions
    shape = functions.shape[1:]
    by_chain = functions.reshape(posterior.num_chains, posterior.num_draws, -1)
    return {
        "mean": functions.mean(axis=0),
        "mean_error": mcse(by_chain, "mean").reshape(shape),
        "sd": functions.std(axis=0),
        "sd_error": mcse(by_chain, "sd").reshape(shape),
    }


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))
