"""The functional model: any network as a pure function of its parameters, and a small zoo of networks."""

from credo.networks.cnn import CNN
from credo.networks.fourier import Fourier
from credo.networks.functional import Network, functional, network_config
from credo.networks.lora import lora
from credo.networks.mlp import MLP
from credo.networks.resnet import ResNet
from credo.networks.shortcut import ShortcutMLP
from credo.networks.statistics import with_statistics
from credo.networks.symmetries import Symmetries, symmetries, symmetries_of
from credo.networks.text import from_text, is_table
from credo.networks.torch import from_torch, to_torch, torch_op
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
    "ShortcutMLP",
    "Symmetries",
    "from_config",
    "from_text",
    "from_torch",
    "functional",
    "is_table",
    "load_params",
    "lora",
    "network_config",
    "num_numbers",
    "symmetries",
    "symmetries_of",
    "to_torch",
    "torch_op",
    "with_statistics",
]
