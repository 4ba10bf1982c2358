"""PyTorch modules become networks that agree with them, and stay as they were."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from credo.networks import from_torch
from tests.networks.torch_zoo import convnext, mobile, resnet, simple, text, vit

os.environ["HF_HUB_OFFLINE"] = "1"


def image(side):
    return torch.randn(2, 3, side, side)


def tokens(length, num_tokens=40):
    return torch.randint(1, num_tokens, (2, length))


def bert():
    from transformers import BertConfig, BertModel

    return BertModel(
        BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    )


def distilbert():
    from transformers import DistilBertConfig, DistilBertModel

    return DistilBertModel(DistilBertConfig(vocab_size=40, dim=16, n_layers=1, n_heads=2, hidden_dim=32))


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
    "BertModel": (bert, lambda: tokens(9), "pooler_output"),
    "DistilBERT": (distilbert, lambda: tokens(9), None),
}
FULL = {
    "resnet18": (resnet.resnet18, lambda: image(64), None),
    "mobilenet_v3_small": (mobile.mobilenet_v3_small, lambda: image(64), None),
    "efficientnet_b0": (mobile.efficientnet_b0, lambda: image(64), None),
    "vit_b_16": (vit.vit_b_16, lambda: image(224), None),
    "convnext_tiny": (convnext.convnext_tiny, lambda: image(64), None),
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


def check_agreement(make, rows, output):
    """Values to 1e-4 of their size, gradients of a random sum of them to 1e-3 of theirs: what the product promises."""
    module, x = trained(make), rows()
    network = from_torch(module, x, output=output)
    expected = answer(module, x, output)
    weights = torch.randn(expected.shape)
    (expected * weights).sum().backward()

    def total(theta):
        outputs = network.apply(theta, jnp.asarray(x.numpy()))
        return jnp.sum(outputs * weights.numpy()), outputs

    (_, outputs), gradients = jax.jit(jax.value_and_grad(total, has_aux=True))(network.params)
    expected = expected.detach()
    scale = float(expected.abs().max())
    assert np.abs(outputs - expected.numpy()).max() < 1e-4 * max(scale, 1)
    own = dict(module.named_parameters())
    assert own.keys() == network.params.keys()
    norm = np.sqrt(sum(float(p.grad.square().sum()) for p in own.values() if p.grad is not None))
    for name, parameter in own.items():
        wanted = np.zeros(parameter.shape) if parameter.grad is None else parameter.grad.numpy()
        # An array whose gradient is zero but for rounding is compared with the gradient of all.
        size = max(np.linalg.norm(wanted), 1e-4 * norm)
        assert np.linalg.norm(gradients[name] - wanted) < 1e-3 * size, name


@pytest.mark.parametrize("name", SMALL)
def test_zoo_agrees_with_pytorch(name):
    check_agreement(*SMALL[name])


@pytest.mark.full
@pytest.mark.parametrize("name", FULL)
def test_zoo_agrees_with_pytorch_at_full_size(name):
    check_agreement(*FULL[name])
