"""The folded sheet of paper: eight parameters, and a posterior with two modes that a single chain cannot join.

Paper, "Practical Example III: Paperfold".
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from credo._checks import require_positive
from credo.models import priors
from credo.models.program import Model
from credo.typing import Array

# α and β are planes over (x, y), each a slope and a height; γ weighs them.
_SHAPES = {"alpha.kernel": (2,), "alpha.bias": (), "beta.kernel": (2,), "beta.bias": (), "gamma": (2,)}


def paperfold(*, prior: Any = None, noise: float = 0.1) -> Model:
    """A plane plus a folded plane: the smallest network whose posterior is a real test.

        z ~ N(γ₁ (α₁x + α₂y + α₃) + γ₂ ReLU(β₁x + β₂y + β₃), noise²)

    A fit determines only γ₁α and |γ₂|β, so each mode is a family of hyperbolas; each has mirror images; and the data
    of `credo.datasets.paperfold` make two folds equally probable.

    Arguments:
        prior: of `credo.priors`, on the paths alpha.kernel, alpha.bias, beta.kernel, beta.bias and gamma; N(0, 5²) by
            default. The paper's supplement has {"*.bias": credo.priors.normal(10.0)}, and N(0, 1) on the rest.
        noise: standard deviation of z.

    >>> from credo import datasets
    >>> paperfold().bind(datasets.paperfold()).num_parameters
    8
    """
    require_positive(noise=noise)
    chosen = priors.as_prior(priors.normal(5.0) if prior is None else prior)
    if isinstance(chosen, priors.ByPath):
        chosen.check(list(_SHAPES))

    def program(x: Array, y: Array | None = None) -> None:
        drawn: priors.Drawn = {}
        theta = {
            path: priors.draw(chosen, priors.Parameter(path, shape, fan_in=2), drawn) for path, shape in _SHAPES.items()
        }
        plane, folded = (x @ theta[f"{name}.kernel"] + theta[f"{name}.bias"] for name in ("alpha", "beta"))
        height = jnp.stack([plane, jax.nn.relu(folded)], axis=-1) @ theta["gamma"]
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(height, noise), obs=y)

    return Model(program)
