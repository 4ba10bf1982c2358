"""The marginal p(y | x, D): averaging over draws, streaming over rows, answers given as tables."""

from credo.predictive.marginal import ClassPredictive, Predictive, RegressionPredictive, predictive

__all__ = ["ClassPredictive", "Predictive", "RegressionPredictive", "predictive"]
