"""`credo demo`: a regression and a classification on embedded data, from fit to figures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from credo.data import Data
    from credo.inference.nuts import NUTS
    from credo.posterior import Posterior
    from credo.predictive import Predictive


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("credo-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same bits.")] = 0,
    quick: Annotated[bool, typer.Option(help="Far too few draws, to see that it works.")] = False,
) -> None:
    """Fit a regression and a classification by NUTS on embedded data: diagnose, predict, a table, figures."""
    from rich.console import Console

    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    regression, gap = _regression(console, out, seed, quick)
    classification, moons = _classification(console, out, seed, quick)
    _table(console, (regression, gap), (classification, moons))
    console.print(f"Figures are in [bold]{out.resolve()}[/]: regression.png, chains.png, classification.png")


def _regression(console: "Console", out: Path, seed: int, quick: bool) -> "tuple[Posterior, Data]":
    import numpy as np

    import credo

    console.rule("Regression: noisy points, and a hole between them")
    data = credo.datasets.gap(seed=seed)
    model = credo.models.regression(credo.networks.MLP([50], out=1, activation="tanh"), prior=credo.priors.normal(1.0))
    posterior = credo.fit(model, data, _sampler(quick), seed=seed)
    console.print(str(posterior.diagnostics))
    x = np.linspace(data.x.min() - 1, data.x.max() + 1, 300)
    ax = credo.plot.bands(posterior.predict(x), x, data=data)
    ax.set_title("Between and beyond the data the network says: I do not know")
    credo.plot.save(ax, out / "regression.png")
    # In the middle of the hole the functions differ most: there the chains must agree about how much.
    middle = posterior.predict(np.zeros((1, 1))).functions.reshape(_sampler(quick).num_chains, -1)
    credo.plot.save(credo.plot.traces(middle, label="f(0)"), out / "chains.png")
    return posterior, data


def _classification(console: "Console", out: Path, seed: int, quick: bool) -> "tuple[Posterior, Data]":
    import numpy as np

    import credo

    console.rule("Classification: two moons")
    data = credo.datasets.moons(seed=seed)
    model = credo.models.classification(credo.networks.MLP([10], out=2, activation="tanh"))
    posterior = credo.fit(model, data, _sampler(quick), seed=seed)
    console.print(str(posterior.diagnostics))
    low, high = data.x.min(0) - 1, data.x.max(0) + 1
    grid = np.meshgrid(np.linspace(low[0], high[0], 90), np.linspace(low[1], high[1], 70))
    predictive = posterior.predict(np.column_stack([axis.ravel() for axis in grid]), num_draws=500)
    ax = credo.plot.class_map(predictive, (grid[0], grid[1]), show="epistemic", data=data)
    ax.set_title("Epistemic uncertainty grows away from the data")
    credo.plot.save(ax, out / "classification.png")
    return posterior, data


def _sampler(quick: bool) -> "NUTS":
    import credo

    if quick:
        return credo.NUTS(num_samples=20, num_warmup=30, num_chains=2, max_depth=5)
    return credo.NUTS(num_samples=400, num_warmup=400)


def _table(console: "Console", regression: "tuple[Posterior, Data]", classification: "tuple[Posterior, Data]") -> None:
    """What the two networks know, on the training data and far away from it."""
    import numpy as np
    from rich.table import Table

    table = Table(title="What they know", title_justify="left")
    for column in ("problem", "where", "accuracy", "epistemic", "aleatoric"):
        table.add_column(column, justify="left" if column in ("problem", "where") else "right")
    posterior, data = regression
    for where, x in (
        ("at the data", data.x),
        ("in the hole", np.zeros((1, 1))),
        ("far away", np.full((1, 1), 6.0)),
    ):
        prediction = posterior.predict(x)
        error = f"RMSE {np.sqrt(np.mean((prediction.mean - data.y) ** 2)):.3f}" if len(x) == data.size else ""
        table.add_row("regression", where, error, *_sds(prediction))
    posterior, data = classification
    for where, x in (("at the data", data.x), ("far away", np.array([[4.0, 4.0], [-4.0, -4.0]]))):
        prediction = posterior.predict(x)
        correct = f"{np.mean(prediction.label == data.y):.1%} right" if len(x) == data.size else ""
        parts = (prediction.epistemic.mean(), prediction.aleatoric.mean())
        table.add_row("classification", where, correct, *(f"{part:.3f} nats" for part in parts))
    console.print(table)


def _sds(prediction: "Predictive") -> tuple[str, ...]:
    import numpy as np

    return tuple(f"sd {np.sqrt(np.mean(getattr(prediction, part))):.3f}" for part in ("epistemic", "aleatoric"))
