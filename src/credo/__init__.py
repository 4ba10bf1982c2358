"""credo turns any neural network into one that knows what it does not know.

    data → Model (functional + stochastic) → Method → Posterior → Predictive → scores, plots, reports

Names are loaded when they are first used, so that `import credo` and the command line start at once. What there is,
and where it lives, stands in `__init__.pyi`.
"""

import sys
from _thread import RLock  # of `threading`, which takes longer to import

import lazy_loader

from credo import _concurrency as _concurrency  # notes forks from the first moment on
from credo._version import __version__ as __version__

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_LOADING = RLock()


def __getattr__(name: str) -> object:
    # An import inside an import, `from credo import random`, must not wait: who holds the lock may wait for the outer.
    if sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap":
        raise AttributeError(name)  # Python then imports the module of that name, if there is one
    # Threads that import modules of one package at once get some of them half-made.
    with _LOADING:
        return _load(name)
