"""Diagnostics: evidence for and against a set of draws, and a verdict in words.

Weights of a network are not identifiable: chains that sit in mirror images of one mode disagree about every weight
and agree about every prediction. So each figure is given twice: for the weights, and for the functions, i.e. for
E[y | x, theta] on probe inputs. The verdict rests on the functions.

R-hat is rank-normalised and split, ESS is bulk and tail (Vehtari et al., 2021), both from ArviZ; E-BFMI as in
Betancourt (2016).

Two questions are told apart: did the chains mix, and how large is the Monte Carlo error of the predictions? Whether
they are calibrated no chain can tell: see `credo.check`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from credo.diagnostics._arviz import ess, rhat
from credo.diagnostics.base import Diagnostics
from credo.diagnostics.precision import BAD_SHARE, GOOD_SHARE, Precision, precision_of
from credo.diagnostics.status import Answer, Status, remedies, worst
from credo.models.program import Model
from credo.predictive import Predictive

# Vehtari et al. (2021) recommend R-hat below 1.01 for parameters that are reported, from some thousand draws. Of four
# chains of 50 independent draws each, split in two, R-hat² is 1 + (F − 1)/25 with F ~ F(7, 192): 1.02 or more in one of
# 20 quantities, and this is the worst of 40.
GOOD_RHAT = 1.05
# Chains that disagree more than this need more than draws.
LOST_RHAT = 1.2
# A count is raised at most so much at once: beyond, one looks again first.
MAX_FACTOR = 10
# Divergent trajectories tell of places that chains cannot enter. If fewer draws than this share should have been there,
# a 90% interval still holds 89%.
MANY_DIVERGENCES = 0.01
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
    """What the chains of a sampler tell about themselves, and about each other.

    Arguments:
        precision: the Monte Carlo error of the predictions; None where there are too few draws, or no probes.
        found: the answers to the questions, "mixing" and "precision".

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.NUTS(num_samples=50, num_warmup=50), seed=0)
    >>> posterior.diagnostics.num_chains, posterior.diagnostics.functions.rhat < 1.1
    (4, True)
    """

    num_chains: int
    num_draws: int
    num_parameters: int
    weights: Convergence | None
    functions: Convergence | None
    acceptance: float | None
    num_divergences: int | None
    ebfmi: float | None
    precision: Precision | None = None
    found: tuple[Answer, ...] = ()
    warning: ClassVar[str] = "Usable"

    @property
    def status(self) -> Status:
        return worst(answer.status for answer in self.found)

    @property
    def answers(self) -> tuple[Answer, ...]:
        return self.found or super().answers

    @property
    def remedy(self) -> dict[str, Any]:
        """Settings of the method, by name, that would mend what is wrong."""
        return remedies(self.found)

    @property
    def praise(self) -> str:
        if self.num_chains * self.num_draws == 1:
            return "A point estimate: one draw, no epistemic uncertainty, nothing to converge."
        said = "; ".join(answer.says for answer in self.found)
        return f"{said[:1].upper()}{said[1:]}: the predictions are the model's own."

    @property
    def figures(self) -> list[str]:
        lines = [f"{self.num_chains} chain(s) × {self.num_draws} draws"]
        if self.functions is not None:
            lines.append(f"functions  {self.functions}   (worst of {self.functions.num_quantities} probed outputs)")
        if self.precision is not None:
            lines.append(f"predictions off by {self.precision.share:.2f} of their sd, from one run to the next")
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

    @property
    def provenance(self) -> Any: ...

    def predict(self, x: Any) -> Predictive: ...


def diagnose_chains(posterior: Chains) -> ChainDiagnostics:
    """All diagnostics of a posterior made of draws.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.NUTS(num_samples=50, num_warmup=50), seed=0)
    >>> credo.evaluation.diagnose(posterior).num_divergences
    0
    """
    infos = posterior.infos or {}
    divergences = int(np.sum(infos["diverged"])) if "diverged" in infos else None
    enough = posterior.num_draws >= 4  # split R-hat needs two draws in each half of a chain
    prediction = posterior.predict(posterior.probes) if enough and posterior.probes is not None else None
    functions = None if prediction is None else _by_chain(posterior, prediction.functions)
    energy = infos.get("energy")
    evidence = ChainDiagnostics(
        num_chains=posterior.num_chains,
        num_draws=posterior.num_draws,
        num_parameters=posterior.model.num_parameters,
        weights=convergence(_some_weights(posterior)) if enough else None,
        functions=None if functions is None else convergence(functions),
        acceptance=float(np.mean(infos["acceptance"])) if "acceptance" in infos else None,
        num_divergences=divergences,
        ebfmi=float(np.min(ebfmi(energy))) if energy is not None and enough else None,
        precision=None if prediction is None else precision_of(prediction, posterior.num_chains),
        advice=(),
    )
    if posterior.num_chains * posterior.num_draws == 1:
        return evidence
    frozen = [] if functions is None else np.flatnonzero(np.all(np.ptp(functions, axis=1) == 0, axis=-1)).tolist()
    found = tuple(judged(evidence, frozen, posterior.provenance.method))
    return replace(evidence, found=found, advice=tuple(one.advice for one in found if one.status is not Status.GREEN))


def convergence(quantities: np.ndarray) -> Convergence:
    """Worst R-hat and ESS over quantities of shape (chains, draws, quantities)."""
    # A constant (a dead unit's weight never drawn anew, a saturated probability) has no R-hat: it is left out.
    moving = quantities[..., np.ptp(quantities, axis=(0, 1)) > 0]
    if moving.shape[-1] == 0:
        return Convergence(0, float("nan"), float("nan"), float("nan"))
    draws = moving.astype(np.float64)
    # Chains that stand still have no variance to divide by: the figures are then infinite or nan, and judged as bad.
    with np.errstate(divide="ignore", invalid="ignore"):
        worst_rhat, least_bulk, least_tail = np.max(rhat(draws)), np.min(ess(draws, "bulk")), np.min(ess(draws, "tail"))
    return Convergence(moving.shape[-1], float(worst_rhat), float(least_bulk), float(least_tail))


def ebfmi(energy: np.ndarray) -> np.ndarray:
    """Energy Bayesian fraction of missing information per chain: Σ(Eₙ − Eₙ₋₁)² / Σ(Eₙ − Ē)²; energy (chains, draws)."""
    centred = energy - np.mean(energy, axis=1, keepdims=True)
    return np.sum(np.diff(energy, axis=1) ** 2, axis=1) / np.sum(centred**2, axis=1)


def _by_chain(posterior: Chains, functions: np.ndarray) -> np.ndarray:
    return functions.reshape(posterior.num_chains, posterior.num_draws, -1)


def _some_weights(posterior: Chains) -> np.ndarray:
    leaves = [leaf.reshape(*leaf.shape[:2], -1) for leaf in posterior.theta.values()]
    weights = np.concatenate(leaves, axis=-1)
    if weights.shape[-1] <= MAX_WEIGHTS:
        return weights
    chosen = np.random.default_rng(0).choice(weights.shape[-1], MAX_WEIGHTS, replace=False)
    return weights[..., np.sort(chosen)]


def judged(
    evidence: ChainDiagnostics, frozen: Sequence[int] = (), settings: Mapping[str, Any] | None = None
) -> list[Answer]:
    """Did the chains mix, and how large is the Monte Carlo error?

    Arguments:
        frozen: the chains that never moved.
        settings: of the method, by name: advice is about those that there are, if it is a sampler.
    """
    # Others, such as point estimates side by side, have warm-ups and steps that mean something else.
    known = settings if settings is not None and "num_samples" in settings else {}
    if evidence.functions is None or evidence.precision is None:
        says = "there is too little to judge by: it takes four draws per chain and inputs to probe the functions at"
        return [Answer("mixing", Status.RED, says, _raised(known, num_samples=4))]
    if len(frozen) == evidence.num_chains:
        says = "the draws never moved: every function is the same (a step far too large is always rejected)"
        return [Answer("mixing", Status.RED, says)]
    answers = [*_mixing(evidence, evidence.functions.rhat, evidence.precision, known), _precise(evidence, known)]
    if frozen:
        chains = ", ".join(map(str, frozen))
        start = "start them elsewhere (start=credo.MAP())" if "start" in known else "start them elsewhere"
        answers.insert(0, Answer("mixing", Status.RED, f"chain(s) {chains} never moved", mend=start))
    return answers


def _mixing(evidence: ChainDiagnostics, rhat: float, precision: Precision, known: Mapping[str, Any]) -> list[Answer]:
    """R-hat tells whether chains differ; what they differ by, beside the predictive sd, tells whether it matters.

    Had each chain seen a place of its own and nothing else, the error of their mean would be √chains times smaller.
    """
    found = []
    apart = precision.disagreement
    if apart is None:
        says = "one chain cannot tell whether it has seen everything"
        more = {"num_chains": 4} if "num_chains" in known else {}
        found.append(Answer("mixing", Status.AMBER, says, more, "" if more else "run at least four"))
    elif rhat <= GOOD_RHAT:
        found.append(Answer("mixing", Status.GREEN, f"the chains agree about the functions (R-hat {rhat:.2f})"))
    elif (lost := apart / math.sqrt(evidence.num_chains)) <= GOOD_SHARE:
        says = f"the chains differ by {apart:.2f} predictive sds, too little to matter (R-hat {rhat:.2f})"
        found.append(Answer("mixing", Status.GREEN, says))
    else:
        says = f"the chains disagree about the functions (R-hat {rhat:.2f}), by {apart:.2f} predictive sds"
        longer = _raised(known, num_warmup=4 if rhat > LOST_RHAT else 2, thin=4 if rhat > LOST_RHAT else 2)
        status = Status.AMBER if lost <= BAD_SHARE else Status.RED
        found.append(Answer("mixing", status, says, longer, "" if longer else "run longer chains"))
    if evidence.num_divergences:
        share = evidence.num_divergences / (evidence.num_chains * evidence.num_draws)
        count = evidence.num_divergences
        says = f"{count} divergent trajector{'y' if count == 1 else 'ies'} ({share:.1%})"
        smaller, mend = _smaller_steps(known)
        status = Status.GREEN if share < MANY_DIVERGENCES else Status.AMBER
        found.append(Answer("mixing", status, says, smaller, mend))
    if evidence.ebfmi is not None and evidence.ebfmi < LOW_EBFMI:
        says = f"E-BFMI {evidence.ebfmi:.2f} is low: heavy tails"
        found.append(Answer("mixing", Status.AMBER, says, mend="tighten the prior or reparametrise"))
    return found


def _precise(evidence: ChainDiagnostics, known: Mapping[str, Any]) -> Answer:
    """Errors go with the root of the number of draws. Draws that are hardly independent are thinned instead."""
    share, ess = evidence.precision.share, evidence.functions.ess_bulk  # type: ignore[union-attr]
    says = f"another run would move the predictions by about {share:.2f} of their sd ({ess:.0f} effective draws)"
    if share <= GOOD_SHARE:
        return Answer("precision", Status.GREEN, says)
    factor = (share / GOOD_SHARE) ** 2
    independent = ess >= evidence.num_chains * evidence.num_draws / 4
    more = _raised(known, num_samples=factor) if independent or "thin" not in known else _raised(known, thin=factor)
    status = Status.AMBER if share <= BAD_SHARE else Status.RED
    return Answer("precision", status, says, more, "" if more else "draw more")


def _raised(known: Mapping[str, Any], **factors: float) -> dict[str, Any]:
    """Counts among the settings times a factor, in two digits."""
    found = {}
    for name, factor in factors.items():
        if isinstance(known.get(name), int):
            wanted = math.ceil(max(known[name], 1) * min(factor, MAX_FACTOR))
            unit = 10 ** max(len(str(wanted)) - 2, 0)
            found[name] = -(-wanted // unit) * unit
    return found


def _smaller_steps(known: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """What makes the steps of a sampler smaller: what it aims at, where it has such an aim."""
    aim = known.get("target_acceptance")
    if isinstance(aim, float):
        return {"target_acceptance": round(1 - (1 - aim) / 4, 3)}, ""
    return {}, "tighten the prior or reparametrise"
