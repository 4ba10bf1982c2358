"""Predictive distributions of a linearised network.

The outputs of each row, and what is known about them, take the place of the inputs: a "draw" is then a direction in the
space of the outputs, and all answers of a `Predictive` follow without running the network again. Numbers have their
moments in closed form.
"""

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from scipy.special import ndtri

from credo import random, streaming
from credo.data import Scaling
from credo.linearised import Linearisation, features_by_block, moments_by_block
from credo.models.outputs import CorrelatedOutputs, NormalOutputs, Outputs
from credo.predictive import ClassPredictive, Predictive, RegressionPredictive
from credo.typing import Array, Theta

if TYPE_CHECKING:
    from credo.posterior import Gaussian

Prediction = Literal["linear", "probit", "draws"]

# Draws of the outputs cost next to nothing: the network has been run already.
NUM_OUTPUT_DRAWS = 1000
# Draws of whole functions, jointly over the rows, where the marginal itself needs none.
NUM_FUNCTIONS = 100


def _rows(outputs: np.ndarray, *more: np.ndarray) -> np.ndarray:
    parts = [part.reshape(len(outputs), -1) for part in (outputs, *more)]
    return np.concatenate(parts, axis=1).astype(np.float32)


class NormalRows(NamedTuple):
    """y given the logarithm of its noise: the mean is integrated out, so that draws are of the noise alone.

    With o = (m, s), s = log noise: m given s is normal too, of mean m* + C_ms C_ss⁻¹ (s − s*).
    """

    outputs: NormalOutputs

    def __call__(self, theta: Theta, rows: Array) -> dist.Distribution:
        num = self.outputs.num_targets
        mean, variance, log_noise, log_noise_root, slope = jnp.split(rows, [num, 2 * num, 3 * num, 4 * num], axis=-1)
        shift = log_noise_root * theta["noise"]
        scale = jnp.sqrt(variance + jnp.exp(2 * (log_noise + shift)))
        return self.outputs.around(mean + slope * theta["noise"], scale)


class DrawnRows(NamedTuple):
    """y given a draw of the outputs: o = o* + √(J Σ Jᵀ) ε."""

    outputs: Outputs
    num_outputs: int

    def __call__(self, theta: Theta, rows: Array) -> dist.Distribution:
        mean, root = jnp.split(rows, [self.num_outputs], axis=-1)
        root = root.reshape(-1, self.num_outputs, self.num_outputs)
        return self.outputs.distribution(mean + root @ theta["noise"])


class ProbitRows(NamedTuple):
    """Classes by the probit approximation: softmax(o* / √(1 + π/8 diag(J Σ Jᵀ))) (MacKay, 1992)."""

    outputs: Outputs
    num_outputs: int

    def __call__(self, theta: Theta, rows: Array) -> dist.Distribution:
        mean, variance = jnp.split(rows, [self.num_outputs], axis=-1)
        return self.outputs.distribution(mean / jnp.sqrt(1 + math.pi / 8 * variance))


class _BetweenRows(Predictive):
    """What a linearised prediction knows of two rows at once: their outputs are jointly normal."""

    posterior: "Gaussian"
    inputs: np.ndarray
    linearisation: Linearisation

    def _place(self, posterior: "Gaussian", linearisation: Linearisation, inputs: np.ndarray) -> None:
        self.posterior, self.linearisation, self.inputs = posterior, linearisation, inputs

    def __getitem__(self, rows: Any) -> Any:
        chosen = super().__getitem__(rows)
        inputs = self.inputs[rows if isinstance(rows, slice) else np.atleast_1d(rows)]
        chosen._place(self.posterior, self.linearisation, inputs)
        return chosen

    def _output_covariance(self) -> np.ndarray:
        """J(x) Σ J(x′)ᵀ, (rows, K, rows, K)."""
        posterior, linear = self.posterior, self.linearisation
        features = features_by_block(linear, posterior.mean, posterior.root, self.inputs)
        flat = features.reshape(-1, features.shape[-1])
        return (flat @ flat.T).reshape(*features.shape[:2], *features.shape[:2])


