"""Stochastic models: NumPyro programs, their priors and likelihoods, one file per graphical model."""

from credo.models import augmentations, conditions, pickling, pretexts
from credo.models.activations import activations
from credo.models.augmented import augmented
from credo.models.classification import classification
from credo.models.counts import counts
from credo.models.found import found
from credo.models.last_layer import last_layer
from credo.models.noisy_labels import noisy_labels
from credo.models.ordinal import ordinal
from credo.models.outliers import outliers
from credo.models.paperfold import paperfold
from credo.models.positive import positive
from credo.models.program import Model
from credo.models.registry import MODELS, from_config
from credo.models.regression import regression
from credo.models.self_supervised import self_supervised
from credo.models.semi_supervised import semi_supervised
from credo.models.shares import shares
from credo.models.student import student
from credo.models.table import table
from credo.models.task_heads import task_heads
from credo.models.tasks import tasks

__all__ = [
    "MODELS",
    "Model",
    "activations",
    "augmentations",
    "augmented",
    "classification",
    "conditions",
    "counts",
    "found",
    "from_config",
    "last_layer",
    "noisy_labels",
    "ordinal",
    "outliers",
    "paperfold",
    "pickling",
    "positive",
    "pretexts",
    "regression",
    "self_supervised",
    "semi_supervised",
    "shares",
    "student",
    "table",
    "task_heads",
    "tasks",
]
