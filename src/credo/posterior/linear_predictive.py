"""Predictive distributions of a linearised network.

The outputs of each row, and what is known about them, take the place of the inputs: a "draw" is then a direction in the
space of the outputs, and all answers of a `Predictive` follow without running the network again. Numbers have their
moments in closed form.
"""

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from credo import random
from credo._precision import working_precision
from credo.covariance import Root
from credo.data import Scaling, as_precisions
from credo.models.outputs import (
    BinaryOutputs,
    ClassOutputs,
    CorrelatedOutputs,
    LogNormalOutputs,
    NormalOutputs,
    Outputs,
)
from credo.posterior.base import BasePosterior
from credo.posterior.linearised import Linearisation, draws_by_block, features_by_block, moments_by_block
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive, streaming
from credo.predictive.conditional import Conditional, ConditionalOf, covariance_of, mean_of
from credo.predictive.marginal import index_of
from credo.predictive.sharpened import Sharpened
from credo.typing import Array, Theta

Prediction = Literal["linear", "probit", "draws"]

# Draws of the outputs cost next to nothing: the network has been run already.
NUM_OUTPUT_DRAWS = 1000
# Draws of whole functions, jointly over the rows, where the marginal itself needs none.
NUM_FUNCTIONS = 100


class Linearised(BasePosterior):
    """A Gaussian over theta with a network that may be linearised around its mean."""

    mean: dict[str, np.ndarray]
    root: Root
    prediction: str

    @cached_property
    def linearisation(self) -> Linearisation:
        """The network around the mean, as a linear one."""
        return Linearisation.of(self.model, self.mean, self.root)


class NormalRows(NamedTuple):
    """y given the logarithm of its noise: the mean is integrated out, so that draws are of the noise alone.

    With o = (m, s), s = log noise: m given s is normal too, of mean m* + C_ms C_ss⁻¹ (s − s*).
    """

    outputs: NormalOutputs

    def __call__(self, theta: Theta, rows: Array) -> Conditional:
        num = self.outputs.num_targets
        mean, variance, log_noise, log_noise_root, slope = jnp.split(rows, [num, 2 * num, 3 * num, 4 * num], axis=-1)
        shift = log_noise_root * theta["noise"]
        scale = jnp.sqrt(variance + jnp.exp(2 * (log_noise + shift)))
        return self.outputs.around(mean + slope * theta["noise"], scale)


class DrawnRows(NamedTuple):
    """y given a draw of the outputs: o = o* + √(J Σ Jᵀ) ε."""

    outputs: Outputs
    num_outputs: int

    def __call__(self, theta: Theta, rows: Array) -> Conditional:
        mean, root = jnp.split(rows, [self.num_outputs], axis=-1)
        root = root.reshape(-1, self.num_outputs, self.num_outputs)
        return self.outputs.distribution(mean + root @ theta["noise"])


class ProbitRows(NamedTuple):
    """Classes by the probit approximation: softmax(o* / √(1 + π/8 diag(J Σ Jᵀ))) (MacKay, 1992)."""

    outputs: Outputs
    num_outputs: int

    def __call__(self, theta: Theta, rows: Array) -> Conditional:
        mean, variance = jnp.split(rows, [self.num_outputs], axis=-1)
        return self.outputs.distribution(mean / jnp.sqrt(1 + math.pi / 8 * variance))


class MemberRows(NamedTuple):
    """The rows of several posteriors side by side: a draw is of one of them."""

    conditional_of: ConditionalOf
    width: int

    def __call__(self, theta: Theta, rows: Array) -> Conditional:
        own = jax.lax.dynamic_slice_in_dim(rows, theta["member"] * self.width, self.width, axis=1)
        return self.conditional_of(theta, own)


class Packed(NamedTuple):
    """What a posterior says about the outputs of some rows.

    Arguments:
        noise: draws, each a direction in the space of the outputs.
        moments: of y in closed form; None for classes.
    """

    conditional_of: ConditionalOf
    noise: np.ndarray
    rows: np.ndarray
    moments: streaming.Moments | None


