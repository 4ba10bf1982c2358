"""The prior of the default model for tables: no scale is set, all are drawn.

Paper, "Setting the priors": N(0, 1) on every weight means another function for every number of inputs and units. Here
weights are standard normals times scales, divided by the roots of how many there are, and the scales have priors that
standardised inputs and targets suggest. Neal, "Bayesian learning for neural networks" (1996), chapters 2 and 4.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._checks import require_at_least
from credo.models.priors.base import Composite, Drawn, Parameter, fill
from credo.typing import Array

# The kernels that the inputs enter.
RELEVANCE, LINE = "hidden.0.kernel", "shortcuts.0"
# The log-scales of noise start around exp(−1) of the target's own sd: what is left where two thirds are explained.
LOG_SCALE = dist.Normal(-1.0, 1.5)


@dataclass(frozen=True)
class Table(Composite):
    """A relevance for each input, a scale for each layer and output. See `table`.

    >>> from credo import priors
    >>> priors.table()
    Table(num_log_scales=0)
    """

    name = "table"
    num_log_scales: int = 0

    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        path, shape = parameter.path, parameter.shape
        if len(shape) < 2:
            return self._bias(path, shape)
        standard = numpyro.sample(f"{path}.z", fill(dist.Normal(0.0, 1.0), shape))
        scale = self._scale(path, shape) / np.sqrt(np.prod(shape[:-1]))
        return numpyro.deterministic(path, scale * standard)

    def _scale(self, path: str, shape: tuple[int, ...]) -> Array:
        """Of a hidden layer one number, of the first one for each input; of others one for each output."""
        layer = path.rpartition(".")[0]
        if layer.startswith("hidden"):
            scale = numpyro.sample(f"{layer}.scale", dist.LogNormal(0.0, 1.0))
            if path != RELEVANCE:
                return scale
            return scale * numpyro.sample("relevance", fill(dist.LogNormal(0.0, 1.0), (*shape[:-1], 1)))
        widths = np.full(shape[-1], 1.0 if layer == LINE else 2.0)
        widths[shape[-1] - self.num_log_scales :] = 0.5
        return numpyro.sample(f"{layer}.scale", dist.HalfNormal(jnp.asarray(widths)).to_event(1))

    def _bias(self, path: str, shape: tuple[int, ...]) -> Array:
        num = self.num_log_scales if path.startswith("head") else 0
        middle, spread = np.zeros(shape), np.ones(shape)
        middle[shape[-1] - num :], spread[shape[-1] - num :] = LOG_SCALE.loc, LOG_SCALE.scale
        return numpyro.sample(path, dist.Normal(jnp.asarray(middle), jnp.asarray(spread)).to_event(1))


def table(num_log_scales: int = 0) -> Table:
    """A prior for `credo.networks.ShortcutMLP` on standardised inputs and targets, of which every scale is drawn.

        hidden.0    w_ij = z_ij s τ_i/√d,   log s, log τ_i ~ N(0, 1)      τ_i: the relevance of input i
        hidden.l    w = z s/√H,             log s ~ N(0, 1)
        shortcuts.0 w = z s/√d,             s ~ HalfNormal(1),  one for each output
        others      w = z s/√H,             s ~ HalfNormal(2),  one for each output
        biases      N(0, 1)

    with z ~ N(0, 1). For outputs that are log-scales of noise the last two scales are HalfNormal(0.5), so that noise
    depends little on x unless the data say so, and the bias is N(−1, 1.5²). Nothing is centred: between z and a scale
    that few data speak of there is no funnel.

    Arguments:
        num_log_scales: how many of the outputs, the last ones, are log-scales of the noise.

    >>> table(num_log_scales=1)
    Table(num_log_scales=1)
    """
    require_at_least(0, num_log_scales=num_log_scales)
    return Table(num_log_scales)
