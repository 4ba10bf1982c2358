"""credo turns any neural network into one that knows what it does not know.

    data → Model (functional + stochastic) → Method → Posterior → Predictive → scores, plots, reports

Names are loaded when they are first used, so that `import credo` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from credo._version import __version__

if TYPE_CHECKING:
    from credo import datasets, evaluation, models, networks, plot, runs, sklearn, tables
    from credo.data import Data
    from credo.dropout import Dropout
    from credo.evaluation.compare import compare
    from credo.evaluation.conformal import conformal
    from credo.evaluation.evaluate import Scores, evaluate
    from credo.evaluation.recalibration import recalibrate
    from credo.evaluation.report import report
    from credo.inference import schedules
    from credo.inference.auto import Choice, choose
    from credo.inference.dropout import MCDropout
    from credo.inference.engine import NonFiniteError
    from credo.inference.ensemble import DeepEnsemble
    from credo.inference.fit import fit
    from credo.inference.hmc import HMC
    from credo.inference.ivon import IVON
    from credo.inference.laplace import Laplace
    from credo.inference.mclmc import MCLMC
    from credo.inference.metropolis import Metropolis, MetropolisHastings, Proposal
    from credo.inference.nuts import NUTS
    from credo.inference.point import MAP, MLE
    from credo.inference.sghmc import SGHMC
    from credo.inference.sgld import SGLD
    from credo.inference.swag import SWAG
    from credo.inference.tempering import ParallelTempering
    from credo.inference.vi import BayesByBackprop
    from credo.inference.vi import BayesByBackprop as VI
    from credo.mixture import Mixture
    from credo.models import priors
    from credo.models.program import Model
    from credo.posterior import Draws, Flow, Gaussian, Posterior
    from credo.predictive import Predictive
    from credo.storage import load
    from credo.tabulated import from_normal, from_probs

_HOME = {
    "BayesByBackprop": "credo.inference.vi",
    "IVON": "credo.inference.ivon",
    "Flow": "credo.posterior",
    "Gaussian": "credo.posterior",
    "Choice": "credo.inference.auto",
    "Data": "credo.data",
    "DeepEnsemble": "credo.inference.ensemble",
    "Draws": "credo.posterior",
    "Dropout": "credo.dropout",
    "HMC": "credo.inference.hmc",
    "Laplace": "credo.inference.laplace",
    "MAP": "credo.inference.point",
    "MCDropout": "credo.inference.dropout",
    "MCLMC": "credo.inference.mclmc",
    "MLE": "credo.inference.point",
    "Metropolis": "credo.inference.metropolis",
    "MetropolisHastings": "credo.inference.metropolis",
    "Mixture": "credo.mixture",
    "Model": "credo.models.program",
    "NUTS": "credo.inference.nuts",
    "NonFiniteError": "credo.inference.engine",
    "ParallelTempering": "credo.inference.tempering",
    "Posterior": "credo.posterior",
    "Predictive": "credo.predictive",
    "Proposal": "credo.inference.metropolis",
    "SGHMC": "credo.inference.sghmc",
    "SGLD": "credo.inference.sgld",
    "SWAG": "credo.inference.swag",
    "Scores": "credo.evaluation.evaluate",
    "choose": "credo.inference.auto",
    "compare": "credo.evaluation.compare",
    "conformal": "credo.evaluation.conformal",
    "evaluate": "credo.evaluation.evaluate",
    "fit": "credo.inference.fit",
    "from_normal": "credo.tabulated",
    "from_probs": "credo.tabulated",
    "load": "credo.storage",
    "recalibrate": "credo.evaluation.recalibration",
    "report": "credo.evaluation.report",
}
_ALIASES = {"VI": "BayesByBackprop"}
_MODULES = {
    "datasets": "credo.datasets",
    "evaluation": "credo.evaluation",
    "models": "credo.models",
    "networks": "credo.networks",
    "plot": "credo.plot",
    "priors": "credo.models.priors",
    "runs": "credo.runs",
    "schedules": "credo.inference.schedules",
    "sklearn": "credo.sklearn",
    "tables": "credo.tables",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _ALIASES:
        name = _ALIASES[name]
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'credo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOME, *_ALIASES, *_MODULES, "__version__"])


__all__ = [
    "HMC",
    "IVON",
    "MAP",
    "MCLMC",
    "MLE",
    "NUTS",
    "SGHMC",
    "SGLD",
    "SWAG",
    "VI",
    "BayesByBackprop",
    "Choice",
    "Data",
    "DeepEnsemble",
    "Draws",
    "Dropout",
    "Flow",
    "Gaussian",
    "Laplace",
    "MCDropout",
    "Metropolis",
    "MetropolisHastings",
    "Mixture",
    "Model",
    "NonFiniteError",
    "ParallelTempering",
    "Posterior",
    "Predictive",
    "Proposal",
    "Scores",
    "__version__",
    "choose",
    "compare",
    "conformal",
    "datasets",
    "evaluate",
    "evaluation",
    "fit",
    "from_normal",
    "from_probs",
    "load",
    "models",
    "networks",
    "plot",
    "priors",
    "recalibrate",
    "report",
    "runs",
    "schedules",
    "sklearn",
    "tables",
]
