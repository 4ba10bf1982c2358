"""ArviZ, imported without the notice about its next major version that it prints to every user."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz

__all__ = ["arviz"]
