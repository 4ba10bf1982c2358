"""Covariance roots: how a Gaussian over many parameters is stored, drawn from and measured.

Paper, appendix "Implementing parameter-efficient normal distributions": with ε ~ N(0, I),

    theta = mean + √Σ ε,    √Σ √Σᵀ = Σ

and √Σ has one of three shapes: diagonal, block-diagonal (one block is the full Cholesky root), or [D, L], a diagonal
beside r columns. Two more come from a precision, Σ⁻¹ = P + H with P diagonal: H of Kronecker factors per layer, or of
low rank. They are shared by variational inference, Laplace and SWAG. theta stays a tree of named arrays; a root holds
arrays that follow it, and may leave out arrays that are known for certain.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._files import LoadError, group_of, named
from credo._precision import working_precision
from credo._schema import reading, require_numbers
from credo.covariance.layers import Jacobian, Layer, jacobians, row_jacobian
from credo.typing import Array, Key, Theta

Shapes = dict[str, tuple[int, ...]]
# Outputs, (rows, K), of some arrays of theta and rows of data.
Function = Callable[[Theta, Array], Array]


@dataclass(frozen=True)
class Root(ABC):
    """√Σ of a Gaussian over theta. Every answer is a function of the root alone, so that gradients flow through it."""

    @abstractmethod
    def shapes(self) -> Shapes:
        """The arrays of theta that it covers."""

    @abstractmethod
    def noise_shapes(self) -> Shapes:
        """What `offset` needs: ε has n entries, or n + r."""

    @abstractmethod
    def offset(self, noise: Theta) -> Theta:
        """√Σ ε for standard normal noise as `noise_shapes` asks."""

    @abstractmethod
    def variance(self) -> Theta:
        """The diagonal of Σ, in the shape of theta."""

    @abstractmethod
    def half_log_det(self) -> Array:
        """½ log det Σ."""

    @abstractmethod
    def squared_length(self, offset: Theta) -> Array:
        """offsetᵀ Σ⁻¹ offset."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arrays that it covers."""
        return tuple(self.shapes())

    @property
    def num_entries(self) -> int:
        """n, the number of entries in these arrays."""
        return sum(math.prod(shape) for shape in self.shapes().values())

    # -- the Gaussian ---------------------------------------------------------------------------------------

    def noise(self, key: Key) -> Theta:
        """ε ~ N(0, I), a key of its own for each array."""
        shapes = self.noise_shapes()
        keys = jax.random.split(key, len(shapes))
        return {name: random.normal(own, shape) for own, (name, shape) in zip(keys, shapes.items(), strict=True)}

    def draw(self, key: Key) -> Theta:
        """√Σ ε for fresh noise."""
        return self.offset(self.noise(key))

    def draw_and_log_q(self, key: Key) -> tuple[Theta, Array]:
        """√Σ ε for fresh noise, and log q there."""
        offset = self.draw(key)
        return offset, self.log_density(offset)

    def entropy(self) -> Array:
        """H[N(mean, Σ)] = ½ log det Σ + n/2 log(2πe)."""
        return self.half_log_det() + 0.5 * self.num_entries * math.log(2 * math.pi * math.e)

    def log_density(self, offset: Theta) -> Array:
        """log N(mean + offset; mean, Σ)."""
        return -0.5 * self.squared_length(offset) - self.half_log_det() - 0.5 * self.num_entries * math.log(2 * math.pi)

    def transposed(self, gradient: Theta) -> Theta:
        """√Σᵀ gradient, in the shapes of the noise."""
        shapes = {name: jax.ShapeDtypeStruct(shape, working_precision()) for name, shape in self.noise_shapes().items()}
        (noise,) = jax.linear_transpose(self.offset, shapes)(gradient)
        return noise

    def restricted(self, names: Collection[str]) -> "Root":
        """√Σ of some of its arrays, where these are independent of the others."""
        if set(names) != set(self.names):
            raise ValueError(f"there is no {type(self).__name__} root of {', '.join(names)} alone")
        return self

    # -- the outputs of a linearised network ------------------------------------------------------------------

    def output_covariance(self, function: Function, mean: Theta, x: Array, layers: Collection[Layer]) -> Array:
        """J Σ Jᵀ of the outputs of each row, (rows, K, K), with J their Jacobian in theta at the mean.

        Arguments:
            function: whose outputs they are.
            layers: of that function, as far as they are made of arrays that are uncertain.
        """
        parts, total = self.by_layer(layers), jnp.zeros(())
        # What is predicted may leave out layers that what was observed depends on, such as those of a noise.
        kernels = {layer.kernel for layer in layers}
        used = {layer: part for layer, part in parts.items() if layer.kernel in kernels}
        if used:
            some = {name: mean[name] for name in self.names}
            _, found = jacobians(lambda some: function(some, x), some, tuple(used))
            total += sum(part(found[layer.kernel]) for layer, part in used.items())
        rest = self._outside(parts)
        if rest:
            features = self.restricted(rest).output_features(function, mean, x)
            total += jnp.einsum("nkf,nlf->nkl", features, features)
        return total

    def output_features(self, function: Function, mean: Theta, x: Array) -> Array:
        """J √Σ, (rows, K, entries of ε): its squares add up to the covariance, within a row and between rows."""
        found = row_jacobian(function, {name: mean[name] for name in self.names}, x)

        def feature(gradient: Theta) -> Array:
            noise = self.transposed(gradient)
            return jnp.concatenate([noise[name].ravel() for name in self.noise_shapes()])

        return jax.vmap(jax.vmap(feature))(found)

    def by_layer(self, layers: Collection[Layer]) -> dict[Layer, Callable[[Jacobian], Array]]:
        """The layers whose part of J Σ Jᵀ needs no Jacobian written out, and that part as a function of its factors."""
        return {}

    def largest_jacobian(self, layers: Collection[Layer]) -> int:
        """Numbers per row and output in the largest Jacobian that `output_covariance` writes out."""
        parts = self.by_layer(layers)
        return max([1, *map(self._written_out, parts), sum(map(math.prod, self._outside(parts).values()))])

    def _written_out(self, layer: Layer) -> int:
        """Numbers per row and output that the part of one of `by_layer` writes out."""
        return 1 if layer.meets_once else math.prod(layer.shape)

    def _outside(self, layers: Iterable[Layer]) -> Shapes:
        """The arrays that belong to none of the layers."""
        inside = {name for layer in layers for name in layer.names}
        return {name: shape for name, shape in self.shapes().items() if name not in inside}

    # -- storage ----------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """What JSON must know of it, beside its arrays: its kind, and what else is no tree of arrays."""
        return {"kind": type(self).__name__}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Its arrays, by field and name."""
        config = self.config()
        return named(**{field.name: getattr(self, field.name) for field in fields(self) if field.name not in config})

    @classmethod
    def from_arrays(cls, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "Root":
        """The root, of any kind, that has this `config` and these arrays."""
        kind = {kind.__name__: kind for kind in Root.__subclasses__()}[config["kind"]]
        # A model without theta, all of whose weights are parameters, has empty trees.
        trees = {field.name: group_of(arrays, field.name) for field in fields(kind) if field.name not in config}
        return kind(**trees, **kind.from_config(config, arrays))

    @classmethod
    def from_stored(
        cls, source: Any, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray], shapes: Shapes
    ) -> "Root":
        """The same of what was read: a LoadError where it is no root over arrays of these shapes, or over some."""
        for name, array in arrays.items():
            require_numbers(source, f"root/{name}", array)
        with reading(source, "root"):
            root = cls.from_arrays(config, arrays)
            covered = {name: tuple(shapes[name]) for name in root.shapes()}
            noise = root.noise_shapes()
        require_made(source, "root", root.variance, covered)
        require_made(source, "root", lambda: root.offset({name: jnp.zeros(noise[name]) for name in noise}), covered)
        require_made(source, "root", lambda: {"": root.half_log_det()}, {"": ()})
        for name, variance in root.variance().items():
            require_numbers(source, f"the variance of {name}", np.asarray(variance), least=0.0)
        return root

    @classmethod
    def from_config(cls, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """The fields of a kind that are no trees of arrays, from its `config`."""
        return {}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Joined(Root):
    """Roots over different arrays of theta, independent of each other."""

    parts: tuple[Root, ...]

    def shapes(self) -> Shapes:
        return {name: shape for part in self.parts for name, shape in part.shapes().items()}

    def noise_shapes(self) -> Shapes:
        return {
            f"{index}/{name}": shape
            for index, part in enumerate(self.parts)
            for name, shape in part.noise_shapes().items()
        }

    def offset(self, noise: Theta) -> Theta:
        offset: Theta = {}
        for index, part in enumerate(self.parts):
            offset |= part.offset({name: noise[f"{index}/{name}"] for name in part.noise_shapes()})
        return offset

    def variance(self) -> Theta:
        return {name: leaf for part in self.parts for name, leaf in part.variance().items()}

    def half_log_det(self) -> Array:
        return sum((part.half_log_det() for part in self.parts), start=jnp.zeros(()))

    def squared_length(self, offset: Theta) -> Array:
        return sum((part.squared_length(offset) for part in self.parts), start=jnp.zeros(()))

    def output_covariance(self, function: Function, mean: Theta, x: Array, layers: Collection[Layer]) -> Array:
        return sum((part.output_covariance(function, mean, x, layers) for part in self.parts), start=jnp.zeros(()))

    def largest_jacobian(self, layers: Collection[Layer]) -> int:
        return max(part.largest_jacobian(layers) for part in self.parts)

    def config(self) -> dict[str, Any]:
        return super().config() | {"parts": [part.config() for part in self.parts]}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Those of each part, under its number."""
        return named(**{str(index): part.to_arrays() for index, part in enumerate(self.parts)})

    @classmethod
    def from_config(cls, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        configs = enumerate(config["parts"])
        return {"parts": tuple(Root.from_arrays(part, group_of(arrays, str(index))) for index, part in configs)}


def require_made(source: Any, what: str, make: Callable[[], Theta], shapes: Shapes) -> None:
    """Refuse what was read if arrays of other shapes come of it; nothing is computed."""
    with reading(source, what):
        found = {name: leaf.shape for name, leaf in jax.eval_shape(make).items()}
    if found != shapes:
        raise LoadError(f"{source} does not fit the model: its {what} is of other arrays, or of other shapes")


def layer_covariance(layer: Layer, jacobian: Jacobian, variance: Array) -> Array:
    """J diag(variance) Jᵀ of one layer, (rows, K, K), for a variance in the shape of its matrix."""
    if layer.meets_once:
        gradients = jacobian.gradients[:, :, 0]
        weights = jacobian.inputs[:, 0] ** 2 @ variance
        return jnp.einsum("kno,no,lno->nkl", gradients, weights, gradients)
    whole = jacobian.whole() * jnp.sqrt(variance)
    return jnp.einsum("knio,lnio->nkl", whole, whole)
