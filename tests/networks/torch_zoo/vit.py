"""Vision transformer. Dosovitskiy et al., 2021, An image is worth 16 × 16 words."""

import torch
from torch import nn


class EncoderBlock(nn.Module):
    def __init__(self, num_heads, size, hidden, rate):
        super().__init__()
        self.ln_1 = nn.LayerNorm(size, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(size, num_heads, dropout=rate, batch_first=True)
        self.dropout = nn.Dropout(rate)
        self.ln_2 = nn.LayerNorm(size, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(size, hidden), nn.GELU(), nn.Dropout(rate), nn.Linear(hidden, size), nn.Dropout(rate)
        )

    def forward(self, x):
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + self.dropout(y)
        return x + self.mlp(self.ln_2(x))


class VisionTransformer(nn.Module):
    def __init__(self, image, patch, num_layers, num_heads, size, hidden, num_classes, rate=0.0):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, size, patch, patch)
        self.class_token = nn.Parameter(torch.randn(1, 1, size) / 10)
        self.pos_embedding = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, size) / 10)
        self.dropout = nn.Dropout(rate)
        self.layers = nn.Sequential(*[EncoderBlock(num_heads, size, hidden, rate) for _ in range(num_layers)])
        self.ln = nn.LayerNorm(size, eps=1e-6)
        self.head = nn.Linear(size, num_classes)

    def forward(self, x):
        n = x.shape[0]
        x = self.conv_proj(x).reshape(n, self.class_token.shape[-1], -1).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(n, -1, -1), x], dim=1)
        x = self.ln(self.layers(self.dropout(x + self.pos_embedding)))
        return self.head(x[:, 0])


def vit_b_16(image=224, num_layers=12, num_heads=12, size=768, hidden=3072, num_classes=1000):
    return VisionTransformer(image, 16, num_layers, num_heads, size, hidden, num_classes, rate=0.1)
