"""ConvNeXt-Tiny. Liu et al., 2022, A ConvNet for the 2020s."""

import torch
from torch import nn
from torch.nn import functional


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = functional.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Permute(nn.Module):
    def __init__(self, *dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return torch.permute(x, self.dims)


class Block(nn.Module):
    def __init__(self, size, scale=1e-1):
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(size, size, 7, padding=3, groups=size),
            Permute(0, 2, 3, 1),
            nn.LayerNorm(size, eps=1e-6),
            nn.Linear(size, 4 * size),
            nn.GELU(),
            nn.Linear(4 * size, size),
            Permute(0, 3, 1, 2),
        )
        self.layer_scale = nn.Parameter(torch.ones(size, 1, 1) * scale)

    def forward(self, x):
        return x + self.layer_scale * self.block(x)


class ConvNeXt(nn.Module):
    def __init__(self, sizes, depths, num_classes):
        super().__init__()
        layers = [nn.Sequential(nn.Conv2d(3, sizes[0], 4, 4), LayerNorm2d(sizes[0], eps=1e-6))]
        for stage, (size, depth) in enumerate(zip(sizes, depths, strict=True)):
            layers.append(nn.Sequential(*[Block(size) for _ in range(depth)]))
            if stage + 1 < len(sizes):
                layers.append(nn.Sequential(LayerNorm2d(size, eps=1e-6), nn.Conv2d(size, sizes[stage + 1], 2, 2)))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            LayerNorm2d(sizes[-1], eps=1e-6), nn.Flatten(1), nn.Linear(sizes[-1], num_classes)
        )

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)))


def convnext_tiny(num_classes=1000, sizes=(96, 192, 384, 768), depths=(3, 3, 9, 3)):
    return ConvNeXt(sizes, depths, num_classes)
