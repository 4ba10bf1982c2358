"""Diagnostics: evidence for and against a set of draws, and a verdict in words.

Weights of a network are not identifiable: chains that sit in mirror images of one mode disagree about every weight
and agree about every prediction. So each figure is given twice: for the weights, and for the functions, i.e. for
E[y | x, theta] on probe inputs. The verdict rests on the functions.

R-hat is rank-normalised and split, ESS is bulk and tail (Vehtari et al., 2021), both from ArviZ; E-BFMI as in
Betancourt (2016).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from credo.diagnostics._arviz import arviz
from credo.diagnostics.base import Diagnostics
from credo.models.program import Model
from credo.predictive import Predictive

# Vehtari et al. (2021) recommend R-hat below 1.01 and an ESS of 100 per chain. Predictions need less precision than
# reported parameters: a warning starts at 1.05, and 400 in all.
GOOD_RHAT, BAD_RHAT = 1.01, 1.05
ENOUGH_ESS = 400
# Stan's threshold: below it the momentum resampling explores the energies too slowly.
LOW_EBFMI = 0.3
# ArviZ takes a millisecond for each figure: of many weights a random part is looked at, and the text says so.
MAX_WEIGHTS = 200


@dataclass(frozen=True)
class Convergence:
    """Worst figures over a set of scalar quantities; nan where there are too few draws to tell."""

    num_quantities: int
    rhat: float
    ess_bulk: float
    ess_tail: float

    def __str__(self) -> str:
        return f"R-hat {self.rhat:.3f}, bulk ESS {self.ess_bulk:.0f}, tail ESS {self.ess_tail:.0f}"


@dataclass(frozen=True, kw_only=True)
class ChainDiagnostics(Diagnostics):
    """What the chains of a sampler tell about themselves, and about each other."""

    num_chains: int
    num_draws: int
    num_parameters: int
    weights: Convergence | None
    functions: Convergence | None
    acceptance: float | None
    num_divergences: int | None
    ebfmi: float | None
    warning: ClassVar[str] = "Do not trust the uncertainties yet"

    @property
    def praise(self) -> str:
        if self.num_chains * self.num_draws == 1:
            return "A point estimate: one draw, no epistemic uncertainty, nothing to converge."
        return "The chains agree about the functions and have drawn enough: the predictions are the model's own."

    @property
    def figures(self) -> list[str]:
        lines = [f"{self.num_chains} chain(s) × {self.num_draws} draws"]
        if self.functions is not None:
            lines.append(f"functions  {self.functions}   (worst of {self.functions.num_quantities} probed outputs)")
        if self.weights is not None:
            share = f"{self.weights.num_quantities} of {self.num_parameters:,}"
            lines.append(f"weights    {self.weights}   (worst of {share} numbers)")
        sampler = [
            f"acceptance {self.acceptance:.2f}" if self.acceptance is not None else "",
            f"divergences {self.num_divergences}" if self.num_divergences is not None else "",
            f"E-BFMI {self.ebfmi:.2f}" if self.ebfmi is not None else "",
        ]
        return lines + (["sampler    " + ", ".join(filter(None, sampler))] if any(sampler) else [])


class Chains(Protocol):
    """Draws of theta in chains, as far as diagnostics look at them."""

    @property
    def model(self) -> Model: ...

    @property
    def theta(self) -> dict[str, np.ndarray]: ...

    @property
    def infos(self) -> dict[str, np.ndarray] | None: ...

    @property
    def probes(self) -> np.ndarray | None: ...

    @property
    def num_chains(self) -> int: ...

    @property
    def num_draws(self) -> int: ...

    def predict(self, x: Any) -> Predictive: ...


def diagnose_chains(posterior: Chains) -> ChainDiagnostics:
    """All diagnostics of a posterior made of draws."""
    infos = posterior.infos or {}
    divergences = int(np.sum(infos["diverged"])) if "diverged" in infos else None
    enough = posterior.num_draws >= 4  # split R-hat needs two draws in each half of a chain
    predictions = _functions(posterior) if enough and posterior.probes is not None else None
    functions = None if predictions is None else convergence(predictions)
    weights = convergence(_some_weights(posterior)) if enough else None
    energy = infos.get("energy")
    figures: dict[str, Any] = {
        "acceptance": float(np.mean(infos["acceptance"])) if "acceptance" in infos else None,
        "num_divergences": divergences,
        "ebfmi": float(np.min(ebfmi(energy))) if energy is not None and enough else None,
    }
    frozen = [] if predictions is None else np.flatnonzero(np.all(np.ptp(predictions, axis=1) == 0, axis=-1)).tolist()
    return ChainDiagnostics(
        num_chains=posterior.num_chains,
        num_draws=posterior.num_draws,
        num_parameters=posterior.model.num_parameters,
        weights=weights,
        functions=functions,
        advice=tuple(_advice(posterior, functions, frozen, figures)),
        **figures,
    )


def convergence(quantities: np.ndarray) -> Convergence:
    """Worst R-hat and ESS over quantities of shape (chains, draws, quantities)."""
    # A constant (a dead unit's weight never drawn anew, a saturated probability) has no R-hat: it is left out.
    moving = quantities[..., np.ptp(quantities, axis=(0, 1)) > 0]
    if moving.shape[-1] == 0:
        return Convergence(0, float("nan"), float("nan"), float("nan"))
    dataset = arviz.convert_to_dataset({"q": moving.astype(np.float64)})
    # Chains that stand still have no variance to divide by: the figures are then infinite or nan, and judged as bad.
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = arviz.rhat(dataset)["q"].values
        bulk = arviz.ess(dataset, method="bulk")["q"].values
        tail = arviz.ess(dataset, method="tail")["q"].values
    return Convergence(moving.shape[-1], float(np.max(rhat)), float(np.min(bulk)), float(np.min(tail)))


def ebfmi(energy: np.ndarray) -> np.ndarray:
    """Energy Bayesian fraction of missing information per chain: Σ(Eₙ − Eₙ₋₁)² / Σ(Eₙ − Ē)²; energy (chains, draws)."""
    centred = energy - np.mean(energy, axis=1, keepdims=True)
    return np.sum(np.diff(energy, axis=1) ** 2, axis=1) / np.sum(centred**2, axis=1)


def _functions(posterior: Chains) -> np.ndarray:
    predictions = posterior.predict(posterior.probes).functions
    return predictions.reshape(posterior.num_chains, posterior.num_draws, -1)


def _some_weights(posterior: Chains) -> np.ndarray:
    leaves = [leaf.reshape(*leaf.shape[:2], -1) for leaf in posterior.theta.values()]
    weights = np.concatenate(leaves, axis=-1)
    if weights.shape[-1] <= MAX_WEIGHTS:
        return weights
    chosen = np.random.default_rng(0).choice(weights.shape[-1], MAX_WEIGHTS, replace=False)
    return weights[..., np.sort(chosen)]


def _advice(posterior: Chains, functions: Convergence | None, frozen: list[int], figures: dict[str, Any]) -> list[str]:
    """What is wrong and what to do about it, the worst first. `frozen`: the chains that never moved."""
    if posterior.num_chains * posterior.num_draws == 1:
        return []
    if functions is None:
        return ["there is too little to judge by: it takes four draws per chain and inputs to probe the functions at"]
    if len(frozen) == posterior.num_chains:
        return ["the draws never moved: every function is the same (a step far too large is always rejected)"]
    advice = []
    if frozen:
        advice.append(f"chain(s) {', '.join(map(str, frozen))} never moved; start them elsewhere (start=credo.MAP())")
    if posterior.num_chains == 1:
        advice.append("one chain cannot tell whether it has seen everything; run at least four")
    if not functions.rhat <= BAD_RHAT:
        advice.append(f"the chains disagree about the functions (R-hat {functions.rhat:.2f}); run a longer warm-up")
    elif functions.rhat > GOOD_RHAT:
        advice.append(f"the chains have not quite mixed (R-hat {functions.rhat:.3f}); draw more")
    if not functions.ess_bulk >= ENOUGH_ESS:
        advice.append(f"only {functions.ess_bulk:.0f} effective draws of the functions; draw more")
    total = posterior.num_chains * posterior.num_draws
    if figures["num_divergences"]:
        share = figures["num_divergences"] / total
        advice.append(f"{figures['num_divergences']} divergent trajectories ({share:.1%}); raise target_acceptance")
    if figures["ebfmi"] is not None and figures["ebfmi"] < LOW_EBFMI:
        advice.append(f"E-BFMI {figures['ebfmi']:.2f} is low: heavy tails; tighten the prior or reparametrise")
    return advice
