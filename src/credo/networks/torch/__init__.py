"""PyTorch modules as networks: exported once as a graph of operations, which JAX runs."""

from credo.networks.torch.importing import from_torch
from credo.networks.torch.table import torch_op
from credo.networks.torch.to_torch import to_torch

__all__ = ["from_torch", "to_torch", "torch_op"]
