"""Covariance roots, what they cover, and the layers behind them: for variational inference, Laplace and SWAG."""
