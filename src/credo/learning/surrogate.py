"""The network that stands for a function of which few values are known, and its posterior.

The default is one layer of random waves (`credo.networks.Fourier`) with a last layer in closed form: a Gaussian process
by other means, whose every draw is one function. The length ℓ of each coordinate is the most probable one,

    log ℓ ~ N(log(ℓ₀ √d), s²),    f = wᵀφ(x/ℓ) + b,    w, b ~ N(0, 1),    y ~ N(f(x), σ²),    d coordinates

ℓ₀ √d, because distances in d dimensions grow like √d (Hvarfner, Hellsten and Nardi, "Vanilla Bayesian optimization
performs great in high dimensions", 2024).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpyro.distributions as dist

from credo import models, networks
from credo.data import Data, Scaling, capacity_for
from credo.inference.auto import Choice
from credo.inference.closed_form.closed_form import ClosedForm
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.inference.sgmcmc.schedules import Cosine
from credo.models import priors
from credo.models.program import Model
from credo.posterior import Posterior

NUM_WAVES = 512
# ℓ₀ and s of the length, where coordinates go from −1 to 1.
LENGTH, LENGTH_SPREAD = 0.5, 1.0
# Of a noise that is to be learned, in units of the values' spread: a hundredth, give or take a factor of ten.
NOISE = dist.LogNormal(math.log(1e-2), 1.5)
# A function without noise still has some: what waves cannot follow, and rounding.
NO_NOISE = 1e-3
# Values farther below the median than so many times the distance of the best one above it are moved there.
TEMPERED = 2.0
METHOD = ClosedForm(num_steps=100, learning_rate=Cosine(0.1, 100))


@lru_cache
def wave_model(width: int, noise: float | None) -> Model:
    """The default model, bound once for all fits.

    Arguments:
        width: the number of coordinates.
        noise: its standard deviation in units of the values' spread; None for one that is learned.
    """
    length = LENGTH * math.sqrt(width)
    prior = {
        "log_length": priors.point(dist.Normal(math.log(length), LENGTH_SPREAD)),
        "head.*": priors.normal(1.0),
    }
    net = networks.Fourier(NUM_WAVES, 1, length=length)
    model = models.regression(net, prior=prior, noise=NOISE if noise is None else noise)
    return model.bind((np.zeros((2, width)), np.zeros(2)))


@dataclass(frozen=True)
class Surrogate:
    """A model and a method for the values of a function.

    Arguments:
        noise: "learned", or the standard deviation of the values; of the default model.
        model: of a user; None for the default one.
        method: None for the default model's, or for what suits a user's model.
    """

    noise: float | str = "learned"
    model: Model | None = None
    method: Method | Choice | str | None = None

    def fit(self, rows: np.ndarray, values: np.ndarray, sign: float, seed: int) -> Posterior:
        """p(theta | values at these rows of coordinates).

        Arguments:
            sign: 1 where large values are good ones, else −1.
        """
        values = sign * tempered(sign * values)
        scaling = self._scaling(values)
        data = Data(rows, values).with_scaling(scaling).padded(capacity_for(len(rows)))
        model = self.model or self._default(rows.shape[1], float(scaling.y_scale))
        method = self.method or (METHOD if self.model is None else "auto")
        return fit(model, data, method, seed=seed, progress=False)

    def _default(self, width: int, scale: float) -> Model:
        if self.noise == "learned":
            return wave_model(width, None)
        return wave_model(width, max(NO_NOISE, float(self.noise) / scale))

    def _scaling(self, values: np.ndarray) -> Scaling:
        """To mean zero and a spread of about one.

        A known noise takes part in what is compiled, so it changes by powers of two alone.
        """
        scale = float(np.std(values)) or 1.0
        if self.model is None and not isinstance(self.noise, str) and self.noise > 0:
            scale = self.noise * 2.0 ** round(math.log2(scale / self.noise))
        return Scaling(y_mean=np.asarray(np.mean(values)), y_scale=np.asarray(scale))


def tempered(values: np.ndarray) -> np.ndarray:
    """Values that are much worse than the middle one, made less bad: a network shall follow the good ones.

    A few very bad values would be most of the spread, next to which all good ones look alike. The limit is as far below
    the median, TEMPERED times, as the best value is above it. Larger is better.

    >>> tempered(np.array([-100.0, -1.0, 0.0, 1.0, 2.0])).tolist()
    [-4.0, -1.0, 0.0, 1.0, 2.0]
    """
    middle, best = np.median(values), np.max(values)
    return values if best == middle else np.maximum(values, middle - TEMPERED * (best - middle))


def check_noise(noise: Any, model: Any) -> None:
    """Refuse a noise that is none, or one beside a model that has its own."""
    if model is not None and not isinstance(model, Model):
        raise ValueError(
            f"model must be a credo.Model, got {type(model).__name__}; wrap a network with credo.models.regression(net)"
        )
    if model is not None and noise != "learned":
        raise ValueError(
            f"noise is {noise!r}, and model has a noise of its own; say it there, and leave noise out here"
        )
    is_number = isinstance(noise, int | float | np.number) and not isinstance(noise, bool)
    if noise != "learned" and not (is_number and 0 <= noise < math.inf):
        raise ValueError(f"noise is {noise!r}; pass a standard deviation, 0 for none, or 'learned'")