class LinearRegressionPredictive(_BetweenRows, RegressionPredictive):
    """The marginal of numbers under a linearised network: moments in closed form."""

    exact: streaming.Moments

    @property
    def _moments(self) -> streaming.Moments:
        return self.exact

    @property
    def _unbiased(self) -> float:
        return 1.0

    def __getitem__(self, rows: Any) -> Any:
        chosen = super().__getitem__(rows)
        keep = rows if isinstance(rows, slice) else np.atleast_1d(rows)
        chosen.exact = streaming.Moments(*(part[keep] for part in self.exact))
        return chosen

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance between the outputs of each row, (data, outputs, outputs), noise included."""
        posterior = self.posterior
        num = math.prod(self._target_shape[1:])
        outputs, found = moments_by_block(self.linearisation, posterior.mean, posterior.root, self.inputs)
        scale = np.broadcast_to(self.scaling.y_scale, (num,))
        noise = np.asarray(streaming.noise_covariance(self.linearisation.outputs.distribution(jnp.asarray(outputs))))
        return (found[:, :num, :num] + noise) * np.outer(scale, scale)

    @cached_property
    def input_covariance(self) -> np.ndarray:
        """Covariance of E[y | x, theta] between the inputs, (data, data, output…), without the noise."""
        self._refuse_if_large(len(self), "a covariance between inputs", self._target_shape[1:])
        found = self._output_covariance()
        num = math.prod(self._target_shape[1:])
        between = np.stack([found[:, target, :, target] for target in range(num)], axis=-1)
        scaled = between * np.broadcast_to(self.scaling.y_scale, (num,)) ** 2
        return scaled.reshape(len(self), len(self), *self._target_shape[1:])

    @cached_property
    def functions(self) -> np.ndarray:
        """Draws of E[y | x, theta] = o* + J(x)(theta − theta*), (draws, data, output…), jointly over the rows."""
        return _function_draws(self)


class LinearClassPredictive(_BetweenRows, ClassPredictive):
    """The marginal of class labels under a linearised network."""

    @cached_property
    def functions(self) -> np.ndarray:
        """Draws of the class probabilities, (draws, data, classes), jointly over the rows."""
        return _function_draws(self)


def linear_predictive(
    posterior: "Gaussian", x: np.ndarray, *, probit: bool = False, num_draws: int | None = None
) -> Predictive:
    """The marginal p(y | x, D) of a Gaussian under the linearised network.

    Arguments:
        x: inputs in the user's units.
        probit: the closed form for classes, in place of draws of the outputs.
        num_draws: of the outputs, where there is no closed form; 1,000 by default.
    """
    scaling = posterior.scaling
    inputs = np.asarray(scaling.inputs(x), np.float32)
    linear = Linearisation.of(posterior.model, posterior.mean, posterior.root)
    outputs, covariance = moments_by_block(linear, posterior.mean, posterior.root, inputs)
    num = NUM_OUTPUT_DRAWS if num_draws is None else num_draws
    key = random.key(posterior.provenance.seed)
    kind = linear.outputs
    is_classes = streaming.is_classes(posterior.model.predictive, _one(posterior.mean), inputs)
    if probit and not is_classes:
        raise ValueError("prediction='probit' is for class labels; for numbers, prediction='linear' is in closed form")
    if probit:
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        conditional: Any = ProbitRows(kind, outputs.shape[1])
        found = _predictive(LinearClassPredictive, conditional, np.zeros((1, 1)), _rows(outputs, variance), scaling)
    elif isinstance(kind, NormalOutputs):
        found = _normal_predictive(kind, outputs, covariance, num, scaling)
    else:
        rows = _rows(outputs, _roots(covariance))
        noise = np.asarray(random.normal(key, (num, outputs.shape[1])))
        drawn = LinearClassPredictive if is_classes else LinearRegressionPredictive
        found = _predictive(drawn, DrawnRows(kind, outputs.shape[1]), noise, rows, scaling)
        if not is_classes:
            found.exact = _exact_moments(kind, outputs, covariance, found)
    found._place(posterior, linear, inputs)
    return found


def _normal_predictive(
    kind: NormalOutputs, outputs: np.ndarray, covariance: np.ndarray, num: int, scaling: Scaling
) -> LinearRegressionPredictive:
    """m | s normal, s = log noise drawn at evenly spaced quantiles: a sum in place of an integral over one number."""
    num_targets = kind.num_targets
    diagonal = np.diagonal(covariance, axis1=1, axis2=2)
    mean, variance = outputs[:, :num_targets], diagonal[:, :num_targets]
    if kind.scale is None:
        log_noise, spread = outputs[:, num_targets:], np.sqrt(np.maximum(diagonal[:, num_targets:], 0.0))
        cross = np.stack([covariance[:, t, num_targets + t] for t in range(num_targets)], axis=1)
        slope = np.divide(cross, spread, out=np.zeros_like(cross), where=spread > 0)
    else:
        log_noise = np.broadcast_to(np.log(kind.scale), mean.shape)
        spread = slope = np.zeros_like(mean)
    is_certain = not np.any(spread > 0)
    nodes = np.zeros((1, 1)) if is_certain else ndtri((np.arange(num) + 0.5) / num)[:, None]
    rows = _rows(mean, np.maximum(variance - slope**2, 0.0), log_noise, spread, slope)
    found = _predictive(LinearRegressionPredictive, NormalRows(kind), nodes, rows, scaling)
    # E[noise²] of a lognormal noise.
    noise = np.exp(2 * log_noise + 2 * spread**2)
    shape = (len(mean),) if kind.scalar else mean.shape
    parts = (part.reshape(shape) for part in (mean, variance, noise))
    found.exact = streaming.Moments(np.ones(len(mean)), *parts)
    return found


def _exact_moments(kind: Outputs, outputs: np.ndarray, covariance: np.ndarray, found: Any) -> streaming.Moments:
    """Mean and spread of a correlated normal in closed form; of anything else (counts) from the draws."""
    moments = found.fold(streaming.MOMENTS)
    if not isinstance(kind, CorrelatedOutputs):
        return moments
    num = kind.num_targets
    diagonal = np.diagonal(covariance, axis1=1, axis2=2)
    return moments._replace(mean=outputs[:, :num], spread=diagonal[:, :num])


def _predictive(kind: Any, conditional: Any, noise: np.ndarray, rows: np.ndarray, scaling: Scaling) -> Any:
    weights = np.full(len(noise), 1 / len(noise))
    draws = {"noise": np.asarray(noise, np.float32)}
    return kind(conditional, draws, rows, weights=weights, scaling=scaling)


def _function_draws(prediction: Any) -> np.ndarray:
    """Functions drawn jointly over the rows: o* + J √Σ ε with one ε for each draw."""
    posterior, linear = prediction.posterior, prediction.linearisation
    num = prediction.num_draws if prediction.num_draws > 1 else NUM_FUNCTIONS
    prediction._refuse_if_large(num, "functions", (linear.num_outputs,))
    outputs, _ = moments_by_block(linear, posterior.mean, posterior.root, prediction.inputs)
    features = features_by_block(linear, posterior.mean, posterior.root, prediction.inputs)
    noise = np.asarray(random.normal(random.key(posterior.provenance.seed), (features.shape[-1], num)))
    drawn = jnp.moveaxis(jnp.asarray(outputs[..., None] + features @ noise), -1, 0)
    means = jax.lax.map(lambda one: streaming.mean_of(linear.outputs.distribution(one)), drawn)
    return prediction._to_units(np.asarray(means))


def _one(theta: Theta) -> Theta:
    return {name: np.asarray(leaf)[None] for name, leaf in theta.items()}


def _roots(covariance: np.ndarray) -> np.ndarray:
    """Symmetric roots of positive semi-definite matrices, (rows, K, K)."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
