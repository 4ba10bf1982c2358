"""Pretext tasks: labels that inputs provide themselves. For `credo.models.self_supervised`.

Paper, "Meta-learning, transfer learning, and self-supervised learning". A pretext makes a data set of its own from
inputs alone, once and with a fixed seed, so that its likelihood is that of any supervised task: a product over rows.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo import random
from credo._checks import require_at_least, require_one_of, require_positive
from credo._precision import working_precision
from credo.data import Data, Scaling
from credo.models import augmentations
from credo.models.augmentations import Augmentation, as_augmentation
from credo.typing import Array


class Pretext:
    """A task of its own: a frozen dataclass. Its labels count `strength` times; 1 is as if somebody had given them.

    >>> import credo
    >>> task = credo.models.pretexts.masked(0.5, strength=0.1)
    >>> isinstance(task, credo.models.pretexts.Pretext), task.strength
    (True, 0.1)
    """

    name: ClassVar[str]
    strength: float

    def data(self, inputs: Any) -> Data:
        """The data set of the task, from inputs (rows, …) or those of a `Data`, labelled or not.

        Fit a model of `self_supervised(…, task="pretext")` to it.
        """
        given = inputs if isinstance(inputs, Data) else None
        x = np.asarray(inputs if given is None else given.x, working_precision())
        if x.ndim < 2 or len(x) < 2:
            raise ValueError(f"inputs have shape {x.shape}; a pretext task needs two rows or more, (rows, …)")
        made, labels = self.make(x)
        scaling = Scaling() if given is None else self.scaling(given.scaling, x.shape[1:])
        return Data(made, labels).with_scaling(scaling)

    def make(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and labels of the task."""
        raise NotImplementedError

    def scaling(self, scaling: Scaling, row: tuple[int, ...]) -> Scaling:
        """The units of the task's data, from those of the inputs."""
        return Scaling(scaling.x_mean, scaling.x_scale)

    def inputs_of(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a row of the task, from that of an input."""
        return row

    def num_outputs(self, row: tuple[int, ...]) -> int:
        """Of the head, for inputs of a shape."""
        raise NotImplementedError

    def law(self, embed: Callable[[Array], Array], x: Array) -> dist.Distribution:
        """Of the labels, from the head's outputs for inputs; called inside a program."""
        raise NotImplementedError

    def to_config(self) -> dict[str, Any]:
        """As JSON."""
        settings: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        if "transform" in settings:
            settings["transform"] = settings["transform"].to_config()
        return {"name": self.name, **settings}


@dataclass(frozen=True)
class Rotations(Pretext):
    """See `rotations`.

    >>> import credo
    >>> credo.models.pretexts.rotations(strength=0.5)
    Rotations(strength=0.5)
    """

    name = "rotations"
    strength: float

    def make(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if x.ndim < 3 or x.shape[1] != x.shape[2]:
            raise ValueError(f"rotations are for square images, (rows, side, side), and inputs have shape {x.shape}")
        turned = [np.rot90(x, turns, axes=(1, 2)) for turns in range(4)]
        return np.concatenate(turned), np.repeat(np.arange(4), len(x))

    def num_outputs(self, row: tuple[int, ...]) -> int:
        return 4

    def law(self, embed: Callable[[Array], Array], x: Array) -> dist.Distribution:
        return dist.Categorical(logits=embed(x))


@dataclass(frozen=True)
class Masked(Pretext):
    """See `masked`.

    >>> import credo
    >>> credo.models.pretexts.masked(0.5)
    Masked(share=0.5, seed=0, strength=1.0)
    """

    name = "masked"
    share: float
    seed: int
    strength: float

    def make(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = x.reshape(len(x), -1)
        if flat.shape[1] < 2:
            raise ValueError("masked: inputs have one column, so there is no other to predict it from")
        # At least one number of each row is hidden, and one is seen.
        num = min(max(1, round(self.share * flat.shape[1])), flat.shape[1] - 1)
        order = np.argsort(np.random.default_rng(self.seed).random(flat.shape), axis=1)
        hidden = order < num
        seen = np.where(hidden, flat.mean(axis=0), flat)
        return seen.reshape(x.shape), np.where(hidden, flat, np.nan)

    def scaling(self, scaling: Scaling, row: tuple[int, ...]) -> Scaling:
        mean, scale = (np.broadcast_to(part, row).ravel() for part in (scaling.x_mean, scaling.x_scale))
        return Scaling(scaling.x_mean, scaling.x_scale, mean, scale)

    def num_outputs(self, row: tuple[int, ...]) -> int:
        return math.prod(row)

    def law(self, embed: Callable[[Array], Array], x: Array) -> dist.Distribution:
        scale = numpyro.sample("pretext_noise", dist.HalfNormal(1.0))
        return dist.Normal(embed(x), scale).to_event(1)


@dataclass(frozen=True)
class Contrast(Pretext):
    """See `contrast`.

    >>> import credo
    >>> credo.models.pretexts.contrast(credo.augmentations.noise(0.1), num_candidates=3).num_candidates
    3
    """

    name = "contrast"
    transform: Augmentation
    num_candidates: int
    features: int
    seed: int
    strength: float

    def make(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size, num = len(x), self.num_candidates
        if size < num:
            raise ValueError(f"contrast: num_candidates={num} takes at least as many inputs, and there are {size}")
        self.transform.check(x.shape[1:])
        rng = np.random.default_rng(self.seed)
        # Other inputs, one from each of so many stretches of those that follow: all different, and none the row itself.
        edges = np.linspace(1, size, num).astype(int)
        others = (np.arange(size)[:, None] + rng.integers(edges[:-1], edges[1:], (size, num - 1))) % size
        labels = rng.integers(num, size=size)
        candidates = np.array([np.insert(others[row], labels[row], row) for row in range(size)])
        keys = jax.random.split(random.key(self.seed), (size, num + 1))
        numbers = np.concatenate([np.arange(size)[:, None], candidates], axis=1)
        constants = self.transform.constants(x)
        view = jax.vmap(jax.vmap(lambda key, number: self.transform(key, jnp.asarray(x)[number], **constants)))
        return np.asarray(jax.jit(view)(keys, numbers)), labels

    def inputs_of(self, row: tuple[int, ...]) -> tuple[int, ...]:
        return (self.num_candidates + 1, *row)

    def num_outputs(self, row: tuple[int, ...]) -> int:
        return self.features

    def law(self, embed: Callable[[Array], Array], x: Array) -> dist.Distribution:
        own = embed(x[:, 0])
        others = jax.vmap(embed, in_axes=1, out_axes=1)(x[:, 1:])
        return dist.Categorical(logits=jnp.einsum("nf,ncf->nc", own, others) / math.sqrt(self.features))


def rotations(*, strength: float = 1.0) -> Rotations:
    """By which of 0°, 90°, 180° and 270° has the image been turned? All four of each input, which must be square.

    >>> rotations().data(np.zeros((5, 8, 8))).x.shape
    (20, 8, 8)

    Reference: Gidaris et al., 2018, Unsupervised representation learning by predicting image rotations.
    """
    require_positive(strength=strength)
    return Rotations(float(strength))


def masked(share: float = 0.25, *, seed: int = 0, strength: float = 1.0) -> Masked:
    """What are the numbers that are hidden, from those that are seen? For tables and images.

        u_hidden ~ N(f(u_seen), pretext_noise²),    pretext_noise ~ HalfNormal(1)    in standardised units

    Hidden numbers are seen as the mean of their column. What is not hidden is a target that is missing.

    Arguments:
        share: of the numbers of a row that are hidden.

    >>> masked(0.5).data(np.zeros((5, 4))).y.shape
    (5, 4)
    """
    require_positive(share=share, strength=strength)
    require_at_least(0, seed=seed)
    if share >= 1:
        raise ValueError(f"share must be below 1, got {share!r}: nothing would be left to predict from")
    return Masked(float(share), int(seed), float(strength))


def contrast(
    transform: Any, *, num_candidates: int = 8, features: int = 32, seed: int = 0, strength: float = 1.0
) -> Contrast:
    """Which of these is another view of the same input? One is, the others are views of other inputs.

        p(label = c) = softmax_c(z · z_c / √features),    z, z_c the head's outputs for a view and for candidate c

    The candidates of each row are drawn once: it is a likelihood of classes, a product over rows, whatever the batch.
    InfoNCE takes them from the minibatch, which is then a part of the model.

    Arguments:
        transform: of `credo.augmentations`, or `(key, x) → x′`: what a view is.
        num_candidates: to choose from.
        features: outputs of the head.

    >>> contrast(augmentations.noise(0.1), num_candidates=3).data(np.zeros((5, 2))).x.shape
    (5, 4, 2)

    Reference: van den Oord et al., 2018, Representation learning with contrastive predictive coding.
    """
    require_at_least(2, num_candidates=num_candidates)
    require_at_least(1, features=features)
    require_at_least(0, seed=seed)
    require_positive(strength=strength)
    return Contrast(as_augmentation(transform), int(num_candidates), int(features), int(seed), float(strength))


PRETEXTS: dict[str, Callable[..., Pretext]] = {maker.__name__: maker for maker in (rotations, masked, contrast)}


def from_config(config: Mapping[str, Any]) -> Pretext:
    """The inverse of `Pretext.to_config`.

    >>> from_config(masked(0.5).to_config()) == masked(0.5)
    True
    """
    settings = {key: value for key, value in config.items() if key != "name"}
    require_one_of(PRETEXTS, pretext=config["name"])
    if "transform" in settings:
        settings["transform"] = augmentations.from_config(settings["transform"])
    return PRETEXTS[config["name"]](**settings)
