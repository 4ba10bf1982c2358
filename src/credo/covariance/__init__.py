"""Covariance roots, what they cover, and the layers behind them: for variational inference, Laplace and SWAG."""

from credo.covariance.blocks import Blocks
from credo.covariance.diagonal import Diagonal
from credo.covariance.joined import Joined
from credo.covariance.kronecker import Kronecker
from credo.covariance.low_rank import LowRank, Shrunk
from credo.covariance.root import Root

__all__ = ["Blocks", "Diagonal", "Joined", "Kronecker", "LowRank", "Root", "Shrunk"]
