"""Networks of tokens: a recurrent classifier and a block of a GPT."""

import math

import torch
from torch import nn
from torch.nn import functional


class TextClassifier(nn.Module):
    """Embedding, a bidirectional LSTM of two layers, a GRU, dropout, a head."""

    def __init__(self, num_tokens=50, size=8, hidden=6, num_classes=3):
        super().__init__()
        self.embedding = nn.Embedding(num_tokens, size, padding_idx=0)
        self.lstm = nn.LSTM(size, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, tokens):
        x, _ = self.lstm(self.embedding(tokens))
        _, last = self.gru(x)
        return self.head(self.dropout(last[-1]))


class CausalSelfAttention(nn.Module):
    def __init__(self, size, num_heads, length):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.attn_dropout, self.resid_dropout = nn.Dropout(0.1), nn.Dropout(0.1)
        self.register_buffer("bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length))
        self.num_heads = num_heads

    def forward(self, x):
        n, length, size = x.size()
        q, k, v = (
            part.view(n, length, self.num_heads, size // self.num_heads).transpose(1, 2)
            for part in self.c_attn(x).split(size, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        y = self.attn_dropout(functional.softmax(scores, dim=-1)) @ v
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(n, length, size)))


class GPT(nn.Module):
    """Token and position embeddings, one block, and a head that is tied to the token embedding."""

    def __init__(self, num_tokens=40, size=16, num_heads=2, length=12):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(num_tokens, size), nn.Embedding(length, size)
        self.ln_1, self.attn = nn.LayerNorm(size), CausalSelfAttention(size, num_heads, length)
        self.ln_2 = nn.LayerNorm(size)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(approximate="tanh"), nn.Linear(4 * size, size))
        self.ln_f = nn.LayerNorm(size)
        self.lm_head = nn.Linear(size, num_tokens, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(1)))
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return self.lm_head(self.ln_f(x))[:, -1]
