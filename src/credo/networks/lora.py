"""Low-rank adaptation: a large network stays as it is, and small matrices beside its dense layers are the parameters.

    s = W₀ᵀ a + (A B)ᵀ a,    A (in, r),  B (r, out),  theta = the A and B of the chosen layers

So a network of millions of weights gets a posterior over some thousands: Laplace, variational inference and sampling
take what a small network takes. A B is never written out; data pass through A, then through B, and curvature sees two
dense layers.

Hu et al., "LoRA: low-rank adaptation of large language models" (2022); Yang et al., "Bayesian low-rank adaptation for
large language models" (2024).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least
from credo._dataflow import DataFlow, Product, leaves, plain, trace
from credo._precision import in_working_precision
from credo._text import nearest
from credo.networks.functional import Network, functional
from credo.typing import Array, Theta

# The two factors of what is added to an array: to (rows, columns), (rows, r) times (r, columns).
FACTORS = "lora_a", "lora_b"


def lora(net: Any, rank: int = 4, *, select: str | Sequence[str] = "*", x: Any = None, seed: int = 0) -> Network:
    """A network whose parameters are low-rank adapters of its dense layers; its own weights are constants.

    It starts as the network itself: one factor of each adapter is zero. A posterior holds the adapters alone, so
    `credo.load(folder, network=net)` asks for the adapted network again.

    Arguments:
        net: anything that `functional` takes, such as `from_torch(module, example_inputs)`.
        rank: r, of every adapter.
        select: which layers, by the paths of their arrays with `*` wildcards, one pattern or several. Of those, the
            matrices are adapted, but not tables in which rows are looked up.
        x: an example batch, for a network that does not know its input shape yet.
        seed: of the factors that are not zero.

    >>> from credo.networks import MLP
    >>> net = lora(MLP([50], 1, inputs=3), rank=2, select="hidden.*")
    >>> {path: array.shape for path, array in net.params.items()}
    {'hidden.0.kernel.lora_a': (3, 2), 'hidden.0.kernel.lora_b': (2, 50)}
    """
    require_at_least(1, rank=rank)
    base = functional(net, x)
    chosen = _chosen(base, (select,) if isinstance(select, str) else tuple(select))
    generator = np.random.default_rng(seed)
    params: dict[str, np.ndarray] = {}
    fan_in: dict[str, int] = {}
    for path in chosen:
        (rows, columns), inputs = base.params[path].shape, base.fan_in[path]
        first, second = (f"{path}.{factor}" for factor in FACTORS)
        # In PyTorch's order the columns are the inputs, and what data meet first is the second factor.
        down, up = (second, first) if inputs == columns else (first, second)
        params |= {first: np.zeros((rows, rank), np.float32), second: np.zeros((rank, columns), np.float32)}
        params[down] = (generator.standard_normal(params[down].shape) / math.sqrt(inputs)).astype(np.float32)
        fan_in |= {down: inputs, up: rank}

    def apply(theta: Theta, x: Array) -> Array:
        weights = in_working_precision(base.params)
        kernels = {path: weights[path] for path in chosen}
        closed, _ = trace(lambda own: base.apply({**weights, **own}, x), kernels)
        flow = _Adapted({path: tuple(theta[f"{path}.{factor}"] for factor in FACTORS) for path in chosen})
        (outputs,) = flow.run(closed, leaves(kernels))
        _require_products(flow)
        return outputs

    return Network(apply, in_working_precision(params), fan_in)


def _chosen(base: Network, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The paths of the matrices to adapt."""
    matrices = [path for path, array in base.params.items() if array.ndim == 2 and base.fan_in[path] > 1]
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in matrices):
            raise ValueError(
                f"select: {pattern!r} matches no dense layer{nearest(pattern, matrices)}; they are "
                f"{', '.join(matrices) or 'none: the network has no matrices'}"
            )
    return tuple(path for path in matrices if any(fnmatchcase(path, pattern) for pattern in patterns))


@dataclass
class _Adapted(DataFlow):
    """Adds to each product with a chosen array that with its adapter."""

    adapters: dict[str, tuple[Array, Array]] = field(default_factory=dict)

    def product(self, product: Product) -> Array | None:
        leaf = product.weights
        if product.is_convolution or leaf.entries.ndim != 2 or len(product.contracted) != 1:
            return None
        first, second = self.adapters[leaf.name]
        # Whether the data meet the rows of the array, as it is in theta, or its columns.
        is_turned = leaf.entries[0, -1] != leaf.shape[1] - 1
        meets_rows = (product.order[0] == 0) != is_turned
        down, up = (first, second) if meets_rows else (second.T, first.T)
        data = plain(product.data)
        added = jnp.tensordot(jnp.tensordot(data, down, axes=(product.contracted[0], 0)), up, axes=1)
        return product.times(data, leaf.value) + (added if product.side == 0 else jnp.moveaxis(added, -1, 0))


def _require_products(flow: _Adapted) -> None:
    for path in flow.adapters:
        uses = flow.uses[path]
        if not uses or set(uses) != {"a product"}:
            raise ValueError(
                f"select: {path!r} is no matrix of a dense layer: the network uses it by {', '.join(uses) or 'nothing'}"
                "; choose others"
            )
