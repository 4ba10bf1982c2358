"""Every method by its name."""

from collections.abc import Mapping

from credo._text import nearest
from credo.inference.closed_form.closed_form import ClosedForm
from credo.inference.dropout.mc_dropout import MCDropout
from credo.inference.ensemble.deep_ensemble import DeepEnsemble
from credo.inference.laplace.laplace import Laplace
from credo.inference.mcmc.hmc import HMC
from credo.inference.mcmc.mclmc import MCLMC
from credo.inference.mcmc.metropolis import Metropolis
from credo.inference.mcmc.nuts import NUTS
from credo.inference.mcmc.tempering import ParallelTempering
from credo.inference.method import Method
from credo.inference.point.map import MAP, MLE
from credo.inference.sgmcmc.sghmc import SGHMC
from credo.inference.sgmcmc.sgld import SGLD
from credo.inference.sgmcmc.sgnht import SGNHT
from credo.inference.variational.ivon import IVON
from credo.inference.variational.swag import SWAG
from credo.inference.variational.vi import BayesByBackprop

# To add a method, write its file and its line here.
METHODS: Mapping[str, type[Method]] = {
    "mle": MLE,
    "map": MAP,
    "metropolis": Metropolis,
    "hmc": HMC,
    "nuts": NUTS,
    "mclmc": MCLMC,
    "parallel_tempering": ParallelTempering,
    "sgld": SGLD,
    "sghmc": SGHMC,
    "sgnht": SGNHT,
    "swag": SWAG,
    "laplace": Laplace,
    "closed_form": ClosedForm,
    "mc_dropout": MCDropout,
    "bayes_by_backprop": BayesByBackprop,
    "ivon": IVON,
    "deep_ensemble": DeepEnsemble,
}
# What people call them too.
ALIASES = {
    "ensemble": "deep_ensemble",
    "vi": "bayes_by_backprop",
    "bbb": "bayes_by_backprop",
    "dropout": "mc_dropout",
}


def as_method(method: Method | str) -> Method:
    """A method by its name, with its default settings; or the method itself.

    >>> as_method("ensemble").members
    5
    """
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise ValueError(f"method is the class {method.__name__}; make an instance of it: credo.{method.__name__}()")
    return METHODS[method_name(method)]()


def method_name(text: str) -> str:
    """The name of a method in the registry, from a name that people use for it.

    >>> method_name("Deep ensemble")
    'deep_ensemble'
    """
    name = "_".join(str(text).lower().replace("-", " ").split())
    name = ALIASES.get(name, name)
    if name not in METHODS:
        known = ["auto", *METHODS, *ALIASES]
        raise ValueError(f"unknown method {text!r}{nearest(name, known)}; known are {', '.join(known)}")
    return name


def name_of(method: Method) -> str:
    """The name of a method in the registry.

    >>> name_of(MAP())
    'map'
    """
    found = next((name for name, kind in METHODS.items() if kind is type(method)), None)
    if found is None:
        raise ValueError(f"{type(method).__name__} is not in the registry, which has {', '.join(METHODS)}")
    return found
