"""A layer of waves with random directions: a wide network that behaves like a Gaussian process."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from scipy.special import ndtri
from scipy.stats import chi2, qmc

from credo._checks import require_positive
from credo.networks.zoo import NO_KEYS, ONLY_SHAPES, ZooNetwork, initial_values, positive, register
from credo.typing import Array


@register
class Fourier(ZooNetwork):
    """One hidden layer of cosines and sines, in random directions that stay as they are, and a last layer.

        f(x) = wᵀ φ(x) + b,    φ(x) = √(2/m) [cos(Ωᵀ(x/ℓ)), sin(Ωᵀ(x/ℓ))],    m = features

    With w ~ N(0, 1) it is, up to 1/√m, a Gaussian process with a Matérn kernel of that smoothness and one length ℓ for
    each input. Whoever knows w's posterior, `credo.ClosedForm`, knows much from few rows. Parameters are `log_length`,
    ℓ's logarithm, and the layer `head`.

    Arguments:
        features: m, the number of waves; even.
        out: the number of outputs.
        smoothness: ν of the Matérn kernel: 2.5 for functions with two derivatives.
        length: ℓ, where it starts.
        inputs: the number of inputs; without it the network is built when it meets its data.
        seed: of the directions.

    >>> import jax.numpy as jnp
    >>> Fourier(100, 1, inputs=3)(jnp.ones((7, 3))).shape
    (7, 1)

    Reference: Rahimi and Recht, Random features for large-scale kernel machines, 2007.
    """

    def __init__(
        self,
        features: int,
        out: int,
        *,
        smoothness: float = 2.5,
        length: float = 1.0,
        inputs: int | None = None,
        seed: int = 0,
    ) -> None:
        self.features, self.out = positive("features", features), positive("out", out)
        require_positive(smoothness=smoothness, length=length)
        if self.features % 2:
            raise ValueError(f"features is {features}, and each wave has a cosine and a sine; pass an even number")
        self.smoothness, self.length = float(smoothness), float(length)
        self.inputs = None if inputs is None else positive("inputs", inputs)
        self.seed = seed
        if self.inputs is not None:
            self.log_length = nnx.Param(jnp.full(self.inputs, math.log(self.length)))
            self.frequencies = nnx.Variable(self._frequencies(self.inputs))
            self.head = nnx.Linear(self.features, self.out, kernel_init=initial_values(seed), rngs=NO_KEYS)

    @staticmethod
    def inputs_of(shape: Any) -> int:
        return math.prod(shape)

    def _frequencies(self, num_inputs: int) -> Array:
        """Ω of the kernel's spectrum, a multivariate t of 2ν degrees of freedom: (inputs, features/2).

        Points of a Sobol sequence, which fill space more evenly than random ones, approach the kernel with fewer waves.
        """
        num = self.features // 2
        if ONLY_SHAPES.get():
            return jnp.zeros((num_inputs, num))
        points = qmc.Sobol(num_inputs + 1, rng=self.seed).random_base2(math.ceil(math.log2(num)))[:num]
        points = np.clip(points, 1e-6, 1 - 1e-6)
        degrees = 2 * self.smoothness
        return jnp.asarray((ndtri(points[:, :-1]) * np.sqrt(degrees / chi2.ppf(points[:, -1:], degrees))).T)

    def __call__(self, x: Array) -> Array:
        phases = (self.rows(x) * jnp.exp(-self.log_length[...])) @ self.frequencies[...]
        return self.head(math.sqrt(2 / self.features) * jnp.concatenate([jnp.cos(phases), jnp.sin(phases)], axis=-1))
