"""Stochastic models: NumPyro programs, their priors and likelihoods, one file per graphical model."""

from credo.models import augmentations, conditions, pickling, pretexts
from credo.models.activations import activations
from credo.models.augmented import augmented
from credo.models.classification import classification
from credo.models.last_layer import last_layer
from credo.models.noisy_labels import noisy_labels
from credo.models.outliers import outliers
from credo.models.paperfold import paperfold
from credo.models.program import Model
from credo.models.registry import MODELS, from_config
from credo.models.regression import regression
from credo.models.self_supervised import self_supervised
from credo.models.semi_supervised import semi_supervised
from credo.models.student import student
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
    "from_config",
    "last_layer",
    "noisy_labels",
    "outliers",
    "paperfold",
    "pickling",
    "pretexts",
    "regression",
    "self_supervised",
    "semi_supervised",
    "student",
    "task_heads",
    "tasks",
]
