"""credo turns any neural network into one that knows what it does not know.

    data → Model (functional + stochastic) → Method → Posterior → Predictive → scores, plots, reports

Names are loaded when they are first used, so that `import credo` and the command line start at once. What there is,
and where it lives, stands in `__init__.pyi`.
"""

import lazy_loader

from credo import _concurrency as _concurrency  # notes forks from the first moment on
from credo._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
