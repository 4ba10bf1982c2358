"""Paperfold: a sheet of paper, folded once, can pass through eight points in two ways. Which methods find both?

Paper, "Practical Example III: Paperfold". The posterior of the eight parameters has two families of modes, and chains
do not cross between them. Parallel tempering weighs them and is the reference for the other methods.
"""

from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

import credo
from credo import random
from credo.examples import page, paperfold_verdict
from credo.examples.paperfold_fits import QUICK, Fit, Sizes, fit_all
from credo.models.paperfold import paperfold
from credo.plot.sections import sections
from credo.plot.surfaces import surfaces

# "equal" is N(0, 5²) on all eight parameters; "split" is N(0, 1) on weights and γ, and N(0, 10²) on the biases.
PRIORS: dict[str, Any] = {"equal": None, "split": {"*.bias": credo.priors.normal(10.0)}}
PARAMETERS = ("α₁", "α₂", "α₃", "β₁", "β₂", "β₃", "γ₁", "γ₂")
REACH = 2**0.5
# Functions drawn over the plane and along the lines; draws of each member for the table of five points.
NUM_FUNCTIONS, NUM_POINT_DRAWS = 1000, 1000


def main(out: Path, *, prior: Literal["equal", "split"] = "equal", quick: bool = False, seed: int = 0) -> list[Path]:
    """Fit by every method, draw and judge; returns the files written.

    Arguments:
        out: folder for the figures and the verdict.
        prior: "equal" is N(0, 5²) on all eight parameters; "split" is N(0, 1) on weights and γ, N(0, 10²) on biases.
        quick: far too few draws and steps, just to see that it works.
    """
    if prior not in PRIORS:
        raise ValueError(f"prior must be one of {', '.join(PRIORS)}, got {prior!r}")
    out.mkdir(parents=True, exist_ok=True)
    sizes = QUICK if quick else Sizes()
    fits = fit_all(paperfold(prior=PRIORS[prior]), credo.datasets.paperfold(), sizes, seed)
    page.say("Drawing …")
    surface = draw(fits, out, sizes.num_points)
    points = {name: heights(fit.posterior) for name, fit in fits.items()}
    found = paperfold_verdict.compared(points, surface)
    return page.finish(out, paperfold_verdict.written(fits, found, prior=prior, quick=quick))


def draw(fits: dict[str, Fit], out: Path, num_points: int) -> dict[str, np.ndarray]:
    """Draw the three figures; returns the sampled functions over the plane, each (draws, points)."""
    data = credo.datasets.paperfold()
    parameters = {name: flat_parameters(fit.posterior) for name, fit in fits.items()}
    pairs = credo.plot.pairs(parameters, names=PARAMETERS, max_variables=8)
    # The empty cells next to it have room for the legend, so the last column need not grow.
    pairs[0, -1].get_legend().set_in_layout(False)
    credo.plot.save(pairs[0, 0], out / "parameters.png")

    axis = np.linspace(-REACH, REACH, num_points)
    rows, columns = np.meshgrid(axis, axis)
    plane = np.column_stack([rows.ravel(), columns.ravel()])
    lines = fold_lines(axis)
    asked = np.concatenate([plane, *lines.values()])
    drawn = {name: functions(fit.posterior, asked, NUM_FUNCTIONS) for name, fit in fits.items()}
    surface = {name: values[:, : len(plane)] for name, values in drawn.items()}
    moments = {name: (values.mean(axis=0), values.std(axis=0)) for name, values in surface.items()}
    credo.plot.save(surfaces(moments, (rows, columns), data=data)[0, 0], out / "maps.png")

    along = {name: values[:, len(plane) :].reshape(len(values), len(lines), -1) for name, values in drawn.items()}
    credo.plot.save(
        sections(along, lines, known={"fold A": fold_a, "fold B": fold_b}, data=data)[0, 0], out / "lines.png"
    )
    return surface


def fold_lines(axis: np.ndarray) -> dict[str, np.ndarray]:
    """The inputs along the four lines where the sheet may be folded, each (points, 2)."""
    zero = np.zeros_like(axis)
    pairs = {"y = 0": (axis, zero), "x = 0": (zero, axis), "x = y": (axis, axis), "x = −y": (axis, -axis)}
    return {name: np.column_stack(pair) for name, pair in pairs.items()}


def fold_a(x: np.ndarray) -> np.ndarray:
    """z = |x|/√2."""
    return np.abs(x[:, 0]) / REACH


def fold_b(x: np.ndarray) -> np.ndarray:
    """z = 1 − |y|/√2."""
    return 1 - np.abs(x[:, 1]) / REACH


def functions(posterior: Any, x: np.ndarray, num_draws: int | None) -> np.ndarray:
    """z without noise, (draws, rows), of `num_draws` functions, or of all."""
    return np.asarray(posterior.predict(x, num_draws=num_draws).functions, np.float64)


def heights(posterior: Any) -> np.ndarray:
    """z at the five points of the table, (chains or members, draws, 5)."""
    points = paperfold_verdict.POINTS
    if isinstance(posterior, credo.Draws):
        return functions(posterior, points, None).reshape(posterior.num_chains, -1, len(points))
    members = posterior.members if isinstance(posterior, credo.Mixture) else [posterior]
    return np.stack([functions(member, points, NUM_POINT_DRAWS) for member in members])


def flat_parameters(posterior: Any) -> np.ndarray:
    """Draws of the eight parameters as columns, in the order of PARAMETERS."""
    if isinstance(posterior, credo.Draws):
        theta = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), posterior.theta)
    else:
        theta = posterior.sample(random.key(0), NUM_FUNCTIONS)
    paths = ("alpha.kernel", "alpha.bias", "beta.kernel", "beta.bias", "gamma")
    return np.column_stack([np.asarray(theta[path]).reshape(len(theta["gamma"]), -1) for path in paths])
