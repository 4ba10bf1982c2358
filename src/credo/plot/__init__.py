"""Plots: the only importer of matplotlib. Each takes computed values, draws into Axes and returns them."""

from credo.plot.prediction import bands, class_map
from credo.plot.style import save
from credo.plot.traces import ranks, traces

__all__ = ["bands", "class_map", "ranks", "save", "traces"]
