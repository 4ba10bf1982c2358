"""From a model and data to a posterior: `fit`, the methods, and the engine that runs them."""

from credo._concurrency import require_own_jax

require_own_jax()  # blackjax computes when it is imported
