"""`credo.report`: what a network knows, and whether to believe it, on one page that can be sent to anyone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from credo import plot
from credo._files import write_text
from credo.data import Data
from credo.diagnostics import ChainDiagnostics
from credo.evaluation.calibrated import held_out_calibration
from credo.evaluation.check import verdict_of
from credo.evaluation.checks import predicted, rows_for
from credo.evaluation.evaluate import Scores, evaluate
from credo.evaluation.recalibration import Recalibrated
from credo.plot import style
from credo.posterior import Draws, Posterior
from credo.predictive import ClassPredictive, Predictive
from credo.reporting.explained import explained
from credo.reporting.page import Section, page
from credo.reporting.surprises import add_surprises

# Points per side of a map over two inputs, and along one input.
GRID, LINE = 60, 300
# The pair plot shows the functions at this many inputs.
NUM_PAIRS = 4
MAX_TRACE_CHAINS = 8
# More curves of calibration cannot be told apart.
MAX_CLASSES = 6
GRAPH = (
    "The belief network: filled is observed, empty is unknown, dashed is computed, a rectangle is learned, a small "
    "square is a condition of the prior, and a frame is repeated"
)


def report(
    posterior: Posterior | Recalibrated,
    data: Data | tuple[Any, Any],
    path: str | Path,
    *,
    outside: Any = None,
    title: str = "What the network knows",
    scores: Scores | None = None,
    columns: Sequence[tuple[str, str]] = (),
) -> Path:
    """Write one self-contained HTML file: model, settings, diagnostics with advice, scores and plots.

    Arguments:
        posterior: from `credo.fit`.
        data: the test set, credo.Data (names and units go into the plots) or (x, y).
        path: of the file to write; an `.html` name, or a folder to write `report.html` into.
        outside: inputs from elsewhere, to see whether they are detected.
        title: the heading of the page.
        scores: from `credo.evaluate` on the same data, if already computed.
        columns: what was done with each column of a table, (name, words), as in `credo.tables.Encoding.says`.

    Returns the path of the file.

    >>> import tempfile
    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     credo.report(posterior, credo.datasets.gap(20, seed=1), folder).name
    'report.html'
    """
    test = rows_for(posterior, data)
    target = Path(path)
    target = target / "report.html" if target.is_dir() or not target.suffix else target
    if target.suffix not in (".html", ".htm"):
        raise ValueError(f"path is {str(path)!r}; name an .html file, or a folder")
    found = scores or evaluate(posterior, test, outside=outside)
    seen = posterior.about(found.of)
    prediction = predicted(seen, test)
    made = posterior.provenance
    lead = (
        f"{posterior.model.num_parameters:,} parameters, fitted to {made.num_data:,} rows by {made.method['name']} in "
        f"{made.seconds:.1f} s; judged on {found.rows_judged}."
    )
    sections = [
        _glance(posterior, found, prediction, test),
        _scores(found, prediction, test.classes),
        _predictions(seen, prediction, test),
        *filter(None, [explained(seen, test)]),
        _diagnostics(posterior),
        _model(posterior),
        *([_columns(columns)] if columns else []),
        _settings(posterior),
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, page(title, lead, sections))
    return target


def _glance(posterior: Posterior | Recalibrated, scores: Scores, prediction: Predictive, test: Data) -> Section:
    names = ("accuracy", "nll", "ece") if scores.task == "classification" else ("rmse", "lpd", "coverage_95")
    section = Section("At a glance")
    section.cards(
        (f"{scores[name].value:.3g}", f"{scores.label(name)}, ± {scores[name].standard_error:.2g}") for name in names
    )
    section.verdict(scores.verdict)
    rows = held_out_calibration(prediction, test.outcomes, how=scores.rows_judged)
    found = verdict_of(posterior, rows)
    section.verdict(f"May the uncertainties be trusted? {found.status.words.capitalize()}.", found.status)
    section.table(*found.cells())
    for words in found.todo:
        section.text(words)
    return section


def _scores(scores: Scores, prediction: Predictive, names: Sequence[str] | None) -> Section:
    section = Section("Scores and calibration")
    section.table(*scores.cells(), numbers=scores.numbers)
    section.text("Standard errors are from a bootstrap over test rows.")
    if scores.baselines:
        section.text("Beside it what knows less: a constant, and a line in the inputs, both fitted to the same rows.")
    if scores.site_judged:
        section.text(f"What is predicted is not what was observed; {scores.site_judged}.")
    _draw(
        section, plot.calibration(scores.calibration), f"Calibration: {scores.calibration.events}. {scores.calibration}"
    )
    if scores.task == "regression":
        caption = "Share of targets below each predicted quantile, and inside each central interval"
        _draw(section, plot.calibration({name: scores.curves[name] for name in ("quantile", "interval")}), caption)
    elif scores.confusion is not None and isinstance(prediction, ClassPredictive):
        caption = "All classes together, one against the rest"
        _draw(section, plot.calibration(scores.curves["pooled"]), caption)
        shown = style.class_names(names, prediction.probs.shape[1])[:MAX_CLASSES]
        by_class = {name: scores.curves[f"class {number}"] for number, name in enumerate(shown)}
        _draw(section, plot.calibration(by_class), "Each class against the rest")
        _draw(section, plot.confusion(scores.confusion, names=names), "True classes by predicted label")
        _draw(
            section,
            plot.fan(prediction, names=names),
            "Mean class probabilities; sd within a row over draws, and across rows",
        )
    caption = f"Risk if only the most certain rows are answered (by {scores.risk_coverage.by.replace('_', ' ')})"
    _draw(section, plot.risk_coverage(scores.risk_coverage), caption)
    if scores.detection:
        _draw(section, plot.roc(scores.detection), "Foreign inputs detected by their uncertainty")
    return section


def _predictions(posterior: Posterior | Recalibrated, prediction: Predictive, data: Data) -> Section:
    """What can be drawn depends on the number of inputs and outputs."""
    section = Section("Predictions")
    num_inputs = data.x.shape[1] if data.x.ndim == 2 else 0
    classes = isinstance(prediction, ClassPredictive)
    if num_inputs == 1 and not classes and data.y.ndim == 1:
        x = _range(data.x[:, 0], LINE)
        ax = plot.bands(posterior.predict(x), x, held_out=data)
        _draw(section, ax, "Prediction with its epistemic and aleatoric parts")
    elif num_inputs == 2 and (classes or data.y.ndim == 1):
        first, second = np.meshgrid(_range(data.x[:, 0], GRID), _range(data.x[:, 1], GRID))
        over = posterior.predict(np.column_stack([first.ravel(), second.ravel()]))
        draw = plot.class_map if classes else plot.maps
        for show in ("epistemic", "aleatoric") if classes else ("mean", "std", "epistemic"):
            _draw(section, draw(over, (first, second), show=show, data=data), f"{show.capitalize()} over the inputs")
    if not classes:
        _draw(section, plot.observed(prediction, data), "Predicted against observed, with two predictive sds")
    add_surprises(section, prediction, data)
    section.text(
        "Epistemic: what the parameters leave open and more data would settle. Aleatoric: the noise that remains."
    )
    return section


def _range(values: np.ndarray, num: int) -> np.ndarray:
    """A little beyond the data, where epistemic uncertainty shows."""
    margin = 0.3 * (np.ptp(values) or 1.0)
    return np.linspace(values.min() - margin, values.max() + margin, num)


def _diagnostics(posterior: Posterior | Recalibrated) -> Section:
    section = Section("Diagnostics")
    found = posterior.diagnostics
    section.verdict(found.verdict)
    if isinstance(found, ChainDiagnostics):
        _convergence(section, found)
    else:
        section.code(str(found))
    if isinstance(posterior, Draws):
        _draw_chains(section, posterior)
    _draw_objective(section, getattr(posterior, "trace", None) or {})
    return section


def _draw_objective(section: Section, trace: dict[str, np.ndarray]) -> None:
    for name, label in (("elbo", "ELBO"), ("log_joint", "log joint")):
        if name in trace and trace[name].shape[1] > 1:
            _draw(section, plot.objective(trace[name], label=label), f"{label} by step: raw and smoothed")
            return


def _convergence(section: Section, found: ChainDiagnostics) -> None:
    rows = [
        (name, f"{one.rhat:.3f}", f"{one.ess_bulk:.0f}", f"{one.ess_tail:.0f}", f"{one.num_quantities}")
        for name, one in (("functions", found.functions), ("weights", found.weights))
        if one is not None
    ]
    if rows:
        section.table(("worst of", "R-hat", "bulk ESS", "tail ESS", "quantities"), rows, numbers=(1, 2, 3, 4))
        section.text("Hidden units can be swapped without changing the network: trust the functions, not the weights.")
    figures = {"acceptance": found.acceptance, "divergences": found.num_divergences, "E-BFMI": found.ebfmi}
    shown = [f"{name} {value:.3g}" for name, value in figures.items() if value is not None]
    if shown:
        section.text("Sampler: " + ", ".join(shown) + ".")


def _draw_chains(section: Section, posterior: Draws) -> None:
    if posterior.num_draws >= 4 and posterior.probes is not None:
        functions = posterior.predict(posterior.probes).functions
        # The last of several outputs: class 1 of two.
        last = functions.reshape(posterior.num_chains, posterior.num_draws, len(posterior.probes), -1)[..., -1]
        widest = last[:MAX_TRACE_CHAINS, :, np.argmax(last.std(axis=(0, 1)))]
        _draw(section, plot.traces(widest, label="f at a probe"), "The function where it varies most, draw by draw")
        _draw(section, plot.ranks(widest), "Ranks of each chain among all draws: flat where chains agree")
        chosen = np.unique(np.linspace(0, last.shape[2] - 1, NUM_PAIRS).astype(int))
        if len(chosen) > 1:
            pairs = plot.pairs({f"f(probe {index})": last[..., index] for index in chosen})
            _draw(section, pairs.flat[0], "The function at several inputs, pair by pair")


def _model(posterior: Posterior | Recalibrated) -> Section:
    section = Section("Model")
    graph = posterior.model.graph()
    _draw(section, plot.graph(graph), GRAPH)
    section.code(str(graph))
    section.code(str(posterior.model.describe()))
    return section


def _columns(columns: Sequence[tuple[str, str]]) -> Section:
    section = Section("Columns")
    section.table(("column", "what was done with it"), columns)
    return section


def _settings(posterior: Posterior | Recalibrated) -> Section:
    section = Section("Settings")
    section.table(*posterior.provenance.cells())
    return section


def _draw(section: Section, ax: Any, caption: str) -> None:
    """Embed what a function of `credo.plot` has returned."""
    section.figure(style.svg(ax), caption)
