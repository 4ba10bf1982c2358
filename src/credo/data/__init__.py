"""Rows of inputs and targets, the scaling between the user's units and the network's, and example data sets."""

from credo.data import datasets
from credo.data.data import Data, as_data, as_inputs, as_labels
from credo.data.missing import filled, has_target, is_observed
from credo.data.scaling import Scaling

__all__ = ["Data", "Scaling", "as_data", "as_inputs", "as_labels", "datasets", "filled", "has_target", "is_observed"]
