"""Covariance roots, what they cover, and the layers behind them: for variational inference, Laplace and SWAG."""

from credo.covariance.blocks import Blocks
from credo.covariance.diagonal import Diagonal, LowRank, Shrunk
from credo.covariance.kronecker import Kronecker
from credo.covariance.root import Joined, Root

__all__ = ["Blocks", "Diagonal", "Joined", "Kronecker", "LowRank", "Root", "Shrunk"]
