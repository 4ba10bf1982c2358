"""MobileNetV3-Small and EfficientNet-B0: inverted residuals with squeeze and excitation.

Howard et al., 2019, Searching for MobileNetV3; Tan and Le, 2019, EfficientNet.
"""

import torch
from torch import nn


def _normed(channels, out, size, stride, groups, activation):
    layers = [
        nn.Conv2d(channels, out, size, stride, (size - 1) // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out, eps=1e-3),
    ]
    return nn.Sequential(*layers, *([activation(inplace=True)] if activation else []))


class SqueezeExcitation(nn.Module):
    def __init__(self, channels, squeezed, activation, scale):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)
        self.activation, self.scale_activation = activation(), scale()

    def forward(self, x):
        return x * self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x)))))


class StochasticDepth(nn.Module):
    """Drops a row's branch in training; nothing in evaluation."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training or self.rate == 0:
            return x
        return x * torch.empty(x.shape[0], 1, 1, 1).bernoulli_(1 - self.rate) / (1 - self.rate)


class InvertedResidual(nn.Module):
    def __init__(self, channels, expanded, out, size, stride, activation, squeeze=None, rate=0.0):
        super().__init__()
        layers = [] if expanded == channels else [_normed(channels, expanded, 1, 1, 1, activation)]
        layers.append(_normed(expanded, expanded, size, stride, expanded, activation))
        if squeeze:
            layers.append(SqueezeExcitation(expanded, *squeeze))
        layers.append(_normed(expanded, out, 1, 1, 1, None))
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(rate)
        self.has_shortcut = stride == 1 and channels == out

    def forward(self, x):
        result = self.block(x)
        return self.stochastic_depth(result) + x if self.has_shortcut else result


def _eighths(value):
    rounded = max(8, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


# Size of the window, expanded channels, channels, squeeze and excitation, hard swish, stride.
MOBILE = [
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
]


class MobileNet(nn.Module):
    def __init__(self, num_classes=1000, width=1.0, settings=MOBILE):
        super().__init__()
        channels = _eighths(16 * width)
        layers = [_normed(3, channels, 3, 2, 1, nn.Hardswish)]
        for size, expanded, out, squeezes, is_hard, stride in settings:
            expanded, out = _eighths(expanded * width), _eighths(out * width)
            squeeze = (_eighths(expanded // 4), nn.ReLU, nn.Hardsigmoid) if squeezes else None
            activation = nn.Hardswish if is_hard else nn.ReLU
            layers.append(InvertedResidual(channels, expanded, out, size, stride, activation, squeeze))
            channels = out
        last = 6 * channels
        layers.append(_normed(channels, last, 1, 1, 1, nn.Hardswish))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        hidden = _eighths(1024 * width)
        self.classifier = nn.Sequential(
            nn.Linear(last, hidden), nn.Hardswish(inplace=True), nn.Dropout(0.2), nn.Linear(hidden, num_classes)
        )

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


# Expansion, size of the window, stride, channels, number of blocks.
EFFICIENT = [
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
]


class EfficientNet(nn.Module):
    def __init__(self, num_classes=1000, width=1.0, settings=EFFICIENT):
        super().__init__()
        channels = _eighths(32 * width)
        layers = [_normed(3, channels, 3, 2, 1, nn.SiLU)]
        for expansion, size, stride, out, num in settings:
            out = _eighths(out * width)
            for at in range(num):
                squeeze = (max(1, channels // 4), nn.SiLU, nn.Sigmoid)
                step = stride if at == 0 else 1
                layers.append(
                    InvertedResidual(channels, channels * expansion, out, size, step, nn.SiLU, squeeze, rate=0.1)
                )
                channels = out
        layers.append(_normed(channels, 4 * channels, 1, 1, 1, nn.SiLU))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2, inplace=True), nn.Linear(4 * channels, num_classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def mobilenet_v3_small(num_classes=1000, width=1.0, settings=MOBILE):
    return MobileNet(num_classes, width, settings)


def efficientnet_b0(num_classes=1000, width=1.0, settings=EFFICIENT):
    return EfficientNet(num_classes, width, settings)
