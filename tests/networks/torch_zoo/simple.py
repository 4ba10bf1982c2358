"""A multilayer perceptron with layer normalisation, and a U-Net."""

import torch
from torch import nn
from torch.nn import functional


def mlp(num_in=5, hidden=16, out=2):
    return nn.Sequential(
        nn.Linear(num_in, hidden),
        nn.LayerNorm(hidden),
        nn.Tanh(),
        nn.Dropout(0.2),
        nn.Linear(hidden, hidden),
        nn.LayerNorm(hidden),
        nn.ELU(),
        nn.Linear(hidden, out),
    )


def _pair(channels, out):
    return nn.Sequential(
        nn.Conv2d(channels, out, 3, padding=1),
        nn.GroupNorm(2, out),
        nn.LeakyReLU(0.1),
        nn.Conv2d(out, out, 3, padding=1),
        nn.InstanceNorm2d(out, affine=True),
        nn.SiLU(),
    )


class UNet(nn.Module):
    """Ronneberger et al., 2015; upwards once by a transposed convolution and once by interpolation."""

    def __init__(self, channels=3, width=4, out=2):
        super().__init__()
        self.down1, self.down2 = _pair(channels, width), _pair(width, 2 * width)
        self.bottom = _pair(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 3, 2, 1, output_padding=1)
        self.merge2, self.merge1 = _pair(4 * width, 2 * width), _pair(3 * width, width)
        self.dropout = nn.Dropout2d(0.1)
        self.head = nn.Conv2d(width, out, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        x = self.bottom(functional.avg_pool2d(second, 3, 2, 1, ceil_mode=True))
        x = self.merge2(torch.cat([functional.interpolate(self.up2(x), size=second.shape[2:]), second], dim=1))
        x = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.dropout(self.merge1(torch.cat([x, first], dim=1))))
