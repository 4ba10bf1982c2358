"""`credo demo`: a regression and a classification on embedded data, from fit to report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from credo.cli.voice import Seed

if TYPE_CHECKING:
    from rich.console import Console

    from credo.data import Data
    from credo.evaluation.evaluate import Scores
    from credo.inference.mcmc.nuts import NUTS
    from credo.models.program import Model
    from credo.posterior import Posterior


NUM_CHAINS = 4


class Fitted(NamedTuple):
    """A fit, its training and test data, and its scores."""

    name: str
    posterior: "Posterior"
    train: "Data"
    test: "Data"
    scores: "Scores"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures and the reports.")] = Path("credo-demo"),
    seed: Seed = 0,
    quick: Annotated[bool, typer.Option(help="Far too few draws, just to see that it works.")] = False,
) -> None:
    """Fit a regression and a classification by NUTS on embedded data: diagnose, judge, a table, figures, reports."""
    from rich.console import Console
    from rich.markup import escape

    import credo  # lazy: imports JAX

    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    # The test rows come from the same source, with another seed.
    console.rule("Regression: noisy points, and a hole between them")
    net = credo.networks.MLP([50], out=1, activation="tanh")
    model = credo.models.regression(net, prior=credo.priors.normal(1.0))
    sets = credo.datasets.gap(seed=seed), credo.datasets.gap(seed=seed + 1)
    regression = _fit(console, "regression", model, sets, _sampler(quick), seed)
    _draw_regression(regression, out)

    console.rule("Classification: two moons")
    model = credo.models.classification(credo.networks.MLP([10], out=2, activation="tanh"))
    sets = credo.datasets.moons(seed=seed), credo.datasets.moons(seed=seed + 1)
    classification = _fit(console, "classification", model, sets, _sampler(quick), seed)
    _draw_classification(classification, out)

    console.rule("What they know")
    _table(console, regression, classification)
    figures = ", ".join(sorted(path.name for path in out.glob("*.png")))
    console.print(f"Figures are in [bold]{escape(str(out.resolve()))}[/]: {figures}", soft_wrap=True)
    for fitted in (regression, classification):
        title = f"Demo: {fitted.name}"
        path = credo.report(
            fitted.posterior, fitted.test, out / f"{fitted.name}.html", title=title, scores=fitted.scores
        )
        console.print(f"Report to open in a browser: [bold]{escape(str(path.resolve()))}[/]", soft_wrap=True)


def _fit(
    console: "Console", name: str, model: "Model", sets: "tuple[Data, Data]", sampler: "NUTS", seed: int
) -> Fitted:
    import credo

    posterior = credo.fit(model, sets[0], sampler, seed=seed)
    console.print(str(posterior.diagnostics))
    return Fitted(name, posterior, *sets, credo.evaluate(posterior, sets[1]))


def _draw_regression(fitted: Fitted, out: Path) -> None:
    import numpy as np

    import credo

    data, posterior = fitted.train, fitted.posterior
    x = np.linspace(data.x.min() - 1, data.x.max() + 1, 300)
    ax = credo.plot.bands(posterior.predict(x), x, data=data)
    ax.set_title("Between and beyond the data the network says: I do not know")
    credo.plot.save(ax, out / "regression.png")
    # The functions differ most in the middle of the hole: the chains must agree about how much.
    middle = posterior.predict(np.zeros((1, 1))).functions.reshape(NUM_CHAINS, -1)
    credo.plot.save(credo.plot.traces(middle, label="f(0)"), out / "chains.png")
    credo.plot.save(credo.plot.calibration(fitted.scores.calibration), out / "calibration.png")


def _draw_classification(fitted: Fitted, out: Path) -> None:
    import numpy as np

    import credo

    data = fitted.train
    low, high = data.x.min(0) - 1, data.x.max(0) + 1
    grid = np.meshgrid(np.linspace(low[0], high[0], 90), np.linspace(low[1], high[1], 70))
    predictive = fitted.posterior.predict(np.column_stack([axis.ravel() for axis in grid]), num_draws=500)
    ax = credo.plot.class_map(predictive, (grid[0], grid[1]), show="epistemic", data=data)
    ax.set_title("Epistemic uncertainty grows away from the data")
    credo.plot.save(ax, out / "classification.png")


def _sampler(quick: bool) -> "NUTS":
    import credo

    if quick:
        return credo.NUTS(num_samples=20, num_warmup=30, num_chains=NUM_CHAINS, max_depth=5)
    return credo.NUTS(num_samples=400, num_warmup=400, num_chains=NUM_CHAINS)


def _table(console: "Console", regression: Fitted, classification: Fitted) -> None:
    """Print how right the networks are on new rows, and how uncertain there and far away."""
    import numpy as np
    from rich.table import Table

    table = Table()
    for column in ("problem", "where", "score", "epistemic", "aleatoric"):
        table.add_column(column, justify="left" if column in ("problem", "where") else "right")
    places = (
        (regression, {"in the hole": np.zeros((1, 1)), "far away": np.full((1, 1), 6.0)}),
        (classification, {"far away": np.array([[4.0, 4.0], [-4.0, -4.0]])}),
    )
    for fitted, elsewhere in places:
        score = "rmse" if fitted.name == "regression" else "accuracy"
        judged = f"{fitted.scores.label(score)} {fitted.scores[score].value:.3f}"
        for where, x in {"new rows": fitted.test.x, **elsewhere}.items():
            table.add_row(fitted.name, where, judged if where == "new rows" else "", *_parts(fitted, x))
    console.print(table)
    for fitted, _ in places:
        console.print(f"{fitted.name.capitalize()} on new rows: {fitted.scores.verdict}")


def _parts(fitted: Fitted, x: object) -> tuple[str, ...]:
    """The two uncertainties at x: standard deviations for a regression, nats for classes."""
    import numpy as np

    prediction = fitted.posterior.predict(x)
    means = [np.mean(getattr(prediction, part)) for part in ("epistemic", "aleatoric")]
    if fitted.name == "regression":
        return tuple(f"sd {np.sqrt(mean):.3f}" for mean in means)
    return tuple(f"{mean:.3f} nats" for mean in means)
