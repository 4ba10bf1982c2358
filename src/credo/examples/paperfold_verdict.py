"""The verdict of the paperfold example, in numbers and words, next to that of the paper."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credo.examples import page
from credo.examples.paperfold_fits import NATS_BELOW_BEST, Fit

# The centre and a corner, where the folds differ most; a data point, where they agree; and two others.
POINTS = np.array([[0.0, 0.0], [2**0.5, 2**0.5], [0.5**0.5, 0.5**0.5], [1.0, 0.0], [0.3, 0.9]])
POINT_NAMES = ("(0, 0)", "(√2, √2)", "(√½, √½)", "(1, 0)", "(0.3, 0.9)")
# Heights at the centre are 0 in fold A and 1 in fold B, with an sd of 0.07; farther from both is neither fold.
NEAR = 0.25
# A fold counts as found from this share of the draws on; its share is right if it is within MASS_TOLERANCE.
FOUND_SHARE, MASS_TOLERANCE = 0.05, 0.1
# Shares of the exact sd within a fold: below the first there is no local uncertainty, below the second too little.
NO_SPREAD, TOO_LITTLE_SPREAD = 0.1, 0.75
# Levels at which distributions of z are compared.
LEVELS = np.linspace(0.01, 0.99, 50)

IN_PAPER = {
    "tempering": "not in the paper",
    "NUTS": "106 s of training and 0.29 s per sample: both folds, with local uncertainty",
    "VI": "0.16 s and 0.0008 s per sample: one fold, with local uncertainty",
    "ensemble": "0.87 s: both folds, without local uncertainty",
    "VI + ensemble": "1.5 s: both folds, and the marginal of z is matched well",
}
PRIOR_WORDS = {
    "equal": "N(0, 5²) on all eight parameters",
    "split": "N(0, 1) on weights and γ, N(0, 10²) on the biases",
}


@dataclass(frozen=True)
class Found:
    """What a method believes about z.

    Arguments:
        in_a, in_b: shares of the draws in each fold.
        error: standard error of `in_a`, from the spread between chains or members; NaN for a single one.
        local: sd of z at the centre within a fold, NaN if no fold is found.
        mean, sd: of z without noise at POINTS.
        distance: between the distributions of z of this method and of the reference, averaged over the plane.
    """

    in_a: float
    in_b: float
    error: float
    local: float
    mean: np.ndarray
    sd: np.ndarray
    distance: float = float("nan")


# For the prior "split": importance sampling over the six numbers a = γ₁α and b = |γ₂|β of the reduced model.
EXACT = Found(
    in_a=0.506,
    in_b=0.494,
    error=0.001,
    local=0.070,
    mean=np.array([0.494, 0.506, 0.500, 0.825, 0.280]),
    sd=np.array([0.477, 0.511, 0.076, 0.151, 0.129]),
    distance=0.0,
)


def summarised(points: np.ndarray, distance: float) -> Found:
    """Summarise one method from z at POINTS, (chains or members, draws, points)."""
    centre = points[..., 0]
    is_a, is_b = np.abs(centre) < NEAR, np.abs(centre - 1) < NEAR
    inside = [centre[fold] for fold in (is_a, is_b) if fold.mean() >= FOUND_SHARE]
    sizes = [values.size for values in inside]
    variance = np.average([values.var() for values in inside], weights=sizes) if inside else np.nan
    by_chain = is_a.mean(axis=1)
    error = by_chain.std(ddof=1) / np.sqrt(len(by_chain)) if len(by_chain) > 1 else np.nan
    flat = points.reshape(-1, points.shape[-1])
    moments = flat.mean(axis=0), flat.std(axis=0)
    return Found(float(is_a.mean()), float(is_b.mean()), float(error), float(np.sqrt(variance)), *moments, distance)


def compared(points: Mapping[str, np.ndarray], surface: Mapping[str, np.ndarray]) -> dict[str, Found]:
    """Summarise every method; the first one is the reference.

    Arguments:
        points: z at POINTS by method, (chains or members, draws, points).
        surface: z over the plane by method, (draws, points).
    """
    quantiles = {name: np.quantile(values, LEVELS, axis=0) for name, values in surface.items()}
    reference = next(iter(quantiles.values()))
    distances = {name: float(np.abs(values - reference).mean()) for name, values in quantiles.items()}
    return {name: summarised(values, distances[name]) for name, values in points.items()}


def judged(found: Found, reference: Found) -> str:
    """Describe one method in words."""
    if found is reference:
        return (
            f"is the reference: fold A {found.in_a:.3f} ± {found.error:.3f}, fold B {found.in_b:.3f}, and a local "
            f"uncertainty of sd {found.local:.3f} within a fold."
        )
    folds = [fold for fold, share in (("A", found.in_a), ("B", found.in_b)) if share >= FOUND_SHARE]
    if not folds:
        return "finds neither fold."
    if len(folds) == 1:
        said = f"finds fold {folds[0]} only"
    else:
        off = abs(found.in_a - reference.in_a)
        roughly = "but weighs them only roughly" if off <= 2 * found.error else "but weighs them wrongly"
        how = "and weighs them about right" if off <= MASS_TOLERANCE else roughly
        said = f"finds both folds {how} (fold A {found.in_a:.2f} ± {found.error:.2f}, exact {reference.in_a:.2f})"
    share = found.local / reference.local
    local = "no" if share < NO_SPREAD else "too little" if share < TOO_LITTLE_SPREAD else "the right"
    spread = f"{local} local uncertainty (sd {found.local:.3f} within a fold, exact {reference.local:.3f})"
    beyond = f"; the distribution of z is {found.distance:.2f} off on average" if found.distance > 0 else ""
    return f"{said}, with {spread}{beyond}."


def written(fits: Mapping[str, Fit], found: Mapping[str, Found], *, prior: str, quick: bool) -> str:
    """The page of the example, in Markdown."""
    known = EXACT if prior == "split" else None
    reference = known or found["tempering"]
    lines = [
        "# Paperfold: one sheet, two folds",
        f"Prior: {PRIOR_WORDS[prior]}; noise 0.1. Fold A is z = |x|/√2, fold B is z = 1 − |y|/√2.",
        *(["**Far too few draws and steps (quick): the numbers mean nothing yet.**"] if quick else []),
        "## Verdict",
        "\n".join(_sentence(name, found[name], reference) for name in found),
        "## What it cost, and where it is",
        _costs(fits, found, known),
        _notes(fits, known),
        "## z at five points, mean ± sd",
        _heights(found, known),
    ]
    return "\n\n".join(lines)


def _sentence(name: str, found: Found, reference: Found) -> str:
    return f"- **{name}** {judged(found, reference)} *The paper:* {IN_PAPER[name]}."


def _costs(fits: Mapping[str, Fit], found: Mapping[str, Found], known: Found | None) -> str:
    header = ["method", "training", "per sample", "fold A", "fold B", "sd within a fold", "off on average"]
    rows = [
        [
            name,
            f"{fit.seconds:.1f} s",
            "—" if fit.seconds_per_sample is None else f"{1000 * fit.seconds_per_sample:.2g} ms",
            *_shares(found[name]),
            "—" if name == "tempering" else f"{found[name].distance:.3f}",
        ]
        for name, fit in fits.items()
    ]
    if known is not None:
        rows.insert(0, ["exact", "", "", *_shares(known), ""])
    return page.table(header, rows)


def _shares(found: Found) -> list[str]:
    local = "—" if np.isnan(found.local) else f"{found.local:.3f}"
    return [f"{found.in_a:.3f}", f"{found.in_b:.3f}", local]


def _notes(fits: Mapping[str, Fit], known: Found | None) -> str:
    kept = [f"{name} {fit.members[0]} of {fit.members[1]}" for name, fit in fits.items() if fit.members]
    source = "importance sampling in six dimensions (±0.001)" if known else "tempering, with its standard error"
    return (
        f"The exact reference is {source}. Training includes compilation. A sample of a chain costs its share of the "
        "run, a sample of VI a draw; an ensemble of points has no more. “Off on average” is the distance of the "
        "distribution of z from that of tempering (Wasserstein, averaged over the plane).\n\n"
        f"Starts of the optimisers that were kept: {', '.join(kept)}. The others ended over {NATS_BELOW_BEST:.0f} nats "
        "below the best, in a local optimum that is no fold. VI is the best start of VI + ensemble, and has its "
        "training time. A NUTS chain stays in its fold: the starts decide how many chains are in each."
    )


def _heights(found: Mapping[str, Found], known: Found | None) -> str:
    everyone = ({"exact": known} if known else {}) | dict(found)
    rows = [
        [name, *(f"{mean:.3f} ± {sd:.3f}" for mean, sd in zip(one.mean, one.sd, strict=True))]
        for name, one in everyone.items()
    ]
    return page.table(["method", *POINT_NAMES], rows)
