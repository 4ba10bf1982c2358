"""Variational inference of a mean-field Gaussian with one of the torch peers; prints seconds per step as JSON.

    python vi_torch.py PEER [NETWORK …]

Batches of 128 taken by index, Adam, one draw per step, KL/N. Each peer gets its best: one thread or several, Adam is
fused, denormal numbers are flushed, Pyro's validation is off.
"""

import json
import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_timing import Step, prepare, seconds_per_step

NUM_DATA, BATCH_SIZE = 6_000, 128
CONV, DENSE = "conv", "dense"
# (kind, inputs, outputs); convolutions are of 5 × 5 without padding, and followed by max-pooling 2.
NETWORKS = {
    "mlp": ((DENSE, 784, 400), (DENSE, 400, 400), (DENSE, 400, 10)),
    "cnn": ((CONV, 1, 16), (CONV, 16, 32), (DENSE, 512, 128), (DENSE, 128, 10)),
}


def main() -> None:
    prepare()
    peer, *names = sys.argv[1:]
    make = pyro_step if peer == "pyro" else layers_step
    print(json.dumps({name: measure(make(peer, NETWORKS[name]), name) for name in names or NETWORKS}))


def measure(step: Step, name: str) -> float:
    x = torch.rand(NUM_DATA, *((1, 28, 28) if name == "cnn" else (784,)))
    y = torch.randint(0, 10, (NUM_DATA,))
    return seconds_per_step(step, x, y, BATCH_SIZE)


def forward(x: Tensor, layers: Any) -> tuple[Tensor, Any]:
    """The logits, and the sum of the KL terms of layers that return one; `layers` are (kind, function)."""
    kl: Any = 0.0
    for number, (kind, layer) in enumerate(layers):
        x = layer(x.flatten(1) if kind == DENSE else x)
        if isinstance(x, tuple):
            x, kl = x[0], kl + x[1]
        x = functional.max_pool2d(x, 2) if kind == CONV else x
        x = functional.relu(x) if number < len(layers) - 1 else x
    return x, kl


def layers_step(peer: str, network: Any) -> Step:
    """A step with the stochastic layers of torchbnn, blitz or bayesian-torch."""
    dense, conv, kl_of = LIBRARIES[peer]()
    layers = [(kind, (dense if kind == DENSE else conv)(inputs, outputs)) for kind, inputs, outputs in network]
    model = nn.ModuleList([layer for _, layer in layers])
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def step(x: Tensor, y: Tensor) -> None:
        optimizer.zero_grad()
        logits, kl = forward(x, layers)
        loss = functional.cross_entropy(logits, y) + (kl if kl_of is None else kl_of(model)) / NUM_DATA
        loss.backward()
        optimizer.step()

    return step


def _torchbnn() -> tuple[Any, Any, Any]:
    import torchbnn

    return (
        lambda inputs, outputs: torchbnn.BayesLinear(0, 0.1, inputs, outputs),
        lambda inputs, outputs: torchbnn.BayesConv2d(0, 0.1, inputs, outputs, 5),
        torchbnn.BKLLoss(reduction="sum"),
    )


def _blitz() -> tuple[Any, Any, Any]:
    from blitz.losses import kl_divergence_from_nn
    from blitz.modules import BayesianConv2d, BayesianLinear

    return BayesianLinear, lambda inputs, outputs: BayesianConv2d(inputs, outputs, (5, 5)), kl_divergence_from_nn


def _reparameterization() -> tuple[Any, Any, Any]:
    from bayesian_torch.layers import Conv2dReparameterization, LinearReparameterization

    return LinearReparameterization, lambda inputs, outputs: Conv2dReparameterization(inputs, outputs, 5), None


def _flipout() -> tuple[Any, Any, Any]:
    from bayesian_torch.layers import Conv2dFlipout, LinearFlipout

    return LinearFlipout, lambda inputs, outputs: Conv2dFlipout(inputs, outputs, 5), None


# The dense layer, the convolution, and the KL term of a whole network where the layers do not return their own.
LIBRARIES = {
    "torchbnn": _torchbnn,
    "blitz": _blitz,
    "bayesian-torch": _reparameterization,
    "bayesian-torch-flipout": _flipout,
}


def pyro_step(peer: str, network: Any) -> Step:
    """A step of Pyro's SVI with AutoDiagonalNormal."""
    import pyro
    import pyro.distributions as dist
    from pyro.infer import SVI, Trace_ELBO
    from pyro.infer.autoguide import AutoDiagonalNormal

    pyro.enable_validation(False)
    pyro.clear_param_store()

    def weights(name: str, *shape: int) -> Tensor:
        return pyro.sample(name, dist.Normal(0.0, 1.0).expand(shape).to_event(len(shape)))

    def program(x: Tensor, y: Tensor) -> None:
        layers = []
        for number, (kind, inputs, outputs) in enumerate(network):
            product, window = (functional.linear, ()) if kind == DENSE else (functional.conv2d, (5, 5))
            kernel = weights(f"kernel{number}", outputs, inputs, *window)
            bias = weights(f"bias{number}", outputs)
            layers.append((kind, lambda x, product=product, kernel=kernel, bias=bias: product(x, kernel, bias)))
        logits = forward(x, layers)[0]
        with pyro.plate("data", NUM_DATA, subsample=y):
            pyro.sample("y", dist.Categorical(logits=logits), obs=y)

    # `subsample` only sets the scale N/n of the likelihood: the rows are taken outside.
    optimizer = pyro.optim.Adam({"lr": 1e-3, "fused": True})
    return SVI(program, AutoDiagonalNormal(program, init_scale=0.01), optimizer, Trace_ELBO()).step


if __name__ == "__main__":
    main()
