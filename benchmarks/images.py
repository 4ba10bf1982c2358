"""Networks of images beside PyTorch eager: steps of training, predictions, and a whole job of SGLD.

    python -m benchmarks --keep docs/figures images

The same architecture in both, batches of 128, on all cores. Credo's steps run in a compiled loop, as all of its methods
do; PyTorch's in Python, as they are written everywhere. The sides take turns, and the best of several rounds counts.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from tests.networks.torch_zoo import frn, resnet
from torch import nn

import credo
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of
from credo.networks import Network, functional

NUM_ROWS, NUM_CLASSES = 128, 10
LEARNING_RATE = 1e-3
NUM_ROUNDS = 5
NUM_SGLD_STEPS = 40


class Case(NamedTuple):
    """A network on both sides, its images (n, height, width, channels) and the number of steps in a round."""

    name: str
    own: Network
    module: nn.Module
    images: np.ndarray
    num_steps: int


def main() -> None:
    table = new_table(
        "Images, 128 at once, beside PyTorch eager: time in ms, and how many times as fast credo is",
        *("network", "step", "PyTorch", "ratio", "prediction", "PyTorch", "ratio"),
    )
    for case in cases():
        cells = [cell for measured in (_steps(case), _predictions(case)) for cell in _beside(measured)]
        table.add_row(case.name, *cells)
    console.print(table)
    jobs = new_table(
        f"LeNet, {NUM_SGLD_STEPS} steps of SGLD as a whole fit: time in ms", "what", "time", "PyTorch", "ratio"
    )
    jobs.add_row("SGLD", *_beside(_langevin()))
    console.print(jobs)


def cases() -> Iterator[Case]:
    """LeNet, ResNet-20 with either normalisation, and resnet18 as it is imported."""
    small, coloured = _images(28, 1), _images(32, 3)
    yield Case("LeNet", functional(credo.networks.CNN(NUM_CLASSES), small), lenet(), small, 8)
    own = functional(credo.networks.ResNet(NUM_CLASSES), coloured)
    yield Case("ResNet-20, filter response", own, frn.ResNet(NUM_CLASSES, 20, 16, 3), coloured, 2)
    own = functional(credo.networks.ResNet(NUM_CLASSES, normalisation="group"), coloured)
    yield Case("ResNet-20, groups", own, _with_groups(frn.ResNet(NUM_CLASSES, 20, 16, 3)), coloured, 2)
    module = resnet.resnet18(NUM_CLASSES)
    module(_tensor(coloured))
    own = credo.networks.from_torch(module, _tensor(coloured[:2]), channels_last=True)
    yield Case("resnet18 by from_torch", own, module.eval(), coloured, 2)


def lenet() -> nn.Module:
    """That of `credo.networks.CNN`."""
    convolutions = [nn.Conv2d(1, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(16, 32, 5), nn.MaxPool2d(2), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, NUM_CLASSES))


def _with_groups(module: nn.Module) -> nn.Module:
    """Group normalisation and silu in the places of filter response normalisation and thresholds."""
    for name, layer in module.named_children():
        if isinstance(layer, frn.FilterResponseNorm):
            setattr(module, name, nn.GroupNorm(8, len(layer.scale)))
        elif isinstance(layer, frn.Thresholded):
            setattr(module, name, nn.SiLU())
        else:
            _with_groups(layer)
    return module


def _images(side: int, channels: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(NUM_ROWS, side, side, channels)).astype(np.float32)


def _labels() -> np.ndarray:
    return np.arange(NUM_ROWS) % NUM_CLASSES


def _tensor(images: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(images).permute(0, 3, 1, 2).contiguous()


def _steps(case: Case) -> dict[str, float]:
    """Milliseconds of one step of SGD."""
    labels = _labels()

    def loss(theta: Any) -> Any:
        logits = jax.nn.log_softmax(case.own.apply(theta, case.images))
        return -jnp.mean(logits[jnp.arange(NUM_ROWS), labels])

    def step(_: Any, theta: Any) -> Any:
        return jax.tree.map(lambda one, slope: one - LEARNING_RATE * slope, theta, jax.grad(loss)(theta))

    own = jax.jit(lambda theta: jax.lax.fori_loop(0, case.num_steps, step, theta))
    optimiser = torch.optim.SGD(case.module.parameters(), LEARNING_RATE)
    x, y = _tensor(case.images), torch.as_tensor(labels)

    def theirs() -> None:
        for _ in range(case.num_steps):
            optimiser.zero_grad()
            nn.functional.cross_entropy(case.module(x), y).backward()
            optimiser.step()

    return _milliseconds(lambda: own(case.own.params), theirs, case.num_steps)


def _predictions(case: Case) -> dict[str, float]:
    """Milliseconds of the outputs of one batch, of as many draws as a round has steps, one after another."""
    draws = jax.tree.map(lambda one: jnp.stack([one] * case.num_steps), case.own.params)
    own = jax.jit(lambda draws: jax.lax.map(lambda theta: case.own.apply(theta, case.images), draws))
    x = _tensor(case.images)

    def theirs() -> None:
        with torch.no_grad():
            for _ in range(case.num_steps):
                case.module(x)

    return _milliseconds(lambda: own(draws), theirs, case.num_steps)


def _langevin() -> dict[str, float]:
    """A fit of credo with all that belongs to it, beside a bare loop."""
    images, labels = _images(28, 1), _labels()
    model = credo.models.classification(credo.networks.CNN(NUM_CLASSES))
    half = NUM_SGLD_STEPS // 2
    method = credo.SGLD(num_samples=half, num_warmup=half, num_chains=1, thin=1, batch_size=NUM_ROWS)
    module = lenet()
    x, y = _tensor(images), torch.as_tensor(labels)

    def theirs() -> None:
        kept = []
        for step in range(NUM_SGLD_STEPS):
            module.zero_grad()
            energy = NUM_ROWS * nn.functional.cross_entropy(module(x), y)
            (energy + sum(one.square().sum() for one in module.parameters()) / 2).backward()
            with torch.no_grad():
                for one in module.parameters():
                    one.add_(-LEARNING_RATE / 2 * one.grad + LEARNING_RATE**0.5 * torch.randn_like(one))
            if step >= half:
                kept.append([one.detach().clone() for one in module.parameters()])

    def own() -> Any:
        return credo.fit(model, (images, labels), method, seed=0, progress=False).sample(credo.random.key(0), 1)

    return _milliseconds(own, theirs, 1)


def _milliseconds(own: Callable[[], Any], theirs: Callable[[], Any], num: int) -> dict[str, float]:
    times = best_of(NUM_ROUNDS, {"own": own, "theirs": theirs})
    return {name: 1e3 * time / num for name, time in times.items()}


def _beside(times: dict[str, float]) -> tuple[str, str, str]:
    return f"{times['own']:.1f}", f"{times['theirs']:.1f}", f"{times['theirs'] / times['own']:.2f}"
