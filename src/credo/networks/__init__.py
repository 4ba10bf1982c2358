"""The functional model: any network as a pure function of its parameters, and a small zoo of networks."""

from credo.networks.cnn import CNN
from credo.networks.fourier import Fourier
from credo.networks.functional import Network, functional, network_config
from credo.networks.mlp import MLP
from credo.networks.resnet import ResNet
from credo.networks.statistics import with_statistics
from credo.networks.symmetries import Symmetries, symmetries, symmetries_of
from credo.networks.text import from_text
from credo.networks.trained import load_params
from credo.networks.units import Group
from credo.networks.zoo import from_config, num_numbers

__all__ = [
    "CNN",
    "MLP",
    "Fourier",
    "Group",
    "Network",
    "ResNet",
    "Symmetries",
    "from_config",
    "from_text",
    "functional",
    "load_params",
    "network_config",
    "num_numbers",
    "symmetries",
    "symmetries_of",
    "with_statistics",
]
