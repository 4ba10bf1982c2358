"""Seconds per step of torch peers, as JSON: SGLD of posteriors, and one plain training of a small network.

    python sampling_torch.py

Batches are taken by index; one thread or several, whichever is faster. posteriors updates its state in place, and Adam
is fused: each peer gets its best.
"""

import json
from typing import Any

import posteriors
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_timing import Step, prepare, seconds_per_step

# The 6,000 images of the classifier, as for credo: the scale of the log joint is per data point.
NUM_IMAGES, IMAGE_BATCH = 6_000, 128
NUM_ROWS, ROW_BATCH, NUM_SMALL_STEPS = 1_000, 64, 500


def main() -> None:
    prepare()
    images = (torch.rand(NUM_IMAGES, 784), torch.randint(0, 10, (NUM_IMAGES,)))
    rows = (torch.randn(NUM_ROWS, 8), torch.randn(NUM_ROWS))
    seconds = {
        "sgld": seconds_per_step(sgld_step(), *images, IMAGE_BATCH),
        "training": seconds_per_step(training_step(), *rows, ROW_BATCH, NUM_SMALL_STEPS),
    }
    print(json.dumps(seconds))


def sgld_step() -> Step:
    """784-400-400-10 with weights N(0, 1)."""
    net = nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 10))

    def log_posterior(params: Any, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        logits = torch.func.functional_call(net, params, batch[0])
        log_prior = sum(-0.5 * (leaf**2).sum() for leaf in params.values())
        return -functional.cross_entropy(logits, batch[1]) + log_prior / NUM_IMAGES, torch.tensor([])

    sgld = posteriors.sgmcmc.sgld.build(log_posterior, lr=1e-3, temperature=1 / NUM_IMAGES)
    state = sgld.init({name: leaf.detach().clone() for name, leaf in net.named_parameters()})

    def step(x: Tensor, y: Tensor) -> None:
        nonlocal state
        state, _ = sgld.update(state, (x, y), inplace=True)

    return step


def training_step() -> Step:
    """8-50-50-1 with Adam; the prior is weight decay in the loss."""
    net = nn.Sequential(nn.Linear(8, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, 1))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=True, weight_decay=1 / NUM_ROWS)

    def step(x: Tensor, y: Tensor) -> None:
        optimizer.zero_grad()
        functional.mse_loss(net(x)[:, 0], y).backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    main()
