"""Evidence for and against a fit, from its draws, traces and functions, with a verdict in words."""

from credo.diagnostics.base import Diagnostics
from credo.diagnostics.chains import ChainDiagnostics, Convergence, convergence, diagnose_chains, ebfmi
from credo.diagnostics.status import Answer, Status

__all__ = [
    "Answer",
    "ChainDiagnostics",
    "Convergence",
    "Diagnostics",
    "Status",
    "convergence",
    "diagnose_chains",
    "ebfmi",
]
