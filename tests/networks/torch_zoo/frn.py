"""The residual network of `credo.networks.ResNet`, with filter response normalisation, in PyTorch."""

import torch
from torch import nn
from torch.nn import functional


class Conv(nn.Conv2d):
    """A convolution that keeps the size, or halves it: then its margin is behind, as flax has it."""

    def __init__(self, channels, out, size, stride):
        super().__init__(channels, out, size, stride, bias=False)
        around = size - stride if size > 1 else 0
        self.margins = (around // 2, around - around // 2) * 2

    def forward(self, x):
        return super().forward(functional.pad(x, self.margins))


class FilterResponseNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.rand(channels) + 0.5), nn.Parameter(torch.rand(channels))

    def forward(self, x):
        power = x.square().mean((2, 3), keepdim=True)
        scale, bias = self.scale[:, None, None], self.bias[:, None, None]
        return scale * x * torch.rsqrt(power + 1e-6) + bias


class Thresholded(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.threshold = nn.Parameter(torch.rand(channels) - 0.5)

    def forward(self, x):
        return torch.maximum(x, self.threshold[:, None, None])


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.conv2 = Conv(channels, out, 3, stride), Conv(out, out, 3, 1)
        self.norm1, self.norm2 = FilterResponseNorm(out), FilterResponseNorm(out)
        self.activation1, self.activation2 = Thresholded(out), Thresholded(out)
        self.is_projected = stride > 1
        if self.is_projected:
            self.projection, self.projection_norm = Conv(channels, out, 1, stride), FilterResponseNorm(out)

    def forward(self, x):
        shortcut = self.projection_norm(self.projection(x)) if self.is_projected else x
        x = self.activation1(self.norm1(self.conv1(x)))
        return self.activation2(shortcut + self.norm2(self.conv2(x)))


class ResNet(nn.Module):
    def __init__(self, out, depth, width, channels):
        super().__init__()
        self.stem = Conv(channels, width, 3, 1)
        self.stem_norm, self.stem_activation = FilterResponseNorm(width), Thresholded(width)
        widths = [width * 2**stage for stage in range(3) for _ in range((depth - 2) // 6)]
        pairs = zip([width, *widths[:-1]], widths, strict=True)
        self.blocks = nn.Sequential(*[Block(i, o, 1 if i == o else 2) for i, o in pairs])
        self.head = nn.Linear(4 * width, out)

    def forward(self, x):
        x = self.blocks(self.stem_activation(self.stem_norm(self.stem(x))))
        return self.head(x.mean((2, 3)))
