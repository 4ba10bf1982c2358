"""A covariance of blocks, or one full block."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._schema import checked
from credo.covariance.layers import Jacobian, Layer
from credo.covariance.layout import Layout, single_layers
from credo.covariance.root import Root, Shapes
from credo.typing import Array, Theta


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Blocks(Root):
    """√Σ of lower-triangular blocks, each over consecutive entries of a group of arrays; one block is a full root.

    Arguments:
        roots: for each group its blocks, (number of blocks, width, width), lower triangular.
        layout: what belongs to which group.
    """

    roots: Theta
    layout: Layout

    def shapes(self) -> Shapes:
        return {name: shape for _, arrays in self.layout.groups for name, shape in arrays}

    def noise_shapes(self) -> Shapes:
        return {name: blocks.shape[:2] for name, blocks in self.roots.items()}

    def offset(self, noise: Theta) -> Theta:
        products = {name: jnp.einsum("bij,bj->bi", blocks, noise[name]) for name, blocks in self.roots.items()}
        return self.layout.scatter(products)

    def variance(self) -> Theta:
        return self.layout.scatter({name: jnp.sum(blocks**2, axis=-1) for name, blocks in self.roots.items()})

    def half_log_det(self) -> Array:
        diagonals = [jnp.diagonal(blocks, axis1=1, axis2=2) for blocks in self.roots.values()]
        # Entries that only fill up the last block have scale one and add nothing.
        return sum((jnp.sum(jnp.log(diagonal)) for diagonal in diagonals), start=jnp.zeros(()))

    def squared_length(self, offset: Theta) -> Array:
        whitened = [
            jax.scipy.linalg.solve_triangular(self.roots[name], part[..., None], lower=True)
            for name, part in self.layout.gather(offset, self.noise_shapes()).items()
        ]
        return sum((jnp.sum(part**2) for part in whitened), start=jnp.zeros(()))

    def restricted(self, names: Collection[str]) -> Root:
        groups = tuple((group, arrays) for group, arrays in self.layout.groups if arrays[0][0] in names)
        chosen = Blocks({group: self.roots[group] for group, _ in groups}, Layout(groups))
        # Which refuses names that are not those of whole groups.
        return Root.restricted(chosen, names)

    def by_layer(self, layers: Collection[Layer]) -> dict[Layer, Callable[[Jacobian], Array]]:
        if any(blocks.shape[0] > 1 for blocks in self.roots.values()):
            return {}
        single = single_layers(self.layout, tuple(layers))
        return {layer: partial(self._of_layer, group, layer) for group, layer in single.items() if layer.meets_once}

    def _of_layer(self, group: str, layer: Layer, jacobian: Jacobian) -> Array:
        # Entries of the root in the order of the layer's matrix: a and g are contracted one after the other.
        back = np.argsort(self.layout.order(group, layer))
        factor = self.roots[group][0][back].reshape(jacobian.inputs.shape[-1], layer.num_out, -1)
        along = jnp.einsum("ni,iof->nof", jacobian.inputs[:, 0], factor)
        features = jnp.einsum("kno,nof->nkf", jacobian.gradients[:, :, 0], along)
        return jnp.einsum("nkf,nlf->nkl", features, features)

    def _written_out(self, layer: Layer) -> int:
        return math.prod(layer.shape)

    def config(self) -> dict[str, Any]:
        return super().config() | {"layout": self.layout.groups}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {"layout": checked("layout", {"groups": config["layout"]}, Layout)}
