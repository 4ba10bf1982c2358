"""What a method leaves behind: draws, a Gaussian, a flow, masks, a generator, mixtures, students; storage."""

from credo.posterior import pickling
from credo.posterior.base import Posterior, Provenance
from credo.posterior.draws import Draws
from credo.posterior.dropout import Dropout
from credo.posterior.flow import Flow
from credo.posterior.gaussian import Gaussian
from credo.posterior.generator import Generator
from credo.posterior.loading import load
from credo.posterior.mixture import Mixture, PointEnsemble
from credo.posterior.quantised import Quantised
from credo.posterior.saving import save
from credo.posterior.student import Student

__all__ = [
    "Draws",
    "Dropout",
    "Flow",
    "Gaussian",
    "Generator",
    "Mixture",
    "PointEnsemble",
    "Posterior",
    "Provenance",
    "Quantised",
    "Student",
    "load",
    "pickling",
    "save",
]
