"""Outputs: the numbers that set the distribution of y, and the information that y holds about them.

p(y | x, theta) = p(y | o), o = o(x, theta): the mean and the logarithm of the noise, the logits of the classes. With
F(o) the Fisher information of p(y | o), and J the Jacobian of o in theta,

    Σ Jᵀ F(o) J    is the generalised Gauss–Newton matrix (GGN), the Fisher information of theta.

Each kind also gives outputs *in units of information*, w = R(o*)ᵀ o with R Rᵀ = F(o*): their Jacobian at o* gives the
same GGN, Σ J_wᵀ J_w, so that curvature need not know about distributions.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

from credo._dataflow import dependencies
from credo._precision import working_precision
from credo.models.positive import LogNormal
from credo.models.program import Model
from credo.models.sites import stripped
from credo.predictive.conditional import Conditional
from credo.typing import Array, Theta


class Outputs(Protocol):
    """One kind of distribution of y, as a function of its outputs o, (rows, K)."""

    def read(self, distribution: dist.Distribution) -> Array:
        """o, from the distribution."""

    def informed(self, outputs: Array, at: Array) -> Array:
        """w = R(at)ᵀ o, (rows, K′)."""

    def distribution(self, outputs: Array) -> Conditional:
        """p(y | o)."""


@dataclass(frozen=True)
class NormalOutputs:
    """y ~ N(mean, scale²) for each of some targets: o = (mean, log scale), F = diag(1/scale², 2).

    A scale that is constant is not an output; then `scale` holds it.
    """

    num_targets: int
    scalar: bool
    scale: tuple[float, ...] | None = None

    def read(self, distribution: dist.Distribution) -> Array:
        normal = stripped(distribution)
        mean = jnp.broadcast_to(normal.loc, distribution.shape()).reshape(-1, self.num_targets)
        if self.scale is not None:
            return mean
        return jnp.concatenate([mean, jnp.log(self.noise(distribution))], axis=-1)

    def noise(self, distribution: dist.Distribution) -> Array:
        """The scale of each target, (rows, targets), free of anything that only the mean depends on."""
        return jnp.broadcast_to(stripped(distribution).scale, distribution.shape()).reshape(-1, self.num_targets)

    def split(self, outputs: Array) -> tuple[Array, Array]:
        """Mean and scale of each target, (rows, targets)."""
        mean = outputs[..., : self.num_targets]
        if self.scale is not None:
            return mean, jnp.broadcast_to(jnp.asarray(self.scale, working_precision()), mean.shape)
        return mean, jnp.exp(outputs[..., self.num_targets :])

    def informed(self, outputs: Array, at: Array) -> Array:
        scale = self.split(at)[1]
        mean = outputs[..., : self.num_targets] / scale
        if self.scale is not None:
            return mean
        return jnp.concatenate([mean, math.sqrt(2) * outputs[..., self.num_targets :]], axis=-1)

    def distribution(self, outputs: Array) -> Conditional:
        return self.around(*self.split(outputs))

    def around(self, mean: Array, scale: Array) -> Conditional:
        """Normals with mean and scale of shape (rows, targets), in the shape of y."""
        if self.scalar:
            return dist.Normal(mean[..., 0], scale[..., 0])
        return dist.Normal(mean, scale).to_event(1)


@dataclass(frozen=True)
class CorrelatedOutputs:
    """y ~ N(mean, L Lᵀ): o = (mean, L), F = Σ⁻¹ for the mean and ½ tr(Σ⁻¹ dΣ Σ⁻¹ dΣ) for Σ."""

    num_targets: int

    def read(self, distribution: dist.Distribution) -> Array:
        shape = (*distribution.shape(), self.num_targets)
        root = jnp.broadcast_to(distribution.scale_tril, shape)
        mean = jnp.broadcast_to(distribution.mean, shape[:-1])
        return jnp.concatenate([mean, root.reshape(shape[0], -1)], axis=-1)

    def split(self, outputs: Array) -> tuple[Array, Array]:
        """Mean, (rows, targets), and root, (rows, targets, targets)."""
        mean, root = jnp.split(outputs, [self.num_targets], axis=-1)
        return mean, root.reshape(-1, self.num_targets, self.num_targets)

    def informed(self, outputs: Array, at: Array) -> Array:
        (mean, root), (_, root_at) = self.split(outputs), self.split(at)
        mean = jax.scipy.linalg.solve_triangular(root_at, mean[..., None], lower=True)[..., 0]
        relative = jax.scipy.linalg.solve_triangular(root_at, root, lower=True)
        covariance = relative @ jnp.swapaxes(relative, -1, -2) / math.sqrt(2)
        return jnp.concatenate([mean, covariance.reshape(len(mean), -1)], axis=-1)

    def distribution(self, outputs: Array) -> Conditional:
        mean, root = self.split(outputs)
        return dist.MultivariateNormal(mean, scale_tril=root)


@dataclass(frozen=True)
class ClassOutputs:
    """y ~ Cat(softmax(o)): F = diag(p) − p pᵀ, and R = diag(√p) − p √pᵀ."""

    def read(self, distribution: dist.Distribution) -> Array:
        return distribution.logits

    def informed(self, outputs: Array, at: Array) -> Array:
        probs = jax.nn.softmax(at)
        return jnp.sqrt(probs) * (outputs - jnp.sum(probs * outputs, axis=-1, keepdims=True))

    def distribution(self, outputs: Array) -> Conditional:
        return dist.Categorical(logits=outputs)


@dataclass(frozen=True)
class BinaryOutputs:
    """y ~ Bernoulli(sigmoid(o)): F = p (1 − p)."""

    def read(self, distribution: dist.Distribution) -> Array:
        return distribution.logits[..., None]

    def informed(self, outputs: Array, at: Array) -> Array:
        return outputs * jnp.sqrt(jax.nn.sigmoid(at) * jax.nn.sigmoid(-at))

    def distribution(self, outputs: Array) -> Conditional:
        return dist.Bernoulli(logits=outputs[..., 0])


@dataclass(frozen=True)
class CountOutputs:
    """y ~ Poisson(exp(o)): F = exp(o)."""

    def read(self, distribution: dist.Distribution) -> Array:
        return jnp.log(distribution.rate)[..., None]

    def informed(self, outputs: Array, at: Array) -> Array:
        return outputs * jnp.exp(0.5 * at)

    def distribution(self, outputs: Array) -> Conditional:
        return dist.Poisson(jnp.exp(outputs[..., 0]))


@dataclass(frozen=True)
class LogNormalOutputs:
    """log y ~ N(mean, scale²), of which y has the outputs and the information."""

    of_log: NormalOutputs

    def read(self, distribution: dist.Distribution) -> Array:
        return self.of_log.read(dist.Normal(distribution.loc, distribution.scale))

    def informed(self, outputs: Array, at: Array) -> Array:
        return self.of_log.informed(outputs, at)

    def distribution(self, outputs: Array) -> Conditional:
        mean, scale = self.of_log.split(outputs)
        return LogNormal(mean[..., 0], scale[..., 0])


@dataclass(frozen=True)
class BetaOutputs:
    """y ~ Beta(a, b): o = (log a, log b), F = diag(a² ψ′(a), b² ψ′(b)) − ψ′(a + b) (a, b)ᵀ(a, b)."""

    def read(self, distribution: dist.Distribution) -> Array:
        return jnp.log(jnp.stack([distribution.concentration1, distribution.concentration0], axis=-1))

    def informed(self, outputs: Array, at: Array) -> Array:
        a, b = jnp.exp(at[..., 0]), jnp.exp(at[..., 1])
        both = _trigamma(a + b)
        of_a, of_b, crossed = a**2 * (_trigamma(a) - both), b**2 * (_trigamma(b) - both), -a * b * both
        # The Cholesky root; of a and b that are large only their ratio is known well.
        root = jnp.sqrt(of_a)
        rest = jnp.sqrt(jnp.maximum(of_b - crossed**2 / of_a, 0.0))
        first = root * outputs[..., 0] + crossed / root * outputs[..., 1]
        return jnp.stack([first, rest * outputs[..., 1]], axis=-1)

    def distribution(self, outputs: Array) -> Conditional:
        return dist.Beta(*jnp.moveaxis(jnp.exp(outputs), -1, 0))


@dataclass(frozen=True)
class StudentOutputs:
    """y ~ StudentT(ν, mean, scale) for each of some targets: o = (mean, log scale, log ν), and, with ψ′ the trigamma,

        F = diag((ν + 1)/((ν + 3) scale²), [[2ν/(ν + 3), c], [c, ν² I(ν)]]),    c = −2ν/((ν + 1)(ν + 3)),
        I(ν) = (ψ′(ν/2) − ψ′((ν + 1)/2))/4 − (ν + 5)/(2ν (ν + 1)(ν + 3)).

    Lange, Little and Taylor, "Robust statistical modeling using the t distribution" (1989).
    """

    num_targets: int
    scalar: bool

    def read(self, distribution: dist.Distribution) -> Array:
        law, shape = stripped(distribution), distribution.shape()
        parts = (law.loc, jnp.log(law.scale), jnp.log(law.df))
        return jnp.concatenate([jnp.broadcast_to(part, shape).reshape(-1, self.num_targets) for part in parts], axis=-1)

    def informed(self, outputs: Array, at: Array) -> Array:
        mean, log_scale, log_df = jnp.split(outputs, 3, axis=-1)
        _, log_scale_at, log_df_at = jnp.split(at, 3, axis=-1)
        df = jnp.exp(log_df_at)
        of_mean = jnp.sqrt((df + 1) / (df + 3)) * jnp.exp(-log_scale_at)
        of_scale = 2 * df / (df + 3)
        crossed = -2 * df / ((df + 1) * (df + 3))
        of_df = df**2 * (_trigamma(df / 2) - _trigamma((df + 1) / 2)) / 4 - df * (df + 5) / (2 * (df + 1) * (df + 3))
        # The Cholesky root of the block; nearly normal noise says nothing about its tail, up to rounding.
        root = jnp.sqrt(of_scale)
        rest = jnp.sqrt(jnp.maximum(of_df - crossed**2 / of_scale, 0.0))
        parts = (of_mean * mean, root * log_scale + crossed / root * log_df, rest * log_df)
        return jnp.concatenate(parts, axis=-1)

    def distribution(self, outputs: Array) -> Conditional:
        mean, log_scale, log_df = jnp.split(outputs, 3, axis=-1)
        law = dist.StudentT(jnp.exp(log_df), mean, jnp.exp(log_scale))
        if self.scalar:
            return dist.StudentT(law.df[..., 0], law.loc[..., 0], law.scale[..., 0])
        return law.to_event(1)


def _trigamma(x: Array) -> Array:
    """ψ′(x) = Σₖ 1/(x + k)², by its asymptotic series from x + 6 on: off by 1e-8 of itself at most.

    JAX's own makes XLA complain about a loop of simplifications.
    """
    z = x + 6
    series = 1 / z + 1 / (2 * z**2) + 1 / (6 * z**3) - 1 / (30 * z**5) + 1 / (42 * z**7)
    return series + sum(1 / (x + k) ** 2 for k in range(6))


def _scale(model: Model, theta: Theta) -> Array:
    """The noise of each target in a first row, (targets,)."""
    law = model.predictive(theta, model.example().x)
    return jnp.broadcast_to(stripped(law).scale, law.shape())[0].reshape(-1)


# Compiled once for all models that differ in their arrays alone.
_compiled_scale = jax.jit(_scale)


def _constant_scale(model: Model, theta: Theta) -> tuple[float, ...] | None:
    """The noise of each target where it is known and that of all rows; None where it is learned, or has precisions."""
    depends = (model.rows is not None and model.rows.precise) or depends_on(lambda theta: _scale(model, theta), theta)
    return None if depends else tuple(_compiled_scale(model, theta).tolist())


def outputs_of(model: Model, theta: Theta) -> Outputs:
    """The kind of outputs a model has, found from its distribution of y.

    >>> import numpy as np
    >>> from credo import models, networks, random
    >>> model = models.classification(networks.MLP([5], 3)).bind((np.zeros((4, 2)), np.array([0, 1, 2, 0])))
    >>> outputs_of(model, model.initial_theta(random.key(0)))
    ClassOutputs()
    """
    x = model.example().x
    found: list[dist.Distribution] = []
    jax.eval_shape(lambda theta: found.append(model.predictive(theta, x)), theta)
    distribution, bare = found[0], stripped(found[0])
    if isinstance(bare, dist.Normal) and len(distribution.shape()) <= 2:
        shape = distribution.shape()
        num_targets = 1 if len(shape) == 1 else shape[1]
        return NormalOutputs(num_targets, len(shape) == 1, _constant_scale(model, theta))
    if isinstance(bare, dist.LogNormal) and len(distribution.shape()) == 1:
        return LogNormalOutputs(NormalOutputs(1, True, _constant_scale(model, theta)))
    if isinstance(bare, dist.Beta) and len(distribution.shape()) == 1:
        return BetaOutputs()
    if isinstance(bare, dist.StudentT) and len(distribution.shape()) <= 2:
        shape = distribution.shape()
        return StudentOutputs(1 if len(shape) == 1 else shape[1], len(shape) == 1)
    if isinstance(bare, dist.MultivariateNormal) and len(distribution.shape()) == 2:
        return CorrelatedOutputs(distribution.shape()[1])
    if isinstance(bare, dist.CategoricalLogits) and bare is distribution:
        return ClassOutputs()
    if isinstance(bare, dist.BernoulliLogits) and bare is distribution:
        return BinaryOutputs()
    if isinstance(bare, dist.Poisson) and len(distribution.shape()) == 1:
        return CountOutputs()
    raise ValueError(
        f"y is drawn from {type(bare).__name__}, whose Fisher information credo does not know; use "
        "curvature='fisher', from the gradients of the data, with prediction='draws'"
    )


def depends_on(function: Callable[[Theta], Array], theta: Theta) -> bool:
    """Whether what a function returns depends on any of its arrays."""
    return bool(dependencies(lambda theta: {"value": function(theta)}, theta)["value"])
