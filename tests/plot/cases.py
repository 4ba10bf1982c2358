"""One small example of every plot: a function from Axes (or None) to Axes."""

from types import SimpleNamespace

import numpy as np

from credo import explain, plot
from credo.data import Data
from credo.evaluation.calibration import calibration_curve, calibration_curves
from credo.learning.evaluations import History
from credo.learning.optimum import Optimum
from credo.learning.space import Range, Space
from credo.models.graph import Graph, Node
from credo.predictive.tabulated import from_normal, from_probs
from credo.simplifying.trade_off import Option, TradeOff

RNG = np.random.default_rng(0)
GRID = tuple(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(0, 3, 4)))
LINE = np.linspace(-1, 1, 7)
ONE = Data(LINE, LINE**2, names=["dose"], units=["mg"], target="response", unit="s")
TWO = Data(
    RNG.normal(size=(9, 2)), RNG.normal(size=9), names=["water", "age"], units=["kg", "d"], target="f", unit="MPa"
)
LABELLED = Data(TWO.x, np.arange(9) % 3, names=["water", "age"], units=["kg", "d"])

CURVE = from_normal(RNG.normal(size=(3, 7)), 0.5)
PLANE = from_normal(RNG.normal(size=(3, 20)), 0.5)
CLASSES = from_probs(RNG.dirichlet(np.ones(3), size=(4, 20)))
LABELS = RNG.integers(0, 3, 20)
RESIDUALS = calibration_curve(from_normal(np.zeros(1200), 1.0), RNG.normal(size=1200))
EVENTS = calibration_curve(CLASSES, LABELS)

SHARE = np.linspace(0.1, 1, 10)
RISK = SimpleNamespace(coverage=SHARE, risk=SHARE**2, oracle=SHARE**3, area=0.3, risk_name="error rate")
ROC = SimpleNamespace(
    false_positive_rate=SHARE, true_positive_rate=np.sqrt(SHARE), auroc=0.7, fpr95=0.9025, by="mutual information"
)
IMAGES = Data(RNG.normal(size=(20, 4, 4)), LABELS)
KNOWN = SimpleNamespace(predict=lambda x, num_draws: from_normal(np.stack([x[:, 0] + x[:, 1]] * 2), 0.5))
EXPLAINED = explain(
    KNOWN, Data(RNG.normal(size=(40, 2)), RNG.normal(size=40), names=["$ a", "b"], target="f", unit="m")
)
OF_LEVELS = SimpleNamespace(
    predict=lambda x, num_draws: from_probs(np.stack([np.tile([0.2, 0.3, 0.5], (len(x), 1))] * 2))
)
CLASSIFIED = explain(OF_LEVELS, Data(np.arange(40) % 2, np.arange(40) % 3, classes=["red", "green", "blue"]))
WRONG = np.where(np.arange(20) < 3, np.nan, RNG.uniform(size=20))
CHAINS = RNG.normal(size=(2, 60))
RUNS = {"bald": [{10: 0.5, 20: 0.9}, {10: 0.6, 20: 0.97}], "random": [{10: 0.4, 20: 0.7, 30: 0.8}]}
TRADE_OFF = TradeOff(
    {"full": Option(10**6, 90.0, -1.0, 0.0, 0.0, 0.0, 0.9), "student": Option(10**4, 2.0, -1.1, 0.1, 0.02, 0.1, 0.9)},
    {},
)


def network(num_sites: int = 3) -> Graph:
    """A hierarchical scale, weights that feed y, and noise."""
    sites = [f"hidden.{number}.kernel" for number in range(num_sites)]
    nodes = [Node("x", "input"), Node("tau", "latent", "HalfCauchy"), Node("noise", "latent", "HalfNormal")]
    nodes += [Node(site, "latent", "Normal") for site in sites] + [Node("y", "observed", "Normal")]
    edges = [("tau", site) for site in sites] + [(site, "y") for site in sites] + [("noise", "y"), ("x", "y")]
    return Graph(tuple(nodes), tuple(edges), {"data": ("x", "y")}, {"data": "N"})


