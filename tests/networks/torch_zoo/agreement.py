"""The zoo: architectures with all their kinds of layers, small and at full size, and how well their imports agree."""

import os
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from credo.networks import from_torch
from tests.networks.torch_zoo import convnext, mobile, resnet, simple, text, vit

os.environ["HF_HUB_OFFLINE"] = "1"


def image(side):
    return torch.randn(2, 3, side, side)


def tokens(length, num_tokens=40):
    return torch.randint(1, num_tokens, (2, length))


SMALL_BERT = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
SMALL_DISTILBERT = {"vocab_size": 40, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32}


def bert(settings):
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(**settings))


def distilbert(settings):
    from transformers import DistilBertConfig, DistilBertModel

    return DistilBertModel(DistilBertConfig(**settings))


# Every architecture with all its kinds of layers, and fewer or narrower of each: the module, rows of x, the output.
SMALL = {
    "resnet18": (lambda: resnet.resnet18(10, 4, depths=(1, 2)), lambda: image(16), None),
    "mobilenet_v3_small": (lambda: mobile.mobilenet_v3_small(10, 0.25, mobile.MOBILE[:5]), lambda: image(16), None),
    "efficientnet_b0": (lambda: mobile.efficientnet_b0(10, 0.25, mobile.EFFICIENT[:2]), lambda: image(16), None),
    "vit_b_16": (lambda: vit.vit_b_16(32, 1, 2, 16, 32, 10), lambda: image(32), None),
    "convnext_tiny": (lambda: convnext.convnext_tiny(10, (4, 8), (1, 1)), lambda: image(32), None),
    "LSTM text classifier": (text.TextClassifier, lambda: tokens(7), None),
    "GPT block": (text.GPT, lambda: tokens(9), None),
    "MLP with layer norm": (simple.mlp, lambda: torch.randn(2, 5), None),
    "U-Net": (simple.UNet, lambda: image(16), None),
    "BertModel": (lambda: bert(SMALL_BERT), lambda: tokens(9), "pooler_output"),
    "DistilBERT": (lambda: distilbert(SMALL_DISTILBERT), lambda: tokens(9), None),
}
FULL = {
    "resnet18": (resnet.resnet18, lambda: image(224), None),
    "mobilenet_v3_small": (mobile.mobilenet_v3_small, lambda: image(224), None),
    "efficientnet_b0": (mobile.efficientnet_b0, lambda: image(224), None),
    "vit_b_16": (vit.vit_b_16, lambda: image(224), None),
    "convnext_tiny": (convnext.convnext_tiny, lambda: image(224), None),
    "LSTM text classifier": (lambda: text.TextClassifier(20_000, 100, 128), lambda: tokens(100, 20_000), None),
    "GPT block": (lambda: text.GPT(50_257, 768, 12, 256), lambda: tokens(256, 50_257), None),
    "MLP with layer norm": (lambda: simple.mlp(100, 1024, 10), lambda: torch.randn(2, 100), None),
    "U-Net": (lambda: simple.UNet(3, 32), lambda: image(64), None),
    "BertModel": (lambda: bert({}), lambda: tokens(64), "pooler_output"),
    "DistilBERT": (lambda: distilbert({}), lambda: tokens(64), None),
}


def trained(make):
    """A module with batch statistics that have moved, and with nothing that is zero or one."""
    torch.manual_seed(0)
    module = make()
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.is_floating_point() and tensor.ndim == 1:
                tensor.add_(0.2 * torch.rand_like(tensor))
    return module.eval()


def answer(module, x, output):
    result = module(x)
    if not isinstance(result, torch.Tensor):
        result = result[output] if output else result.last_hidden_state
    return result


class Agreement(NamedTuple):
    """How well a module and its import agree.

    Arguments:
        values: the largest difference, beside the largest value or one.
        gradients: the same of each array's gradient of a random sum, in norms. An array whose gradient is zero but for
            rounding is compared with the gradient of all.
    """

    num_parameters: int
    values: float
    gradients: float


def agreement(make, rows, output):
    """A module beside what `from_torch` makes of it."""
    module, x = trained(make), rows()
    network = from_torch(module, x, output=output)
    expected = answer(module, x, output)
    weights = torch.randn(expected.shape)
    (expected * weights).sum().backward()

    def total(theta, x):
        outputs = network.apply(theta, x)
        return jnp.sum(outputs * weights.numpy()), outputs

    (_, outputs), gradients = jax.jit(jax.value_and_grad(total, has_aux=True))(network.params, jnp.asarray(x.numpy()))
    expected = expected.detach().numpy()
    own = dict(module.named_parameters())
    assert own.keys() == network.params.keys()
    norm = np.sqrt(sum(float(p.grad.square().sum()) for p in own.values() if p.grad is not None))
    apart = []
    for name, parameter in own.items():
        wanted = np.zeros(parameter.shape) if parameter.grad is None else parameter.grad.numpy()
        size = max(np.linalg.norm(wanted), 1e-4 * norm)
        apart.append(float(np.linalg.norm(gradients[name] - wanted) / size))
    values = float(np.abs(outputs - expected).max() / max(np.abs(expected).max(), 1))
    return Agreement(sum(one.numel() for one in own.values()), values, max(apart))
