"""Plots: the only importer of matplotlib. Each takes computed values, draws into Axes and returns them."""

from credo.plot.calibration import calibration
from credo.plot.comparison import comparison
from credo.plot.confusion import confusion
from credo.plot.explaining import dependence, importance, unsure
from credo.plot.fans import fan
from credo.plot.graph import graph
from credo.plot.label_errors import label_errors
from credo.plot.learning_curve import learning_curve
from credo.plot.maps import class_map, maps
from credo.plot.objective import objective
from credo.plot.observed import observed
from credo.plot.optimisation import belief, optimisation
from credo.plot.pairs import pairs
from credo.plot.prediction import bands
from credo.plot.selective import risk_coverage, roc
from credo.plot.style import save
from credo.plot.traces import ranks, traces
from credo.plot.trade_off import trade_off

__all__ = [
    "bands",
    "belief",
    "calibration",
    "class_map",
    "comparison",
    "confusion",
    "dependence",
    "fan",
    "graph",
    "importance",
    "label_errors",
    "learning_curve",
    "maps",
    "objective",
    "observed",
    "optimisation",
    "pairs",
    "ranks",
    "risk_coverage",
    "roc",
    "save",
    "traces",
    "trade_off",
    "unsure",
]
