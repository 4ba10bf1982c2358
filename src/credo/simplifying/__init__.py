"""Simplifying: a posterior that is cheaper to keep and to use, and what that costs. Paper, "Simplifying BNNs"."""
