"""How labels go wrong: the law of the label that is given, for each label that is true.

Each kind draws what it does not know outside the plate `data`; inside, it gives p(y | clean) as a function of the true
label.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._precision import working_precision
from credo.models import priors
from credo.models.mistaken import Mistaken
from credo.models.noise_network import NoiseNetwork
from credo.models.priors import Point, distribution_from_config, distribution_to_config
from credo.typing import Array, Theta

# From true labels, (rows,) or (1,), to the law of those that are given; (…, annotators) for several.
GivenOf = Callable[[Array], dist.Distribution]
# Labels are expected to be right so often, before any is seen.
EXPECTED_RIGHT = 0.8
# Of the rate. Its mean is 0.2, and it favours a rate below one half, without which two classes could be swapped.
RATE_PRIOR = (1.0, 4.0)

# Learning begins with labels that say little, this share of the way from nothing to all: the network is sure of itself
# at first, and the errors are found. Begun from labels that are mostly right, the network itself learns to be unsure,
# which explains them as well, and no error is found: with 45 % pair flips of MNIST, 80 % right in the end, not 94 %.
START_SURE = 0.25


class LabelNoise(Protocol):
    """One of the three kinds of noise."""

    def draw(self, x: Array, classes: int, annotators: int | None) -> GivenOf:
        """Its latents, drawn outside the plate `data`, and p(y | clean) as a function of the true label."""

    def initial(self, x: Array, classes: int, annotators: int | None) -> Theta:
        """Where learning begins: see `START_SURE`."""

    def check(self, x: Any, classes: int, annotators: int | None) -> None:
        """Refuse what does not fit the number of classes."""

    def to_config(self) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class CompletelyAtRandom:
    """NCAR: the true label is kept with probability 1 − rate, and else each of the others is as likely."""

    rate: float | dist.Distribution

    @classmethod
    def of(cls, errors: Any, noise_net: Any) -> Self:
        _refuse_network(noise_net, "ncar")
        return cls(as_rate(errors))

    def draw(self, x: Array, classes: int, annotators: int | None) -> GivenOf:
        rate = draw_each("rate", self.rate, annotators)
        return lambda clean: Mistaken(_by_annotator(clean, annotators), rate, classes)

    def initial(self, x: Array, classes: int, annotators: int | None) -> Theta:
        if not isinstance(self.rate, dist.Distribution):
            return {}
        rate = (1 - START_SURE) * (classes - 1) / classes
        return {"rate": jnp.full(() if annotators is None else (annotators,), rate)}

    def check(self, x: Any, classes: int, annotators: int | None) -> None: ...

    def to_config(self) -> dict[str, Any]:
        return known_or_prior(self.rate)

    @staticmethod
    def arguments(config: Any) -> dict[str, Any]:
        return {"errors": from_known_or_prior(config)}


@dataclass(frozen=True, eq=False)
class AtRandom:
    """NAR: sigma is the row of a confusion matrix, (K, K) or (annotators, K, K), that the true label chooses.

    `confusion` holds it, or the Dirichlet law of its rows; None for one that favours the diagonal, without which
    classes could be swapped: 4(K − 1) observations of a right label and one of each error, for every row.
    """

    confusion: np.ndarray | dist.Dirichlet | None

    @classmethod
    def of(cls, errors: Any, noise_net: Any) -> Self:
        _refuse_network(noise_net, "nar")
        if errors is None or isinstance(errors, dist.Dirichlet):
            return cls(errors)
        if isinstance(errors, dist.Distribution):
            raise ValueError(f"errors: the rows of a confusion matrix have a dist.Dirichlet, got {errors}")
        matrix = np.asarray(errors)
        if matrix.ndim not in (2, 3) or matrix.dtype.kind not in "iuf":
            raise ValueError(
                "errors: pass a confusion matrix (classes, classes), one for each annotator, or "
                f"dist.Dirichlet(concentration) for a prior of its rows; got {errors!r}"
            )
        if np.any(matrix < 0) or not np.allclose(matrix.sum(-1), 1, atol=1e-4):
            raise ValueError(
                "errors: row k of a confusion matrix holds the probabilities of the given labels where k is true; they "
                f"add up to one. Got rows that add up to {matrix.sum(-1).ravel().tolist()[:5]}. For a prior, pass "
                "dist.Dirichlet(concentration)"
            )
        return cls(matrix.astype(working_precision()))

    def draw(self, x: Array, classes: int, annotators: int | None) -> GivenOf:
        if isinstance(self.confusion, np.ndarray):
            confusion = jnp.asarray(self.confusion)
        else:
            rows = dist.Dirichlet(jnp.asarray(self._concentration(classes, annotators)))
            confusion = numpyro.sample("confusion", rows.to_event(1 if annotators is None else 2))
        if annotators is not None:
            confusion = jnp.moveaxis(jnp.broadcast_to(confusion, (annotators, classes, classes)), 0, 1)
        return lambda clean: dist.Categorical(probs=numpyro.deterministic("sigma", confusion[clean]))

    def initial(self, x: Array, classes: int, annotators: int | None) -> Theta:
        if isinstance(self.confusion, np.ndarray):
            return {}
        concentration = self._concentration(classes, annotators)
        start = START_SURE * np.eye(classes) + (1 - START_SURE) / classes
        return {"confusion": jnp.asarray(np.broadcast_to(start, concentration.shape), working_precision())}

    def check(self, x: Any, classes: int, annotators: int | None) -> None:
        if self.confusion is None:
            return
        is_known = isinstance(self.confusion, np.ndarray)
        shape = self.confusion.shape if isinstance(self.confusion, np.ndarray) else self.confusion.concentration.shape
        fits = [(classes, classes), (annotators, classes, classes), *([] if is_known else [(classes,)])]
        if shape not in fits:
            what = "confusion matrix" if is_known else "concentration"
            raise ValueError(
                f"errors: the {what} has shape {shape}, and there are {classes} classes; pass one of shape "
                f"({classes}, {classes})" + (f", or of ({annotators}, {classes}, {classes})" if annotators else "")
            )

    def _concentration(self, classes: int, annotators: int | None) -> np.ndarray:
        own = likely_right(classes) if self.confusion is None else np.asarray(self.confusion.concentration)  # type: ignore[union-attr]
        shape = (classes, classes) if annotators is None else (annotators, classes, classes)
        return np.broadcast_to(own, shape).astype(working_precision())

    def to_config(self) -> dict[str, Any]:
        return known_or_prior(self.confusion)

    @staticmethod
    def arguments(config: Any) -> dict[str, Any]:
        return {"errors": from_known_or_prior(config)}


@dataclass(frozen=True, eq=False)
class NotAtRandom:
    """NNAR: the true label k is kept with probability 1 − rateₖ(x), else mistaken for another by rates of its own.

    The rates are those of a second network of x; `mistakes`, (K, K − 1), says which labels stand for k where it is
    wrong, uniformly before any is seen. Of x alone or of k alone it is NCAR or NAR.
    """

    network: NoiseNetwork

    @classmethod
    def of(cls, errors: Any, noise_net: Any) -> Self:
        return cls(NoiseNetwork.of(noise_net, errors))

    def draw(self, x: Array, classes: int, annotators: int | None) -> GivenOf:
        outputs = self.network.draw(x, (annotators or 1) * classes) - _log_odds(EXPECTED_RIGHT)
        rates = jax.nn.sigmoid(outputs.reshape(len(outputs), annotators or 1, -1))
        mistakes = None
        if classes > 2:
            shape = (classes,) if annotators is None else (annotators, classes)
            rows = dist.Dirichlet(jnp.ones(classes - 1)).expand(shape).to_event(len(shape))
            mistakes = numpyro.sample("mistakes", rows)

        def given(clean: Array) -> dist.Distribution:
            own = (
                rates[..., 0] if rates.shape[-1] == 1 else jnp.take_along_axis(rates, _label(clean, rates), -1)[..., 0]
            )
            sigma = numpyro.deterministic("sigma", own if annotators else own[:, 0])
            return Mistaken(_by_annotator(clean, annotators), sigma, classes, mistakes)

        return given

    def initial(self, x: Array, classes: int, annotators: int | None) -> Theta:
        return self.network.initial(x, (annotators or 1) * classes)

    def check(self, x: Any, classes: int, annotators: int | None) -> None:
        num = annotators or 1
        self.network.check(x, num * classes, (num, num * classes))

    def to_config(self) -> dict[str, Any]:
        return self.network.to_config()

    @staticmethod
    def arguments(config: Any) -> dict[str, Any]:
        return NoiseNetwork.arguments(config)


KINDS: dict[str, Any] = {"ncar": CompletelyAtRandom, "nar": AtRandom, "nnar": NotAtRandom}


def as_label_noise(kind: str, errors: Any, noise_net: Any) -> LabelNoise:
    """A kind of noise from what users pass: see `credo.models.noisy_labels`."""
    return KINDS[kind].of(errors, noise_net)


def likely_right(classes: int) -> np.ndarray:
    """The concentration of the default prior of a confusion matrix, (K, K)."""
    right = (classes - 1) * EXPECTED_RIGHT / (1 - EXPECTED_RIGHT)
    return np.ones((classes, classes)) + (right - 1) * np.eye(classes)


def _label(clean: Array, rates: Array) -> Array:
    """True labels, (rows,) or (1,), as an index into the last axis of rates, (rows, annotators, K)."""
    return jnp.broadcast_to(clean.astype(jnp.int32)[:, None, None], (*rates.shape[:-1], 1))


def _by_annotator(clean: Array, annotators: int | None) -> Array:
    return clean if annotators is None else clean[..., None]


def _log_odds(probability: float) -> Any:
    return working_precision().type(np.log(probability / (1 - probability)))


def _refuse_network(noise_net: Any, kind: str) -> None:
    if noise_net is not None:
        raise ValueError(f"noise_net is for noise that depends on x, and kind is {kind!r}; pass kind='nnar'")


# -- a number that is known, or has a prior ---------------------------------------------------------------------


def as_rate(errors: Any) -> float | dist.Distribution:
    """A rate of errors: known, or a prior on it."""
    if errors is None:
        return dist.Beta(*RATE_PRIOR)
    if isinstance(errors, dist.Distribution):
        return scalar_prior("errors", errors, 0.0, 1.0)
    rate = np.asarray(errors)
    if rate.ndim or rate.dtype.kind not in "iuf" or not 0 <= rate < 1:
        raise ValueError(
            f"errors: a rate of wrong labels is a number from 0 to 1, or a NumPyro distribution of it; got {errors!r}"
        )
    return float(rate)


def scalar_prior(argument: str, prior: dist.Distribution, low: float, high: float) -> dist.Distribution:
    """The distribution, if it is one of a number between bounds."""
    support = prior.support
    at_least, at_most = getattr(support, "lower_bound", -np.inf), getattr(support, "upper_bound", np.inf)
    if prior.batch_shape or prior.event_shape or at_least < low or at_most > high:
        span = f"from {low:g} to {high:g}" if np.isfinite(high) else "that are positive"
        raise ValueError(
            f"{argument}: expected a scalar distribution on numbers {span}, got {type(prior).__name__} on {support} "
            f"with shape {prior.batch_shape + prior.event_shape}"
        )
    return prior


def draw_each(name: str, known_or_prior: Any, num: int | None) -> Array:
    """A number, or one for each of some, drawn at a site or known."""
    shape = () if num is None else (num,)
    if isinstance(known_or_prior, dist.Distribution):
        return numpyro.sample(name, priors.base.fill(known_or_prior, shape))
    return jnp.broadcast_to(jnp.asarray(known_or_prior, working_precision()), shape)


def initial_each(name: str, known_or_prior: Any, num: int | None) -> Theta:
    """The mean of what `draw_each` draws."""
    if not isinstance(known_or_prior, dist.Distribution):
        return {}
    return {name: jnp.full(() if num is None else (num,), known_or_prior.mean)}


def known_or_prior(value: Any) -> dict[str, Any]:
    """Numbers, a distribution or a point as JSON; None is the default."""
    if isinstance(value, Point):
        return {"point": value.to_config()}
    if isinstance(value, dist.Distribution):
        return {"prior": distribution_to_config(value)}
    return {"known": None if value is None else np.asarray(value).tolist()}


def from_known_or_prior(config: Any) -> Any:
    """The inverse of `known_or_prior`."""
    if "point" in config:
        return priors.from_config(config["point"])
    return distribution_from_config(config["prior"]) if "prior" in config else config["known"]