def search(names: tuple[str, ...] | None = ("dose",), num: int = 1) -> Optimum:
    """A search over one number, with a posterior that is drawn as it is."""
    space = Space(tuple(Range(0.1, 10.0, log=True) for _ in range(num)), names)
    points = space.decode(LINE[:, None].repeat(num, axis=1))
    history = History(points, np.append(LINE[1:] ** 2, np.nan), np.arange(7))
    posterior = SimpleNamespace(predict=lambda rows: from_normal(np.zeros((3, len(rows))), 0.5))
    return Optimum(points[2], float(LINE[3] ** 2), history, posterior, "minimise", space)


CASES = {
    "belief": lambda ax: plot.belief(search(), ax=ax),
    "optimisation": lambda ax: plot.optimisation(search(), ax=ax),
    "optimisation, several": lambda ax: plot.optimisation(
        {"credo": [search(), search(None)], "random": [LINE[::-1] + 2, LINE[::-1] + 3]}, optimum=-0.1, ax=ax
    ),
    "bands": lambda ax: plot.bands(CURVE, LINE, data=ONE, held_out=ONE, ax=ax),
    "class_map": lambda ax: plot.class_map(CLASSES, GRID, data=LABELLED, ax=ax),
    "maps mean": lambda ax: plot.maps(PLANE, GRID, data=TWO, ax=ax),
    "maps epistemic": lambda ax: plot.maps(PLANE, GRID, show="epistemic", data=TWO, ax=ax),
    "calibration of classes": lambda ax: plot.calibration(EVENTS, ax=ax),
    "calibration of regression": lambda ax: plot.calibration(RESIDUALS, label="NUTS", ax=ax),
    "calibration, several": lambda ax: plot.calibration(calibration_curves(CLASSES, LABELS), ax=ax),
    "fan": lambda ax: plot.fan(CLASSES, names=["setosa", "versicolor", "virginica"], ax=ax),
    "risk_coverage": lambda ax: plot.risk_coverage(RISK, ax=ax),
    "risk_coverage, several": lambda ax: plot.risk_coverage({"a": RISK, "b": RISK}, ax=ax),
    "roc": lambda ax: plot.roc(ROC, ax=ax),
    "trade_off": lambda ax: plot.trade_off(TRADE_OFF, ax=ax),
    "learning_curve": lambda ax: plot.learning_curve(RUNS, level=0.95, ax=ax),
    "roc, several": lambda ax: plot.roc({"NUTS": ROC, "MAP": ROC}, ax=ax),
    "objective": lambda ax: plot.objective(CHAINS[0], ax=ax),
    "objective of chains": lambda ax: plot.objective(CHAINS, label="log joint", window=7, ax=ax),
    "traces": lambda ax: plot.traces(CHAINS, ax=ax),
    "ranks": lambda ax: plot.ranks(CHAINS, ax=ax),
    "confusion": lambda ax: plot.confusion(np.array([[5, 1], [0, 3]]), names=["no", "yes"], ax=ax),
    "label_errors": lambda ax: plot.label_errors(WRONG, IMAGES, CLASSES, num=5, ax=ax),
    "label_errors of numbers": lambda ax: plot.label_errors(LINE**2, ONE, CURVE, ax=ax),
    "importance": lambda ax: plot.importance(EXPLAINED, ax=ax),
    "dependence": lambda ax: plot.dependence(EXPLAINED, "b", ax=ax),
    "dependence of classes on levels": lambda ax: plot.dependence(CLASSIFIED, "x1", ax=ax),
    "unsure": lambda ax: plot.unsure(EXPLAINED.rows[0], ax=ax),
    "graph": lambda ax: plot.graph(network(), ax=ax),
}
