"""ResNet-18. He et al., 2016, Deep residual learning for image recognition."""

from torch import nn


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride > 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        x += shortcut
        return self.relu(x)


class ResNet(nn.Module):
    def __init__(self, num_classes=1000, width=64, depths=(2, 2, 2, 2)):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = width
        self.num_stages = len(depths)
        for stage, depth in enumerate(depths):
            out = width * 2**stage
            strides = [1 if stage == 0 else 2] + [1] * (depth - 1)
            blocks = [Block(channels if at == 0 else out, out, stride) for at, stride in enumerate(strides)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            channels = out
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(self.num_stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(self.avgpool(x).flatten(1))


def resnet18(num_classes=1000, width=64, depths=(2, 2, 2, 2)):
    return ResNet(num_classes, width, depths)
