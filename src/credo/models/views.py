"""Views: the x′ over which the likelihood of an augmented model averages, row by row.

    p(y | x, theta, Aug) = ∫ p(y | x′, theta) p(x′ | x, Aug) dx′ ≈ 1/K Σₖ p(y | x′ₖ, theta),    x′ₖ ~ p(x′ | x, Aug)

Paper, "Data augmentation". The views of a row are one more axis, after that of the rows: all of them are of one theta,
and what gives each row noise of its own (flipout) gives it to all its views. See `models.augmented`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo._precision import working_precision
from credo.data import Data
from credo.models.augmentations import Augmentation
from credo.models.description import Site
from credo.models.graph import Graph, Node
from credo.models.inputs import NO_INPUTS, Declared, Input, Inputs
from credo.models.summed import LEAST_PROBABILITY, class_law
from credo.predictive.conditional import Conditional, class_probs
from credo.predictive.mixed import Mixed
from credo.typing import Array, Batch, Key, Program

# Names of what an augmentation needs, among the inputs of its model.
PREFIX = "augmentation."
# The site of a view in descriptions and graphs.
VIEW = "x'"


@dataclass(frozen=True)
class Views:
    """p(x′ | x, Aug), and how it is averaged over.

    Arguments:
        num_draws: K; None for all images of a transformation that has finitely many.
        average: whether predictions are averages too.
    """

    transform: Augmentation
    num_draws: int | None
    average: bool = False

    @property
    def num(self) -> int:
        """K."""
        return self.num_draws or self.transform.num_images or 1

    @property
    def is_random(self) -> bool:
        return self.num_draws is not None

    def of(self, x: Array, key: Key | None, inputs: Mapping[str, Any]) -> Array:
        """The views of each row in the model's units, (rows, K, …).

        Arguments:
            key: of the draws; None for always the same ones, made from what each row holds.
            inputs: of the model's own, those of the augmentation among them.
        """
        own = {name.removeprefix(PREFIX): value for name, value in inputs.items() if name.startswith(PREFIX)}
        mean, scale = own.pop("x_mean", None), own.pop("x_scale", None)

        def of_row(row: Array, keys: Key | None) -> Array:
            seen = row if scale is None else row * scale + mean
            if keys is None:
                drawn = jnp.stack(self.transform.images(seen))
            else:
                drawn = jax.vmap(lambda one: self.transform(one, seen, **own))(keys)
            return drawn if scale is None else (drawn - mean) / scale

        return jax.vmap(of_row)(x, self._keys(x, key) if self.is_random else None)

    def _keys(self, x: Array, key: Key | None) -> Key:
        if key is not None:
            return jax.random.split(key, (x.shape[0], self.num))
        return jax.vmap(lambda row: jax.random.split(_content_key(row), self.num))(x)

    def log_rows(
        self, log_rows: Callable[[Batch, Any], tuple[Array, Array]], batch: Batch, inputs: Mapping[str, Any], keys: Any
    ) -> tuple[Array, Array]:
        """log p(theta), and log 1/K Σₖ p(y | x′ₖ, theta) of each row, (rows,).

        Arguments:
            log_rows: from a batch, and a key for what it draws itself, to log p(theta) and log p(y | x, theta) of each
                row.
            keys: one for each row, or None.
        """

        def of_row(views: Array, y: Array, number: Array | None, key: Any) -> tuple[Array, Array]:
            y, number = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.num, *leaf.shape)), (y, number))
            log_prior, terms = log_rows(batch._replace(x=views, y=y, rows=number, num=None), key)
            return log_prior, jnp.broadcast_to(terms, (self.num,))

        views = self.of(batch.x, batch.key, inputs)
        log_prior, terms = jax.vmap(of_row, out_axes=(None, 0))(views, batch.y, batch.rows, keys)
        return log_prior, jax.nn.logsumexp(terms, axis=1) - math.log(self.num)

    def law(self, given: Callable[[Array], Conditional], x: Array, inputs: Mapping[str, Any]) -> Conditional:
        """1/K Σₖ p(y | x′ₖ, theta), with the same views whenever a row is asked about: of classes a law of classes.

        Arguments:
            given: p(y | x, theta) of rows x.
        """
        views, kinds = self.of(x, None, inputs), []

        def logits_of_row(own: Array) -> Array | None:
            kinds.append(given(own))
            probs = class_probs(kinds[-1])
            if probs is None:
                return None
            log_probs = jnp.log(jnp.maximum(probs, LEAST_PROBABILITY))
            return jax.nn.logsumexp(log_probs, axis=0) - math.log(self.num)

        logits = jax.vmap(logits_of_row)(views)
        if logits is not None:
            return class_law(logits, kinds[0])
        parts = jax.vmap(given, in_axes=1)(views)
        return Mixed(parts, jnp.full((self.num, x.shape[0]), -math.log(self.num)))

    def check(self, shape: tuple[int, ...], constants: Mapping[str, np.ndarray]) -> None:
        """Refuse an augmentation that does not fit rows of a shape, or does not keep it; nothing is computed."""
        self.transform.check(shape)
        row = jax.ShapeDtypeStruct(shape, working_precision())
        if self.is_random:
            found = [jax.eval_shape(lambda row: self.transform(random.key(0), row, **constants), row)]
        else:
            found = jax.eval_shape(self.transform.images, row)
        for one in found:
            if getattr(one, "shape", None) != shape:
                raise ValueError(
                    f"transform: {self.transform} turns rows of shape {shape} into {getattr(one, 'shape', one)}; it "
                    "must keep the shape, since the network is made for it"
                )
            if one.dtype != working_precision():
                raise ValueError(
                    f"transform: {self.transform} turns rows of {row.dtype} into {one.dtype}; return x.dtype, as "
                    "x′.astype(x.dtype) does"
                )

    def site(self, shape: tuple[int, ...]) -> Site:
        """In words, for a description."""
        how = "all images" if self.num_draws is None else "1 draw" if self.num == 1 else f"{self.num} draws"
        return Site(VIEW, shape, f"{self.transform}, averaged over {how}")

    def drawn(self, graph: Graph) -> Graph:
        """The belief network with x′ between x and what the rows are made from: paper, figure "Data augmentation"."""
        rows = graph.plates["data"]
        edges = [(VIEW if parent == "x" and child in rows else parent, child) for parent, child in graph.edges]
        place = next(index for index, node in enumerate(graph.nodes) if node.name == "x") + 1
        node = Node(VIEW, "latent", str(self.transform))
        return Graph(
            (*graph.nodes[:place], node, *graph.nodes[place:]),
            (("x", VIEW), *edges),
            graph.plates | {"data": (*rows, VIEW)},
            graph.sizes,
        )


@dataclass(frozen=True, eq=False)
class Augmented:
    """The inputs that a model declares, and what its augmentation needs: the user's units, and constants of its own."""

    inner: Declared | None
    views: Views

    @property
    def arrays(self) -> dict[str, Any]:
        """Arrays that the user has passed to the model, by name."""
        return getattr(self.inner, "arrays", {})

    def bound(self, data: Data) -> Inputs:
        inner = NO_INPUTS if self.inner is None else self.inner.bound(data)
        constants, scaling = self.views.transform.constants(data.x), data.scaling
        self.views.check(data.x.shape[1:], constants)
        # Only predictions that average need what comes from the training inputs.
        by_reference = not self.views.average
        own = {
            name: Input.of(np.asarray(value, working_precision()), by_reference=by_reference)
            for name, value in constants.items()
        }
        if np.any(scaling.x_mean) or np.any(scaling.x_scale != 1):
            units = {name: getattr(scaling, name) for name in ("x_mean", "x_scale")}
            own |= {name: Input.of(np.asarray(value, working_precision())) for name, value in units.items()}
        return Inputs.of(dict(inner.items) | {PREFIX + name: value for name, value in own.items()})


@dataclass(frozen=True)
class Without:
    """A program that is not handed what is its augmentation's."""

    program: Program

    def __post_init__(self) -> None:
        # A fit that is resumed must be of the same program, which is told by its name.
        name = getattr(self.program, "__qualname__", type(self.program).__name__)
        object.__setattr__(self, "__qualname__", name)

    def __call__(self, x: Array, y: Array | None = None, **inputs: Any) -> Any:
        return self.program(x, y, **{name: value for name, value in inputs.items() if not name.startswith(PREFIX)})


def _content_key(row: Array) -> Key:
    return jax.random.fold_in(random.key(0), random.content(row))
