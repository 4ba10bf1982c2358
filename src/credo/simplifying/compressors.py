"""The compressors: ways to stand for many draws in few bytes, by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from credo._text import size_in_words
from credo.data import Data
from credo.posterior import Draws, Posterior, Quantised
from credo.simplifying.coreset import Features, coreset
from credo.simplifying.generator import generator
from credo.simplifying.mixtures import mixture
from credo.simplifying.reference import Reference
from credo.simplifying.stein import stein_thinned

# Fewer draws than this have no spread to speak of: that of four is 40% off.
FEWEST_DRAWS = 4


class LeftOut(Exception):
    """Why a compressor has nothing to offer here."""


@dataclass(frozen=True, eq=False)
class Source:
    """What is to be compressed, and what compressors may look at.

    Arguments:
        draws: all of them.
        seen: the full posterior at the inputs that they may look at.
        data: what the posterior was fitted to; None where that was not passed.
    """

    draws: Draws
    seen: Reference
    data: Data | None
    seed: int

    @cached_property
    def num_draws(self) -> int:
        """In all chains."""
        return self.draws.num_chains * self.draws.num_draws


def in_single_precision(draws: Draws) -> Draws:
    """Draws in single precision, also those of a fit in double."""
    return replace(draws, theta={name: leaf.astype(np.float32, copy=False) for name, leaf in draws.theta.items()})


STORAGES: dict[str, Callable[[Draws], Any]] = {
    "float32": in_single_precision,
    "bf16": lambda draws: Quantised.of(draws, "bf16"),
    "int8": lambda draws: Quantised.of(draws, "int8"),
}


class Compressor(ABC):
    """A way to stand for many draws in few bytes."""

    @abstractmethod
    def compress(self, source: Source, num_bytes: int) -> Posterior:
        """A posterior of at most so many bytes; `LeftOut` where there is none, or where it would not pay."""


@dataclass(frozen=True)
class Rounded(Compressor):
    """All draws, in fewer bits."""

    storage: str

    def compress(self, source: Source, num_bytes: int) -> Posterior:
        stored = STORAGES[self.storage](source.draws)
        if stored.num_bytes > num_bytes:
            raise LeftOut(f"all draws take {size_in_words(stored.num_bytes)} in {self.storage}")
        return stored


@dataclass(frozen=True)
class Coreset(Compressor):
    """A few weighted draws that match the predictive, stored in so many bits."""

    storage: str

    def compress(self, source: Source, num_bytes: int) -> Posterior:
        stored = STORAGES[self.storage](source.draws)
        num = num_that_fit(stored, source.num_draws, num_bytes)
        return stored.chosen(*coreset(Features.of(source.seen, stored), num))


@dataclass(frozen=True)
class Stein(Compressor):
    """A few draws that are closest to the posterior by its gradient, stored in so many bits."""

    storage: str

    def compress(self, source: Source, num_bytes: int) -> Posterior:
        if source.data is None:
            raise LeftOut("it takes the gradient of the log joint: pass data=…")
        stored, model = STORAGES[self.storage](source.draws), source.draws.model
        num = num_that_fit(stored, source.num_draws, num_bytes)
        batch = model.with_inputs(source.data.with_scaling(source.draws.scaling).batch())
        return stored.chosen(*stein_thinned(model, source.draws.weighted_draws(0)[0], batch, num))


class GaussianMixture(Compressor):
    """Clusters of draws, each a Gaussian with a diagonal and a few directions."""

    def compress(self, source: Source, num_bytes: int) -> Posterior:
        found = mixture(source.draws, source.seen, num_bytes)
        if found is None:
            raise LeftOut(f"a mean and a diagonal alone take {size_in_words(8 * source.draws.model.num_parameters)}")
        return found


class Adversary(Compressor):
    """A network that generates theta, trained against a critic."""

    def compress(self, source: Source, num_bytes: int) -> Posterior:
        # Outer matrix, centre and scale: num_hidden + 2 numbers for each weight; two small layers in front.
        num_weights = source.draws.model.num_parameters
        num_hidden = num_bytes // (4 * num_weights) - 2
        while num_hidden > 0 and 4 * (num_weights * (num_hidden + 2) + 2 * num_hidden * (num_hidden + 1)) > num_bytes:
            num_hidden -= 1
        if num_hidden < 1:
            raise LeftOut(f"a generator with one unit takes {size_in_words(4 * (3 * num_weights + 4))}")
        return generator(source.draws, num_hidden, seed=source.seed)


def num_that_fit(stored: Any, num_draws: int, num_bytes: int) -> int:
    """How many of the draws fit, each with a weight of its own; `LeftOut` where too few do, or all of them."""
    one, two = (stored.chosen(np.zeros(num, int), np.full(num, 1 / num)).num_bytes for num in (1, 2))
    per_draw, shared = two - one, 2 * one - two
    num = (num_bytes - shared) // per_draw
    if num < FEWEST_DRAWS:
        raise LeftOut(f"{FEWEST_DRAWS} draws take {size_in_words(shared + FEWEST_DRAWS * per_draw)}")
    if num >= num_draws:
        raise LeftOut("all draws fit: there are none to leave out")
    return num


COMPRESSORS: dict[str, Compressor] = {
    "bf16": Rounded("bf16"),
    "int8": Rounded("int8"),
    "coreset": Coreset("float32"),
    "coreset+bf16": Coreset("bf16"),
    "coreset+int8": Coreset("int8"),
    "stein": Stein("float32"),
    "stein+int8": Stein("int8"),
    "mixture": GaussianMixture(),
    "generator": Adversary(),
}
# What is tried where nothing is asked for. Models of the weights take longest to fit, and were nowhere the best
# (docs/compression.md).
DEFAULT = tuple(name for name in COMPRESSORS if name not in ("mixture", "generator"))
