"""Bayesian regression: theta ~ p(theta), y ~ N(f_theta(x), Σ). Paper, figure "BBNs", (a)."""

from functools import partial
from typing import Any

import numpyro

from credo._precision import working_precision
from credo.models import likelihoods, priors
from credo.models.imposed import imposed_by
from credo.models.network import check_symmetries, drawn_outputs, initial_weights, num_outputs
from credo.models.program import Model
from credo.models.recipe import Recipe
from credo.models.rows import ModelConfig
from credo.networks import network_config
from credo.typing import Array, Batch


def regression(net: Any, *, prior: Any = None, noise: Any = None) -> Model:
    """A network with weights drawn from a prior, and normal noise around its output.

        theta ~ p(theta),    y ~ N(f_theta(x), Σ)

    Arguments:
        net: any network that `credo.networks.functional` takes, with one output per target
            (two for heteroscedastic noise).
        prior: of `credo.priors`, a NumPyro distribution, or a dict of parameter paths; N(0, 1) by default.
        noise: a number or one per target (known standard deviations); a (k, k) matrix (known covariance);
            a NumPyro distribution on positive numbers, or "learned" (HalfNormal(1), the default: it suits
            standardised targets); "tuned" (set by climbing the evidence or the ELBO, without a prior);
            "heteroscedastic" (the network also gives the scale); "full" (a learned covariance between the targets).

    >>> from credo.networks import MLP
    >>> model = regression(MLP(features=[50], out=1), noise=0.1)
    """
    chosen_prior, chosen_noise = priors.as_prior(prior), likelihoods.as_noise(noise)
    terms = priors.terms_of(chosen_prior)

    def program(x: Array, y: Array | None = None, **inputs: Array) -> None:
        outputs = drawn_outputs(net, chosen_prior, partial(likelihoods.means, chosen_noise), x, inputs)
        drawn = chosen_noise.draw(likelihoods.num_targets(chosen_noise, outputs.shape[-1]))
        with numpyro.plate("data", x.shape[0]):
            observed = None if y is None else y.astype(working_precision())
            numpyro.sample("y", chosen_noise.around(outputs, drawn), obs=observed)

    def check(batch: Batch) -> None:
        check_outputs(batch, num_outputs(net, batch.x), chosen_noise)
        check_symmetries(net, chosen_prior, batch.x)

    config = ModelConfig(
        model="regression",
        network=network_config(net),
        prior=chosen_prior.to_config(),
        noise=chosen_noise.to_config(),
    )
    return Model(
        program,
        inputs=imposed_by(terms, chosen_prior),
        config=config,
        initial=initial_weights(net),
        check=check,
        recipe=Recipe(lambda net, prior: regression(net, prior=prior, noise=noise), net, chosen_prior),
    )


def check_outputs(batch: Batch, outputs: int, noise: likelihoods.Noise) -> None:
    """Refuse a network without the outputs that the targets and their noise need."""
    num_targets = 1 if batch.y.ndim == 1 else batch.y.shape[1]
    likelihoods.check_targets(noise, num_targets)
    expected = noise.num_outputs(num_targets)
    if outputs != expected:
        raise ValueError(
            f"the network gives {outputs} outputs per row, but {num_targets} target(s) with "
            f"{type(noise).__name__} noise need {expected}; set the network's output size to {expected}"
        )
