"""What a method leaves behind: draws, a Gaussian, a flow, masks, mixtures, students; saving and loading."""

from credo.posterior.base import Posterior, Provenance
from credo.posterior.draws import Draws
from credo.posterior.dropout import Dropout
from credo.posterior.flow import Flow
from credo.posterior.gaussian import Gaussian
from credo.posterior.loading import load
from credo.posterior.mixture import Mixture, PointEnsemble
from credo.posterior.saving import save
from credo.posterior.student import Student

__all__ = [
    "Draws",
    "Dropout",
    "Flow",
    "Gaussian",
    "Mixture",
    "PointEnsemble",
    "Posterior",
    "Provenance",
    "Student",
    "load",
    "save",
]
