"""Rows of inputs and targets, the scaling between the user's units and the network's, and example data sets."""

from credo.data import datasets
from credo.data.belonging import held_out
from credo.data.capacity import capacity_for
from credo.data.censoring import as_censored, joined, parted, require_uncensored
from credo.data.data import Data
from credo.data.file_data import FileData, FileInputs
from credo.data.given import as_data, as_inputs
from credo.data.missing import filled, has_target, is_observed
from credo.data.precisions import as_precisions, require_equal_precisions
from credo.data.scaling import Scaling
from credo.data.targets import as_labels, as_numbers, as_whole
from credo.data.tasks import NEW_TASK, TASK, packed_tasks, tasks_data

__all__ = [
    "NEW_TASK",
    "TASK",
    "Data",
    "FileData",
    "FileInputs",
    "Scaling",
    "as_censored",
    "as_data",
    "as_inputs",
    "as_labels",
    "as_numbers",
    "as_precisions",
    "as_whole",
    "capacity_for",
    "datasets",
    "filled",
    "has_target",
    "held_out",
    "is_observed",
    "joined",
    "packed_tasks",
    "parted",
    "require_equal_precisions",
    "require_uncensored",
    "tasks_data",
]