class _LinearPredictive(Predictive):
    """A prediction of posteriors whose networks are linearised; it knows two rows at once, which are jointly normal."""

    sources: Sequence[Linearised]
    shares: np.ndarray
    inputs: np.ndarray

    def __getitem__(self, rows: Any) -> Any:
        chosen = super().__getitem__(rows)
        chosen.sources, chosen.shares = self.sources, self.shares
        chosen.inputs = self.inputs[index_of(rows)]
        return chosen

    @cached_property
    def functions(self) -> np.ndarray:
        """E[y | x, theta] of draws theta in the linearised network, (draws, data, output…), jointly over the rows."""
        if len(self.sources) == 1:
            num = self.num_draws if self.num_draws > 1 else NUM_FUNCTIONS
            return _functions(self, self.sources[0], num)
        counts = np.bincount(self.draws["member"], minlength=len(self.sources))
        return np.concatenate([_functions(self, *pair) for pair in zip(self.sources, counts, strict=True)])


class LinearRegressionPredictive(_LinearPredictive, RegressionPredictive):
    """The marginal of numbers under linearised networks: moments in closed form."""

    exact: streaming.Moments
    precisions: np.ndarray | None = None

    def with_precisions(self, precisions: Any) -> "LinearRegressionPredictive":
        """This prediction for rows that are measured so precisely: noise of variance σ²/w in place of σ²."""
        own = as_precisions(precisions, len(self))
        law, rows = _at_precisions(self.conditional_of, self.x, own)
        found = LinearRegressionPredictive(law, self.draws, rows, weights=self.weights, scaling=self.scaling)
        found.sources, found.shares, found.inputs, found.precisions = self.sources, self.shares, self.inputs, own
        noise = self.exact.noise
        found.exact = self.exact._replace(noise=noise / own.reshape(-1, *[1] * (noise.ndim - 1)))
        return found

    @property
    def _moments(self) -> streaming.Moments:
        return self.exact

    @property
    def _unbiased(self) -> float:
        return 1.0

    def __getitem__(self, rows: Any) -> Any:
        chosen = super().__getitem__(rows)
        chosen.exact = streaming.Moments(*(part[index_of(rows)] for part in self.exact))
        chosen.precisions = None if self.precisions is None else self.precisions[index_of(rows)]
        return chosen

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance between the outputs of each row, (data, outputs, outputs), noise included."""
        return self._between_outputs(noise=True)

    @cached_property
    def epistemic_covariance(self) -> np.ndarray:
        """Covariance of E[y | x, theta] between the outputs of each row, (data, outputs, outputs): without noise."""
        return self._between_outputs(noise=False)

    def _between_outputs(self, *, noise: bool) -> np.ndarray:
        num = math.prod(self._target_shape[1:])
        centre = self._moments.mean.reshape(len(self), num)
        total = np.zeros((len(self), num, num))
        for posterior, share in zip(self.sources, self.shares, strict=True):
            linear = posterior.linearisation
            outputs, found = moments_by_block(linear, posterior.mean, posterior.root, self.inputs)
            offset = outputs[:, :num] - centre
            total += share * (found[:, :num, :num] + offset[:, :, None] * offset[:, None])
            if noise:
                own = np.asarray(covariance_of(linear.outputs.distribution(jnp.asarray(outputs))))
                total += share * (own if self.precisions is None else own / self.precisions[:, None, None])
        scale = np.broadcast_to(self.scaling.y_scale, (num,))
        return total * np.outer(scale, scale)

    @cached_property
    def input_covariance(self) -> np.ndarray:
        """Covariance of E[y | x, theta] between the inputs, (data, data, output…), without the noise."""
        self._refuse_if_large(len(self), "a covariance between inputs", self._target_shape[1:])
        num = math.prod(self._target_shape[1:])
        centre = self._moments.mean.reshape(len(self), num)
        total = np.zeros((len(self), len(self), num))
        for posterior, share in zip(self.sources, self.shares, strict=True):
            linear = posterior.linearisation
            features = features_by_block(linear, posterior.mean, posterior.root, self.inputs)[:, :num]
            outputs, _ = moments_by_block(linear, posterior.mean, posterior.root, self.inputs)
            offset = outputs[:, :num] - centre
            total += share * np.einsum("ntf,mtf->nmt", features, features, optimize=True)
            total += share * offset[:, None] * offset[None]
        scaled = total * np.broadcast_to(self.scaling.y_scale, (num,)) ** 2
        return scaled.reshape(len(self), len(self), *self._target_shape[1:])


class LinearClassPredictive(_LinearPredictive, ClassPredictive):
    """The marginal of class labels under linearised networks."""


def linear_predictive(posterior: Linearised, x: np.ndarray, *, num_draws: int | None = None) -> Predictive:
    """The marginal p(y | x, D) of a Gaussian under the linearised network.

    Arguments:
        x: inputs in the user's units.
        num_draws: of the outputs, where there is no closed form; 1,000 by default.
    """
    num = NUM_OUTPUT_DRAWS if num_draws is None else num_draws
    inputs = np.asarray(posterior.scaling.inputs(x), working_precision())
    return _assembled([posterior], np.ones(1), [_packed(posterior, inputs, num)], inputs)


def linear_mixture(
    posteriors: Sequence[Linearised], weights: np.ndarray, x: np.ndarray, num_draws: int
) -> tuple[Predictive, np.ndarray]:
    """The marginal of several Gaussians, each under its own linearised network; and the member that each draw is of."""
    inputs = np.asarray(posteriors[0].scaling.inputs(x), working_precision())
    num = max(1, num_draws // len(posteriors))
    packed = [_packed(posterior, inputs, num, key=index) for index, posterior in enumerate(posteriors)]
    # Where nothing is left to draw, the one draw there is stands for as many as the others have.
    packed = [part._replace(noise=np.resize(part.noise, (num, part.noise.shape[1]))) for part in packed]
    found = _assembled(posteriors, weights, packed, inputs)
    return found, found.draws["member"]


def _packed(posterior: Linearised, inputs: np.ndarray, num: int, key: int = 0) -> Packed:
    linear = posterior.linearisation
    outputs, covariance = moments_by_block(linear, posterior.mean, posterior.root, inputs)
    kind, is_classes = linear.outputs, isinstance(linear.outputs, ClassOutputs | BinaryOutputs)
    if posterior.prediction == "probit":
        if not is_classes:
            raise ValueError("prediction='probit' is for class labels; numbers have a closed form: prediction='linear'")
        rows = _rows(outputs, np.diagonal(covariance, axis1=1, axis2=2))
        return Packed(ProbitRows(kind, outputs.shape[1]), np.zeros((1, 1)), rows, None)
    if isinstance(kind, NormalOutputs):
        return _packed_normal(kind, outputs, covariance, num)
    own = jax.random.fold_in(random.key(posterior.provenance.seed), key)
    noise = np.asarray(random.normal(own, (num, outputs.shape[1])))
    packed = Packed(DrawnRows(kind, outputs.shape[1]), noise, _rows(outputs, _roots(covariance)), None)
    return packed if is_classes else packed._replace(moments=_moments(kind, outputs, covariance, packed))


def _packed_normal(kind: NormalOutputs, outputs: np.ndarray, covariance: np.ndarray, num: int) -> Packed:
    """m | s normal, s = log noise drawn at evenly spaced quantiles: a sum in place of an integral over one number."""
    num_targets = kind.num_targets
    diagonal = np.diagonal(covariance, axis1=1, axis2=2)
    mean, variance = outputs[:, :num_targets], diagonal[:, :num_targets]
    if kind.scale is None:
        log_noise, spread = outputs[:, num_targets:], np.sqrt(np.maximum(diagonal[:, num_targets:], 0.0))
        cross = np.stack([covariance[:, target, num_targets + target] for target in range(num_targets)], axis=1)
        slope = np.divide(cross, spread, out=np.zeros_like(cross), where=spread > 0)
    else:
        log_noise = np.broadcast_to(np.log(kind.scale), mean.shape)
        spread = slope = np.zeros_like(mean)
    nodes = ndtri((np.arange(num) + 0.5) / num)[:, None] if np.any(spread > 0) else np.zeros((1, 1))
    rows = _rows(mean, np.maximum(variance - slope**2, 0.0), log_noise, spread, slope)
    # E[noise²] of a lognormal noise.
    noise = np.exp(2 * log_noise + 2 * spread**2)
    shape = (len(mean),) if kind.scalar else mean.shape
    parts = (part.reshape(shape) for part in (mean, variance, noise))
    return Packed(NormalRows(kind), nodes, rows, streaming.Moments(np.ones(len(mean)), *parts))


def _moments(kind: Outputs, outputs: np.ndarray, covariance: np.ndarray, packed: Packed) -> streaming.Moments:
    """Mean and spread of a correlated normal in closed form; of anything else (counts) from the draws."""
    weights = np.full(len(packed.noise), 1 / len(packed.noise))
    draws = {"noise": packed.noise.astype(working_precision())}
    drawn = Predictive(packed.conditional_of, draws, packed.rows, weights=weights, scaling=Scaling())
    moments = drawn.fold(streaming.MOMENTS)
    if not isinstance(kind, CorrelatedOutputs):
        return moments
    num = kind.num_targets
    diagonal = np.diagonal(covariance, axis1=1, axis2=2)
    return moments._replace(mean=outputs[:, :num], spread=diagonal[:, :num])


def _assembled(
    posteriors: Sequence[Linearised], shares: np.ndarray, packed: Sequence[Packed], inputs: np.ndarray
) -> Any:
    counts = [len(part.noise) for part in packed]
    owners = np.repeat(np.arange(len(packed)), counts)
    draws: Theta = {"noise": np.concatenate([part.noise for part in packed]).astype(working_precision())}
    conditional_of, rows = packed[0].conditional_of, packed[0].rows
    if len(packed) > 1:
        draws["member"] = owners.astype(np.int32)
        conditional_of = MemberRows(conditional_of, rows.shape[1])
        rows = np.concatenate([part.rows for part in packed], axis=1)
    kind: Any = LinearClassPredictive if packed[0].moments is None else LinearRegressionPredictive
    weights = np.concatenate([np.full(count, share / count) for share, count in zip(shares, counts, strict=True)])
    found = kind(conditional_of, draws, rows, weights=weights, scaling=posteriors[0].scaling)
    found.sources, found.shares, found.inputs = posteriors, shares, inputs
    if packed[0].moments is not None:
        found.exact = _total([part.moments for part in packed if part.moments is not None], shares)
    return found


def _at_precisions(law: Any, rows: np.ndarray, precisions: np.ndarray) -> tuple[Any, np.ndarray]:
    """Of rows that hold the logarithm of the noise it is moved; any other law is sharpened at each draw."""
    inner: Any = law.conditional_of if isinstance(law, MemberRows) else law
    width = law.width if isinstance(law, MemberRows) else rows.shape[1]
    if isinstance(inner.outputs, LogNormalOutputs):
        raise ValueError(
            "precisions: a linearised network has no moments of log-normal noise that differs between rows; take "
            "credo.Laplace(prediction='draws'), or another method"
        )
    if not isinstance(inner, NormalRows):
        return Sharpened(law, rows.shape[1:]), np.column_stack([rows, precisions])
    num, moved = inner.outputs.num_targets, rows.reshape(len(rows), -1, width).copy()
    moved[:, :, 2 * num : 3 * num] -= 0.5 * np.log(precisions)[:, None, None]
    return law, moved.reshape(rows.shape)


def _total(moments: Sequence[streaming.Moments], shares: np.ndarray) -> streaming.Moments:
    """The laws of total expectation and variance, over the members."""
    mean = sum(share * one.mean for share, one in zip(shares, moments, strict=True))
    spread = sum(share * (one.spread + (one.mean - mean) ** 2) for share, one in zip(shares, moments, strict=True))
    noise = sum(share * one.noise for share, one in zip(shares, moments, strict=True))
    return streaming.Moments(moments[0].total, mean, spread, noise)


def _functions(prediction: Any, posterior: Linearised, num: int) -> np.ndarray:
    """E[y | o] of functions drawn jointly over the rows, with one ε for each draw."""
    linear = posterior.linearisation
    prediction._refuse_if_large(num, "functions", (linear.num_outputs,))
    keys = jax.random.split(random.key(posterior.provenance.seed), num)
    drawn = draws_by_block(linear, posterior.mean, posterior.root, keys, prediction.inputs)
    return prediction._to_units(np.asarray(_means(linear.outputs, np.moveaxis(drawn, 1, 0))))


@partial(jax.jit, static_argnums=0)
def _means(outputs: Outputs, drawn: Array) -> Array:
    """E[y | o] of drawn outputs, (draws, rows, K)."""
    return jax.lax.map(lambda one: mean_of(outputs.distribution(one)), drawn)


def _rows(outputs: np.ndarray, *more: np.ndarray) -> np.ndarray:
    parts = [part.reshape(len(outputs), -1) for part in (outputs, *more)]
    return np.concatenate(parts, axis=1).astype(working_precision())


def _roots(covariance: np.ndarray) -> np.ndarray:
    """Symmetric roots of positive semi-definite matrices, (rows, K, K)."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
