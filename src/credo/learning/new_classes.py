"""Classes that nobody had seen before: the output layer grows, and what is known about the others is kept.

The outputs of the larger network are W = W_old M + W_prior N, of the weights that were learned and of draws from the
prior. M says what has become of the old outputs and N = I − M⁺M is what they do not tell:

    K classes with an output each         M = (I 0):          their outputs stay, and new ones are drawn from the prior
    two classes by one output             M = (−½ ½ 0 …):     half of the old logit for the one, half against the other

In both cases the odds between the old classes are what they were, draw by draw.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from credo import random
from credo._precision import working_precision
from credo.covariance import Blocks, Diagonal, Joined, Kronecker, Root
from credo.covariance.layout import Layout
from credo.data import Data
from credo.diagnostics.variational import ElboEvidence
from credo.learning.beliefs import NUM_DRAWS
from credo.learning.going_on import NothingToGoOnFrom
from credo.models.priors.from_posterior import of_draws
from credo.models.program import Model
from credo.networks.zoo import ZooNetwork, from_config
from credo.posterior import Draws, Gaussian, Mixture
from credo.typing import Theta


def with_new_classes(posterior: Any, data: Data, *, seed: int = 0) -> Any:
    """The same posterior, of a model that has a class for each label of the data.

    A Gaussian stays one, of the same structure: diagonal, blocks, full or Kronecker; a low rank becomes a diagonal.
    Draws stay draws, and other kinds become draws.

    Arguments:
        posterior: of a model of `credo.models.classification`, whose network is one of `credo.networks`.
        data: with labels that the model has no class for.
    """
    if isinstance(posterior, Mixture):
        members = (with_new_classes(one, data, seed=seed + index) for index, one in enumerate(posterior.members))
        return replace(posterior, members=tuple(members))
    growth = Growth.of(posterior.model, int(data.y.max()) + 1, data)
    key = random.key(seed)
    if isinstance(posterior, Gaussian):
        prior = of_draws(growth.prior_draws(key, NUM_DRAWS), np.full(NUM_DRAWS, 1 / NUM_DRAWS))
        mean, root = growth.of_arrays(posterior.mean, prior.mean), growth.of_root(posterior.root, prior.variance)
        return replace(posterior, model=growth.model, mean=mean, root=root, trace=None, evidence=ElboEvidence())
    theta, weights = posterior.weighted_draws(NUM_DRAWS)
    drawn = growth.prior_draws(key, len(weights))
    grown = {name: leaf[None] for name, leaf in growth.of_arrays(theta, drawn).items()}
    common = {"scaling": posterior.scaling, "probes": posterior.probes}
    return Draws(growth.model, grown, posterior.provenance, weights=weights[None], **common)


@dataclass(frozen=True, eq=False)
class Growth:
    """From theta of a model to that of one with more classes.

    Arguments:
        model: with more classes, bound to the data.
        heads: the arrays whose last axis is that of the outputs.
        kept: M, (old outputs, new outputs).
    """

    model: Model
    heads: tuple[str, ...]
    kept: np.ndarray

    @classmethod
    def of(cls, model: Model, num_classes: int, data: Data) -> "Growth":
        """How a bound model comes to have that many classes; a ValueError where it cannot."""
        larger = _larger(model, num_classes).bind(data).freeze(model.frozen_xi)
        before, after = ({name: leaf.shape for name, leaf in one.template.items()} for one in (model, larger))
        heads = tuple(name for name in after if after[name] != before.get(name))
        num_outputs = before[heads[0]][-1] if heads and heads[0] in before else 0
        expected = {name: (*before.get(name, ())[:-1], num_classes) for name in heads}
        if before.keys() != after.keys() or any(after[name] != expected[name] for name in heads):
            raise _cannot_grow(num_classes, "its last layer is not the only one that depends on the number of outputs")
        kept = np.eye(num_outputs, num_classes)
        if num_outputs == 1:
            kept[0, :2] = -0.5, 0.5
        return cls(larger, heads, kept)

    @property
    def drawn(self) -> np.ndarray:
        """N = I − M⁺M, (new outputs, new outputs): what the old outputs do not tell."""
        return np.eye(self.kept.shape[1]) - np.linalg.pinv(self.kept) @ self.kept

    def of_arrays(self, theta: Theta, prior: Theta) -> dict[str, np.ndarray]:
        """W M + W_prior N of each array of outputs, which may have further axes in front; all others as they are."""
        own = {name: np.asarray(leaf) for name, leaf in theta.items()}
        made = {
            name: (own[name] @ self.kept + np.asarray(prior[name]) @ self.drawn).astype(own[name].dtype)
            for name in self.heads
            if name in own
        }
        return own | made

    def of_root(self, root: Root, variance: Theta) -> Root:
        """√Σ of the larger theta, from that of the old and the variance of the outputs under the prior."""
        if isinstance(root, Joined):
            return Joined(tuple(self.of_root(part, variance) for part in root.parts))
        if not set(root.shapes()).intersection(self.heads):
            return root
        if isinstance(root, Kronecker):
            return self._of_kronecker(root)
        if isinstance(root, Blocks) and all(len(blocks) == 1 for blocks in root.roots.values()):
            return self._of_blocks(root, variance)
        # Of independent entries: the odds of the old classes are as unsure as they were.
        is_new = ~self.kept.any(axis=0)
        own = {name: np.asarray(leaf) for name, leaf in root.variance().items()}
        own |= {name: own[name] @ np.abs(self.kept) + is_new * variance[name] for name in self.heads}
        return Diagonal({name: np.sqrt(leaf).astype(working_precision()) for name, leaf in own.items()})

    def _of_kronecker(self, root: Kronecker) -> Kronecker:
        """The curvature of the data is that of the old outputs, M⁺ G M⁺ᵀ; the prior's precision is of the inputs."""
        back = np.linalg.pinv(self.kept)
        values, basis, layers = dict(root.output_values), dict(root.output_basis), []
        for layer in root.layers:
            if layer.kernel in self.heads:
                name, turned = layer.kernel, back @ np.asarray(root.output_basis[layer.kernel], np.float64)
                found = np.linalg.eigh((turned * np.asarray(root.output_values[name])) @ turned.T)
                values[name] = found[0].clip(min=0).astype(working_precision())
                basis[name] = found[1].astype(working_precision())
                layer = replace(layer, shape=(*layer.shape[:-1], self.kept.shape[1]))
            layers.append(layer)
        return replace(root, output_values=values, output_basis=basis, layers=tuple(layers))

    def _of_blocks(self, root: Blocks, variance: Theta) -> Blocks:
        """Tᵀ Σ T + Rᵀ diag(variance) R of each group with outputs: T and R are the two maps, as matrices."""
        roots, groups = dict(root.roots), []
        for group, arrays in root.layout.groups:
            shapes = dict(arrays)
            heads = [name for name in shapes if name in self.heads]
            if heads:
                lower = np.asarray(root.roots[group][0], np.float64)
                none = {name: np.zeros(self.kept.shape[1]) for name in heads}
                learned = self.of_arrays(_units(shapes), none)
                outputs = _units({name: (*shapes[name][:-1], self.kept.shape[1]) for name in heads})
                num = len(outputs[heads[0]])
                drawn = self.of_arrays({name: np.zeros((num, *shape)) for name, shape in shapes.items()}, outputs)
                spread = np.concatenate([np.ravel(variance[name]) for name in heads])
                half = lower.T @ _flat(learned)
                covariance = half.T @ half + (_flat(drawn).T * spread) @ _flat(drawn)
                roots[group] = np.linalg.cholesky(covariance)[None].astype(working_precision())
                arrays = tuple((name, leaf.shape[1:]) for name, leaf in learned.items())
            groups.append((group, arrays))
        return Blocks(roots, Layout(tuple(groups)))

    def prior_draws(self, key: Any, num: int) -> dict[str, np.ndarray]:
        """`num` draws of the outputs' arrays from the prior of the larger model."""

        def draw(key: Any) -> Theta:
            theta = self.model.sample_prior(key, 1)
            return {name: theta[name][0] for name in self.heads}

        drawn = jax.jit(lambda keys: jax.lax.map(draw, keys))(jax.random.split(key, num))
        return {name: np.asarray(leaf) for name, leaf in drawn.items()}


def _larger(model: Model, num_classes: int) -> Model:
    """The model with a network that has more outputs."""
    if model.config is None or model.config.get("model") != "classification" or model.recipe is None:
        raise _cannot_grow(num_classes, "only models of credo.models.classification can have new ones on the way")
    net = model.recipe.net
    if not isinstance(net, ZooNetwork) or "out" not in net.config:
        raise _cannot_grow(num_classes, f"{type(net).__name__} is no network whose last layer credo knows")
    return model.recipe.make(from_config(net.config | {"out": num_classes}), model.recipe.prior)


def _cannot_grow(num_classes: int, why: str) -> NothingToGoOnFrom:
    return NothingToGoOnFrom(
        f"batch: y holds labels of classes that the model does not have, and {why}",
        f"give the network {num_classes} outputs or more from the beginning",
    )


def _units(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Unit vectors of all entries, one after another along a new first axis."""
    sizes = [math.prod(shape) for shape in shapes.values()]
    parts: Sequence[np.ndarray] = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    return {name: part.reshape(-1, *shapes[name]) for name, part in zip(shapes, parts, strict=True)}


def _flat(theta: Theta) -> np.ndarray:
    return np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in theta.values()], axis=1)
