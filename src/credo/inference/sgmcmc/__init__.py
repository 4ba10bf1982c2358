"""Markov chains from stochastic gradients, and the schedules of their steps."""

from credo.inference.sgmcmc import schedules

__all__ = ["schedules"]
