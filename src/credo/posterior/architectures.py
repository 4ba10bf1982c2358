"""Several models of the same y as one: each draw of theta belongs to one of them, and says to which.

Paper, "Deep ensembles": members need not share an architecture. Their mixture is one law of y,

    p(y | x, D) = Σᵢ wᵢ p(y | x, thetaᵢ, modelᵢ),

so whatever is asked of it (a quantile, an entropy) is asked of the whole, not averaged over the models' answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo.models.program import Model
from credo.models.sites import LOCAL_NOISE
from credo.networks.masks import is_mask
from credo.predictive import streaming
from credo.predictive.conditional import Conditional, ConditionalOf
from credo.predictive.mixed import mixed
from credo.typing import Array, Theta

# The leaf of theta that says which of the models a draw is of. The leaves of model i are named "i.name".
MODEL = "model"


@dataclass(frozen=True)
class Architectures:
    """p(y | x, theta) of several models: theta holds the leaves of all, and those of one are looked at.

    Arguments:
        models: bound to the same data.
    """

    models: tuple[Model, ...]

    def __post_init__(self) -> None:
        first = self.models[0]
        for number, model in enumerate(self.models[1:], start=2):
            if model.rows != first.rows:
                raise ValueError(
                    f"models must be of the same data: the first is of {first.rows}, number {number} of {model.rows}"
                )
            ours, theirs = _kind_of_y(first), _kind_of_y(model)
            if ours != theirs:
                raise ValueError(
                    f"models must agree about y: the first gives {ours}, number {number} gives {theirs}; make their "
                    "likelihoods and outputs the same"
                )

    def predictive(self, theta: Theta, x: Array) -> Conditional:
        """p(y | x, theta) of the model that theta belongs to; the others are not computed."""
        if any(model.averages_local for model in self.models):
            return mixed(lambda seed: self._given(seed, theta, x))
        return self._given(0, theta, x)

    def _given(self, seed: Any, theta: Theta, x: Array) -> Conditional:
        """p(y | x, l, theta), l the local latents that are noise, drawn with this seed."""
        ways = [self._way(index, seed) for index in range(len(self.models))]
        # A noise scale may be one number in one model, and one per row in another: all get the largest shape.
        parameters = [jax.tree.leaves(jax.eval_shape(way, theta, x)) for way in ways]
        shapes = [np.broadcast_shapes(*(leaf.shape for leaf in leaves)) for leaves in zip(*parameters, strict=True)]

        def widened(way: ConditionalOf) -> ConditionalOf:
            def distribution(theta: Theta, x: Array) -> Conditional:
                leaves, structure = jax.tree.flatten(way(theta, x))
                return jax.tree.unflatten(
                    structure, [jnp.broadcast_to(*pair) for pair in zip(leaves, shapes, strict=True)]
                )

            return distribution

        return jax.lax.switch(theta[MODEL], [widened(way) for way in ways], theta, x)

    def joined(self, thetas: Sequence[Theta], owners: Sequence[int], counts: Sequence[int]) -> dict[str, np.ndarray]:
        """Draws of the models one after another; the leaves of the models a draw is not of are zero.

        Arguments:
            thetas: each of one model, every leaf with a leading axis of draws.
            owners: which model each theta is of.
            counts: how many draws each holds.
        """
        whole: dict[str, np.ndarray] = {MODEL: np.repeat(np.asarray(owners, np.int32), counts)}
        for index, model in enumerate(self.models):
            # Masks of dropout layers are in the draws only.
            own = next((theta for theta, owner in zip(thetas, owners, strict=True) if owner == index), {})
            masks = {
                name: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for name, leaf in own.items() if is_mask(name)
            }
            for name, leaf in (model.template | model.xi_template | masks).items():
                parts = [
                    theta[name] if owner == index else np.zeros((count, *leaf.shape), leaf.dtype)
                    for theta, owner, count in zip(thetas, owners, counts, strict=True)
                ]
                whole[f"{index}.{name}"] = np.concatenate(parts)
        return whole

    def _way(self, index: int, seed: Any) -> ConditionalOf:
        def distribution(theta: Theta, x: Array) -> Conditional:
            start = f"{index}."
            own = {name.removeprefix(start): leaf for name, leaf in theta.items() if name.startswith(start)}
            model = self.models[index]
            noise = {LOCAL_NOISE: seed if model.averages_local else theta.get(LOCAL_NOISE, 0)}
            return model.predictive(own | noise, x)

        return distribution


def _kind_of_y(model: Model) -> str:
    """The distribution of y given theta in words: its parameters by name, and the shape of its mean."""
    found: list[str] = []

    def conditional(theta: Theta, x: Array) -> Conditional:
        distribution = model.predictive(theta, x)
        base: Any = distribution
        if isinstance(base, tuple):  # several laws of y, of equal kind
            base = base.parts  # type: ignore[attr-defined]
        while isinstance(base, dist.Independent):
            base = base.base_dist
        names = [name for name in type(base).gather_pytree_data_fields() if base.__dict__.get(name) is not None]
        found.append(f"{type(base).__name__}({', '.join(sorted(names))})")
        return distribution

    one_draw = {name: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype) for name, leaf in model.template.items()}
    one_draw[LOCAL_NOISE] = jax.ShapeDtypeStruct((1,), jnp.int32)
    shape = jax.eval_shape(partial(streaming.functions, conditional), one_draw, model.example().x).shape[2:]
    return f"{found[0]} of shape ({', '.join(['rows', *map(str, shape)])})"
