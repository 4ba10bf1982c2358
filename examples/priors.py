"""What priors say of functions before there are data: N(0, 1), scales matched to a Gaussian process, and a condition.

    python examples/priors.py --out docs/images

draws twelve functions of each into `priors.png`, the picture of docs/priors.md.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from matplotlib import pyplot
from sklearn.gaussian_process.kernels import RBF

import credo

# Under a condition draws are chosen among fifty times as many: the more, the more there are that keep it.
NUM_DRAWS, NUM_FUNCTIONS = 200, 12
POINTS = np.linspace(-3, 3, 61)[:, None]
NET = credo.networks.MLP([50], out=1, activation="tanh", inputs=1)


def main(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("docs/images"),
    num_steps: Annotated[int, typer.Option(help="Of the search for scales.")] = 500,
) -> None:
    """Draw the picture."""
    matched = credo.priors.matching(NET, RBF(1.0), POINTS[::4], num_steps=num_steps)
    rising = credo.priors.consistent(matched, credo.conditions.monotone({0: "+"}), inputs=POINTS[::6], strength=100.0)
    priors = {"normal(1.0)": credo.priors.normal(1.0), "matching(net, RBF(1.0), x)": matched}
    functions = {name: drawn(prior) for name, prior in priors.items()}
    functions["consistent(matched, monotone({0: '+'}))"] = drawn(rising)
    functions = {"a Gaussian process, RBF(1.0)": process()} | functions
    figure, axes = pyplot.subplots(1, len(functions), figsize=(13, 3), sharex=True, layout="constrained")
    for ax, (name, values) in zip(axes, functions.items(), strict=True):
        ax.plot(POINTS[:, 0], values.T, lw=1.0)
        ax.set_title(name, fontsize=9)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "priors.png", dpi=60)
    typer.echo(
        f"{out / 'priors.png'}: distance to the process {matched.distance_before:.2f} before, "
        f"{matched.distance_after:.2f} after"
    )


def drawn(prior: credo.priors.Prior) -> np.ndarray:
    """Functions of a network under a prior, (functions, points)."""
    model = credo.models.regression(NET, prior=prior, noise=0.1).bind((POINTS, POINTS[:, 0]))
    return model.prior_predict(POINTS, num_draws=NUM_DRAWS).functions[:NUM_FUNCTIONS]


def process() -> np.ndarray:
    """Functions of the Gaussian process."""
    root = np.linalg.cholesky(RBF(1.0)(POINTS) + 1e-6 * np.eye(len(POINTS)))
    return np.random.default_rng(0).normal(size=(NUM_FUNCTIONS, len(POINTS))) @ root.T


if __name__ == "__main__":
    typer.run(main)
