"""Families for variational inference: which q is learned, and from how many numbers.

A Gaussian is a mean and a covariance root; a flow is a location and a warp, a root with bent noise.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from credo._checks import require_at_least
from credo._precision import working_precision
from credo._text import nearest
from credo.covariance import Blocks, Diagonal, LowRank, Root
from credo.covariance.layout import Layout, Template
from credo.covariance.warp import Warp
from credo.typing import Array, Theta

# The root has n² numbers and a step sees a draw or a few: beyond this a flow is slow, and its gradient mostly noise.
LARGEST_FLOW = 2_000
INSTEAD_OF_FLOW = "take family='low_rank' or family='diagonal', or credo.DeepEnsemble for more than one mode"


@dataclass(frozen=True)
class Family:
    """A set of distributions: unconstrained numbers phi in, a covariance root (or a warp) out.

    `is_gaussian` says that it is a root, with an entropy in closed form; `is_independent`, that Σ is diagonal;
    `holds_any_covariance`, that Σ may be any.
    """

    is_gaussian: ClassVar[bool] = True
    is_independent: ClassVar[bool] = False
    holds_any_covariance: ClassVar[bool] = False

    def init(self, template: Template, scale: float) -> Theta:
        """phi of the root scale·I."""
        raise TypeError(f"{type(self).__name__} has no init")

    def root(self, phi: Theta, template: Template) -> Root | Warp:
        """The root that phi stands for: what makes noise into an offset from the mean."""
        raise TypeError(f"{type(self).__name__} has no root")

    def num_parameters(self, template: Template) -> int:
        """How many numbers the root is learned from; the mean has n more."""
        raise TypeError(f"{type(self).__name__} has no num_parameters")


@dataclass(frozen=True)
class MeanField(Family):
    """Σ = diag(scale²): n numbers."""

    is_independent: ClassVar[bool] = True

    def init(self, template: Template, scale: float) -> Theta:
        return {name: jnp.full(leaf.shape, math.log(scale)) for name, leaf in template.items()}

    def root(self, phi: Theta, template: Template) -> Diagonal:
        return Diagonal({name: jnp.exp(phi[name]) for name in template})

    def num_parameters(self, template: Template) -> int:
        return _size(template)


@dataclass(frozen=True)
class LowRankFamily(Family):
    """√Σ = [D, L], L lower triangular with r columns: n + n·r − r(r − 1)/2 numbers."""

    rank: int = 10

    def __post_init__(self) -> None:
        require_at_least(1, rank=self.rank)

    def init(self, template: Template, scale: float) -> Theta:
        factors = {f"factor/{name}": self._start(name, template) for name in template}
        return MeanField().init(template, scale) | factors

    def root(self, phi: Theta, template: Template) -> LowRank:
        factor = {name: phi[f"factor/{name}"] for name in template}
        for name, mask in self._masks(template).items():
            factor[name] = factor[name] * mask
        return LowRank({name: jnp.exp(phi[name]) for name in template}, factor)

    def num_parameters(self, template: Template) -> int:
        num, rank = _size(template), min(self.rank, _size(template))
        return num + num * rank - rank * (rank - 1) // 2

    def _start(self, name: str, template: Template) -> Array:
        """Small and of both signs: columns that start at zero have no gradient, equal ones stay equal."""
        rank = min(self.rank, _size(template))
        rng = np.random.default_rng(list(template).index(name))
        columns = rng.standard_normal((*template[name].shape, rank), np.float32)
        return jnp.asarray(0.1 / np.sqrt(rank) * columns, working_precision())

    def _masks(self, template: Template) -> dict[str, np.ndarray]:
        """L is lower triangular: entry i has columns 0 to i. Only the first r entries of theta notice."""
        masks, first, rank = {}, 0, min(self.rank, _size(template))
        for name, leaf in template.items():
            if first >= rank - 1:
                break
            rows = first + np.arange(math.prod(leaf.shape))
            masks[name] = (rows[:, None] >= np.arange(rank)).astype(working_precision()).reshape(*leaf.shape, rank)
            first += math.prod(leaf.shape)
        return masks


@dataclass(frozen=True)
class BlockFamily(Family):
    """√Σ of lower-triangular blocks: one per layer, or of a given width, n·(w + 1)/2 numbers."""

    width: int | None = None

    def __post_init__(self) -> None:
        if self.width is not None:
            require_at_least(1, width=self.width)

    def layout(self, template: Template) -> Layout:
        return Layout.by_layer(template) if self.width is None else Layout.together(template)

    def init(self, template: Template, scale: float) -> Theta:
        phi = {}
        for group, (num, width) in self._shapes(template).items():
            # The logarithm of the diagonal is learned; what fills up the last block stays at one.
            diagonal = np.full(num * width, math.log(scale), working_precision())
            diagonal[self.layout(template).sizes()[group] :] = 0.0
            phi[group] = jnp.asarray(np.eye(width, dtype=working_precision()) * diagonal.reshape(num, width, 1))
        return phi

    def root(self, phi: Theta, template: Template) -> Blocks:
        layout, roots = self.layout(template), {}
        for group, (num, width) in self._shapes(template).items():
            filled = (np.arange(num * width) < layout.sizes()[group]).reshape(num, width)
            raw = jnp.where(filled[:, :, None] & filled[:, None, :], phi[group], 0.0)
            scale = jnp.exp(jnp.diagonal(raw, axis1=1, axis2=2))
            # Rows relative to their diagonal: a step of the optimiser means the same whatever the units of theta.
            roots[group] = scale[:, :, None] * (jnp.tril(raw, -1) + jnp.eye(width))
        return Blocks(roots, layout)

    def num_parameters(self, template: Template) -> int:
        total = 0
        for group, (_, width) in self._shapes(template).items():
            full, rest = divmod(self.layout(template).sizes()[group], width)
            total += full * width * (width + 1) // 2 + rest * (rest + 1) // 2
        return total

    def _shapes(self, template: Template) -> dict[str, tuple[int, int]]:
        """Number and width of the blocks of each group."""
        sizes = self.layout(template).sizes()
        widths = {group: min(self.width or size, size) for group, size in sizes.items()}
        return {group: (math.ceil(size / widths[group]), widths[group]) for group, size in sizes.items()}


@dataclass(frozen=True)
class FullRank(BlockFamily):
    """√Σ a full Cholesky root: n(n + 1)/2 numbers."""

    holds_any_covariance: ClassVar[bool] = True

    def layout(self, template: Template) -> Layout:
        return Layout.together(template)


@dataclass(frozen=True)
class FlowFamily(Family):
    """A normalising flow, theta = location + √Σ f(ε): whatever shape the posterior has, for small models.

    √Σ is a full root, so every Gaussian is in the family: n(n + 1)/2 numbers, and about
    3·n·(bins + hidden) more for each layer.

    Arguments:
        layers: of f, each a spline and a coupling; two let each half of theta bend the other.
        hidden: units of the network in each coupling.
        bins: of each spline.
    """

    is_gaussian: ClassVar[bool] = False

    layers: int = 4
    hidden: int = 32
    bins: int = 8

    def __post_init__(self) -> None:
        require_at_least(1, layers=self.layers, hidden=self.hidden)
        require_at_least(2, bins=self.bins)

    def init(self, template: Template, scale: float) -> Theta:
        num = _small(template)
        shapes = self._shapes(num)
        warp = {f"warp/{name}": jnp.zeros(shape) for name, shape in shapes.items()}
        # f is the identity while the outer matrix is zero; an inner one at zero too would have no gradient.
        rng = np.random.default_rng(num)
        inner = rng.standard_normal(shapes["inner"], np.float32) / np.sqrt(max(num / 2, 1))
        return FullRank().init(template, scale) | warp | {"warp/inner": jnp.asarray(inner, working_precision())}

    def root(self, phi: Theta, template: Template) -> Warp:
        layers = {name: phi[f"warp/{name}"] for name in self._shapes(_size(template))}
        return Warp(FullRank().root(phi, template), layers)

    def num_parameters(self, template: Template) -> int:
        shapes = self._shapes(_small(template))
        return FullRank().num_parameters(template) + sum(math.prod(shape) for shape in shapes.values())

    def _shapes(self, num: int) -> dict[str, tuple[int, ...]]:
        """Of the numbers of f, over all layers."""
        own = {
            "bins": (num, 3 * self.bins - 1),
            "inner": (self.hidden, num),
            "inner_bias": (self.hidden,),
            "outer": (2, num, self.hidden),
            "outer_bias": (2, num),
        }
        return {name: (self.layers, *shape) for name, shape in own.items()}


FAMILIES: dict[str, type[Family]] = {
    "diagonal": MeanField,
    "block": BlockFamily,
    "low_rank": LowRankFamily,
    "full": FullRank,
    "flow": FlowFamily,
}


def as_family(family: Any) -> Family:
    """A family by its name, or the family itself."""
    if isinstance(family, Family):
        return family
    if family in FAMILIES:
        return FAMILIES[family]()
    raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}{nearest(str(family), FAMILIES)}")


def _small(template: Template) -> int:
    """The size of theta, where a flow can be learned for it."""
    num = _size(template)
    if num > LARGEST_FLOW:
        raise ValueError(
            f"family='flow' is for models of up to {LARGEST_FLOW:,} numbers, and this one has {num:,}; "
            + INSTEAD_OF_FLOW
        )
    return num


def _size(template: Template) -> int:
    return sum(math.prod(leaf.shape) for leaf in template.values())
