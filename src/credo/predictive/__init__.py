"""The marginal p(y | x, D): averaging over draws, streaming over rows, answers given as tables."""

from credo.predictive.classes import ClassPredictive
from credo.predictive.given import predictive
from credo.predictive.marginal import Predictive, RegressionPredictive

__all__ = ["ClassPredictive", "Predictive", "RegressionPredictive", "predictive"]
