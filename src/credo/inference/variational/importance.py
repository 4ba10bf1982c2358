"""Importance weights of q, a Gaussian or a flow: how good its bound is, and how far it is from the posterior.

    log wₛ = log p(thetaₛ, D) − log q(thetaₛ),   thetaₛ ~ q

The mean of log w is the ELBO; Pareto k̂ of w says whether q covers the posterior (Yao et al., 2018).
"""

import math

import jax
import numpy as np

from credo import random
from credo.covariance import Root
from credo.covariance.warp import Warp
from credo.diagnostics._arviz import smoothed_weights
from credo.diagnostics.variational import ElboEvidence
from credo.models.on_features import on_features
from credo.models.program import Model
from credo.posterior import Flow, Gaussian
from credo.typing import Array, Batch, Key, Theta

NUM_DRAWS = 400
# k̂ needs a tail to fit: a fifth of the draws, and of those at least twenty.
LEAST_DRAWS = 100
# A pass over the data costs about 2·N·n operations for n weights; all draws may take about a second of them.
BUDGET = 2e10


def evidence(posterior: "Gaussian | Flow", data: Batch) -> ElboEvidence:
    """The ELBO with its standard error, and k̂ where enough draws can be afforded on the whole data.

    Of a batch that is only some of the rows, as where they are in files, nothing.
    """
    if data.scale > 1:
        return ElboEvidence()
    affordable = BUDGET / (2.0 * data.x.shape[0] * max(posterior.model.num_parameters, 1))
    num = int(min(NUM_DRAWS, affordable))
    if num < LEAST_DRAWS or posterior.model.has_local_latents:
        return ElboEvidence()
    keys = jax.random.split(random.key(posterior.provenance.seed + 1), num)
    model, short = posterior.model, on_features(posterior.model, data.x.shape[0])
    if short is not None:
        model, data = short.model, short.batch(data)
    weights = np.asarray(log_weights(model, *posterior.centre_and_root, keys, data), np.float64)
    weights = weights + (0.0 if short is None else short.constant)
    if not np.all(np.isfinite(weights)):
        return ElboEvidence()
    _, k_hat = smoothed_weights(weights - weights.max())
    spread = float(weights.std(ddof=1))
    # Beside a Gaussian posterior, log w of a Gaussian q varies by √2·e where its sd in one direction is off by e.
    return ElboEvidence(
        elbo=float(weights.mean()),
        elbo_error=spread / math.sqrt(num),
        k_hat=float(k_hat),
        sd_off=spread / math.sqrt(2),
    )


def standard_errors(posterior: "Gaussian | Flow", halves: "list[Gaussian | Flow]") -> dict[str, float]:
    """Of the means and the sds of q, from the two halves of the tail that it is the average of.

    The halves differ by twice the standard error of their average, and by more while q still moves. Means are in sds
    of q, sds relative; each is the root of the mean square over all entries of theta. Without two halves, nothing.
    """
    if len(halves) < 2:
        return {}
    (_, sds), (first, first_sds), (second, second_sds) = (_means_and_sds(one) for one in (posterior, *halves))
    apart = {"mean_error": (second - first) / sds, "sd_error": np.log(second_sds / first_sds)}
    return {name: float(np.sqrt(np.mean(own**2)) / 2) for name, own in apart.items()}


def _means_and_sds(posterior: "Gaussian | Flow") -> tuple[np.ndarray, np.ndarray]:
    """Of all entries of theta, side by side."""
    means, variances = (np.concatenate([np.ravel(leaf) for leaf in tree.values()]) for tree in posterior.moments())
    return means.astype(np.float64), np.sqrt(np.maximum(variances, np.finfo(np.float32).tiny), dtype=np.float64)


@jax.jit
def log_weights(model: Model, mean: Theta, root: Root | Warp, keys: Key, data: Batch) -> Array:
    """log p(theta, D) − log q(theta) of one draw for each key."""

    def one(key: Key) -> Array:
        offset, log_q = root.draw_and_log_q(key)
        theta = {name: mean[name] + offset[name] for name in mean}
        return model.log_joint(theta, data) - log_q

    return jax.lax.map(one, keys)
