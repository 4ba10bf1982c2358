"""Marginals over five linear functions, small enough to compute every answer directly."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo.data import Scaling
from credo.models import Model

RNG = np.random.default_rng(0)
DRAWS, ROWS, OUT = 5, 7, 3
X = RNG.normal(size=(ROWS, 2)).astype(np.float32)
WEIGHTS = np.array([0.1, 0.4, 0.05, 0.25, 0.2])
CORRELATION = np.array([[1.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 1.0]])
SCALING = Scaling(np.ones(2), np.full(2, 2.0), np.array([10.0, -5.0, 0.0]), np.array([3.0, 0.5, 1.0]))
THETA = {
    "w": jnp.asarray(RNG.normal(size=(DRAWS, 2, OUT)), jnp.float32),
    "noise": jnp.asarray(RNG.normal(size=DRAWS) - 1, jnp.float32),
}


def program_of(likelihood):
    def program(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2, OUT]).to_event(2))
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", likelihood(x @ w, noise), obs=y)

    return Model(program)


ROOT = np.linalg.cholesky(CORRELATION)
MODELS = {
    "correlated": program_of(lambda f, noise: dist.MultivariateNormal(f, scale_tril=noise * ROOT)),
    "independent": program_of(lambda f, noise: dist.Normal(f, noise).to_event(1)),
    "one": program_of(lambda f, noise: dist.Normal(f[:, 0], noise)),
    "categorical": program_of(lambda f, noise: dist.Categorical(logits=f)),
    "binary": program_of(lambda f, noise: dist.Bernoulli(logits=f[:, 0])),
}
NOISE = np.exp(np.asarray(THETA["noise"], np.float64))


def functions_at(x=X, scaling=None):
    """What each draw says, (draws, rows, outputs), in the user's units."""
    scaling = scaling or Scaling()
    said = np.einsum("nd,sdo->sno", (x - scaling.x_mean) / scaling.x_scale, np.asarray(THETA["w"], np.float64))
    return scaling.y_mean + said * scaling.y_scale
