"""Operations one by one, beside PyTorch's own: many small functions of images in one module, exported once."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from credo.networks import from_torch

INDEX = torch.tensor([[2, 0, 1], [1, 1, 3]])
LAST = torch.tensor([5, 0, 2])
MASK = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4, [False, True, False, False]])
SHAPES = {
    "view": lambda x: x.view(-1, 8, 18),
    "permute": lambda x: x.permute(0, 2, 3, 1),
    "squeeze": lambda x: x[:, :1].squeeze(1).unsqueeze(-1).squeeze(),
    "expand": lambda x: x[:, :1].expand(-1, 3, 6, 6),
    "repeat": lambda x: x.repeat(1, 2, 1, 3),
    "stack": lambda x: torch.stack([x, -x], dim=2),
    "split": lambda x: torch.cat(list(x.split(4, dim=2))[::-1], dim=2),
    "split with sizes": lambda x: x.split([1, 3], dim=1)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "flip": lambda x: x.flip([2, 3]),
    "roll": lambda x: x.roll([1, 2], [2, 3]),
    "diagonal": lambda x: x.diagonal(1, 2, 3),
    "strides": lambda x: x.contiguous()[0].as_strided((2, 3), (7, 2), 5).sum() + 0 * x,
    "pixel shuffle": lambda x: functional.pixel_shuffle(x, 2),
    "padding": lambda x: functional.pad(x, (1, 2, -1, 3), value=2.0),
    "reflection": lambda x: functional.pad(x, (1, 2, 3, 0), mode="reflect"),
    "replication": lambda x: functional.pad(x, (1, 2, 3, 0), mode="replicate"),
    "pieces": lambda x: x[:, 1:, ::2, -3:-1],
    "fold and unfold": lambda x: functional.unfold(x, 3, stride=2),
}
ELEMENTS = {
    "arithmetic": lambda x: torch.add(x, x.exp(), alpha=2) - torch.sub(3, x, alpha=0.5) / (1.5 + x.abs()),
    "powers": lambda x: x.abs() ** 1.5 + 2.0**x + x.abs() ** x,
    "rounding": lambda x: torch.div(x * 7, 2, rounding_mode="floor") + (x * 3).round() + x.ceil() + x.trunc(),
    "remainders": lambda x: torch.remainder(x * 7, 2) + torch.fmod(x * 7, 2),
    "whole quotients": lambda x: torch.div((x * 9).int(), 4, rounding_mode="trunc") / 2 + (x * 9).int() // 4 / 2,
    "limits": lambda x: (
        x.clamp(max=0.3) + x.clamp(min=-0.2) + functional.hardtanh(x, -0.4, 0.6) + functional.relu6(4 * x)
    ),
    "choices": lambda x: torch.where(x > 0.2, x, 0.5) + x.masked_fill(x < 0, 9.0) + torch.maximum(x, x.flip(1)),
    "logic": lambda x: ((x > 0) & ~(x > 0.5) | (x < -0.5)).float() + torch.logical_xor(x > 0, x > 1),
    "activations": lambda x: (
        functional.elu(x, 0.5) + functional.selu(x) + functional.softplus(30 * x) + functional.mish(x)
    ),
    "more activations": lambda x: (
        functional.hardswish(4 * x) + functional.hardsigmoid(x) + functional.gelu(x) + x.erf()
    ),
    "logarithms": lambda x: (1 + x.abs()).log2() + x.abs().log1p() + x.expm1() + (x.abs() + 1).log10(),
    "angles": lambda x: x.sin() * x.cos() + x.tan() + x.atan() + torch.atan2(x, x.cosh()) + x.sinh() + x.tanh(),
    "casts": lambda x: (x * 3).long().float() + (x > 0).to(x.dtype) + x.double().float() + (x * 5).int() / 2,
    "made": lambda x: x + torch.arange(0, 6, 1) + torch.eye(6) + torch.ones(6, 6).tril() * torch.linspace(0, 1, 6),
    "made alike": lambda x: x + torch.full_like(x, 2.0) + torch.ones_like(x) + torch.zeros_like(x) + x.new_zeros(6),
}
REDUCTIONS = {
    "sums": lambda x: x.sum((2, 3)) + x.mean((2, 3)) + x.prod(3).sum(2),
    "extremes": lambda x: x.amax((2, 3)) + x.amin((2, 3)) + x.max(3).values.min(2).values,
    "places": lambda x: (x.argmax(3) + x.min(3).indices).float(),
    "spread": lambda x: x.var(3) + x.std(3, correction=0) + torch.var_mean(x, 3)[1],
    "all and any": lambda x: (x > -0.9).all(3).float() + (x > 0.9).any(3),
    "cumulative": lambda x: x.cumsum(3),
    "softmax": lambda x: x.softmax(1) + x.log_softmax(3) + x.logsumexp(3, keepdim=True),
    "sorted": lambda x: x.sort(3, descending=True).values + x.argsort(2),
    "largest": lambda x: x.topk(2, dim=3).values + x.topk(2, dim=3, largest=False).indices,
    "norms": lambda x: (
        x.norm(dim=3) + functional.normalize(x, dim=3).sum(3) + functional.cosine_similarity(x, -2 * x + 1, 3)
    ),
}
PLACES = {
    "rows by number": lambda x: x[:, [0, 2]][:, :, LAST],
    "two axes": lambda x: x[:, INDEX, INDEX + 1],
    "selected": lambda x: x.index_select(2, LAST),
    "gathered": lambda x: x.gather(3, LAST.expand(x.shape[0], 4, 2, 3)),
    "scattered": lambda x: x.scatter(3, LAST.expand(x.shape[0], 4, 6, 3), 7.0),
    "scattered from": lambda x: x.scatter(3, LAST.expand(x.shape[0], 4, 6, 3), -x),
    "added there": lambda x: x.scatter_add(3, (LAST // 3).expand(x.shape[0], 4, 6, 3), -x),
    "put": lambda x: torch.index_put(x.transpose(0, 1), (torch.tensor([0, 3]),), torch.tensor(5.0)).transpose(0, 1),
    "written": lambda x: _written(x),
}
IMAGES = {
    "overlapping pools": lambda x: functional.max_pool2d(x, 3, 2, 1) + functional.avg_pool2d(x, 3, 2, 1),
    "pools that reach beyond": lambda x: (
        functional.max_pool2d(x, 3, 2, ceil_mode=True)
        + functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)[..., :3, :3]
    ),
    "pools of tiles": lambda x: functional.max_pool2d(x, 2) + functional.avg_pool2d(x, (2, 2)),
    "spread pools": lambda x: functional.max_pool2d(x, 2, 1, dilation=2),
    "divided pools": lambda x: functional.avg_pool2d(x, 2, divisor_override=3),
    "adaptive": lambda x: functional.adaptive_avg_pool2d(x, (4, 3)),
    "in one dimension": lambda x: functional.max_pool1d(x[:, 0], 2) + functional.adaptive_avg_pool1d(x[:, 1], 3),
    "nearest": lambda x: functional.interpolate(x, size=(4, 9)),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=1.7, mode="bilinear"),
    "bilinear, aligned": lambda x: functional.interpolate(x, size=(9, 4), mode="bilinear", align_corners=True),
    "bicubic": lambda x: functional.interpolate(x, size=(9, 4), mode="bicubic"),
    "transposed": lambda x: functional.conv_transpose2d(
        x, torch.ones(4, 3, 3, 2) * torch.arange(2.0), stride=2, padding=1, output_padding=1, groups=2, dilation=(1, 2)
    ),
    "in groups": lambda x: functional.conv2d(x, torch.ones(6, 2, 3, 3) * torch.arange(3.0), padding="same", groups=2),
    "convolved in one dimension": lambda x: functional.conv1d(
        x[:, 0], torch.ones(2, 6, 3) * torch.arange(3.0), stride=2
    ),
    "convolved in three": lambda x: functional.conv3d(x[:, None], torch.ones(2, 1, 2, 3, 3), dilation=(2, 1, 1)),
    "layer norms": lambda x: (
        functional.layer_norm(x, (6,)) + functional.group_norm(x, 2) + functional.rms_norm(x, (6,))
    ),
    "instance norm": lambda x: functional.instance_norm(x),
    "masked attention": lambda x: functional.scaled_dot_product_attention(
        x[:, :, :4], x[:, :, :4].sin(), x[:, :, :4].cos(), MASK, scale=0.7
    ),
    "causal attention": lambda x: functional.scaled_dot_product_attention(x, x.sin(), x, is_causal=True),
    "biased attention": lambda x: functional.scaled_dot_product_attention(x, x, x, torch.eye(6)),
    "grouped attention": lambda x: functional.scaled_dot_product_attention(x, x[:, :2], x[:, 2:], enable_gqa=True),
    "products": lambda x: x @ x.mT + torch.einsum("nchw,ndhw->ncd", x, x).sum((1, 2))[:, None, None, None],
}


def _written(x):
    x = x.clone()
    x[:, 1] = 2.0
    x[:, :, 1:3] += x[:, :, 3:5]
    return x


class Many(nn.Module):
    """All functions of a group, side by side; and a parameter, as a network has one."""

    def __init__(self, functions):
        super().__init__()
        self.functions, self.scale = functions, nn.Parameter(torch.ones(()))

    def forward(self, x):
        return torch.cat([function(x * self.scale).float().flatten(1) for function in self.functions.values()], dim=1)


GROUPS = {"shapes": SHAPES, "elements": ELEMENTS, "reductions": REDUCTIONS, "places": PLACES, "images": IMAGES}


@pytest.mark.parametrize("group", GROUPS)
def test_operations_agree_with_pytorch(group):
    torch.manual_seed(0)
    x = 2 * torch.rand(3, 4, 6, 6) - 1
    network = from_torch(Many(GROUPS[group]), x)
    outputs = network.apply(network.params, jnp.asarray(x.numpy()))
    place = 0
    for name, function in GROUPS[group].items():
        expected = function(x).float().flatten(1).numpy()
        found = outputs[:, place : place + expected.shape[1]]
        place += expected.shape[1]
        # Single precision, and sums of up to some hundred numbers.
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=name)
    assert place == outputs.shape[1]
