"""Which latents of a model are weights that its mean is affine in, and what is refused where there is no closed form.

It is read off the data flow of the program: a derivative that no weight enters is that of an affine function.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo._dataflow import dependencies
from credo.models.program import Model
from credo.models.sites import stripped
from credo.typing import Array, Theta

OTHERS = "credo.Laplace(), credo.BayesByBackprop() or credo.NUTS()"
OTHERS_OF_CENSORED = "credo.MCLMC() or credo.NUTS()"
LAST_LAYER = 'prior={"hidden.*": "point", "head.*": credo.priors.normal()}'


def affine_weights(model: Model, theta: Theta) -> tuple[str, ...]:
    """The latents that enter the mean of y, which is affine in them, with a normal prior; else an error.

    Arguments:
        theta: any, with xi.
    """
    seen = model.of_likelihood()
    if model.rows is not None and model.rows.censored:
        raise _refusal("some targets are censored", OTHERS_OF_CENSORED)
    _check_kind(seen, theta)
    used = dependencies(lambda theta: _law(seen, theta), theta)
    weights = tuple(name for name in model.template if name in used["mean"])
    _check_mean(seen, theta, weights, used["noise"])
    _check_prior(model, theta, weights)
    return weights


def check_noises(model: Model, theta: Theta, others: Sequence[str], touched: np.ndarray, by_block: np.ndarray) -> None:
    """Refuse latents beside the weights over which there is more than an integral in one dimension.

    Arguments:
        touched: which outputs, (entries, K), have a noise that an entry of `others` sets.
        by_block: which blocks, (blocks, entries), have.
    """
    entries = [name for name in sorted(others) for _ in range(model.template[name].size)]
    for name, outputs in zip(entries, touched, strict=True):
        if not outputs.any():
            raise _refusal(f"the latent {name!r} is neither a weight of the mean nor its noise", OTHERS)
    bare = _bare_law(model.of_likelihood(), theta)
    if isinstance(bare, dist.MultivariateNormal) or np.any(by_block.sum(1) > 1) or not np.all(touched.any(0)):
        raise _refusal(
            f"{', '.join(others)} set the noise of targets that share weights or are correlated",
            "a known noise, noise='tuned', or credo.NUTS()",
        )
    if len(entries) > 1 and (model.coupled_sites | model.hierarchical_sites).intersection(others):
        raise _refusal(f"the prior correlates {', '.join(others)}", "noise='learned', or credo.NUTS()")
    used = dependencies(lambda rows: {"noise": _noise(model, theta, rows["x"])}, {"x": model.example().x})
    if used["noise"]:
        raise _refusal(f"the noise that {', '.join(others)} set differs from row to row", OTHERS)


def _noise(model: Model, theta: Theta, x: Array) -> Array:
    bare = stripped(model.of_likelihood().predictive(theta, x))
    return bare.scale_tril if isinstance(bare, dist.MultivariateNormal) else bare.scale


def _law(model: Model, theta: Theta) -> dict[str, Array]:
    x = model.example().x
    return {"mean": stripped(model.predictive(theta, x)).loc, "noise": _noise(model, theta, x)}


def _bare_law(model: Model, theta: Theta) -> Any:
    found: list[Any] = []
    jax.eval_shape(lambda: found.append(model.predictive(theta, model.example().x)))
    return stripped(found[0])


def _refusal(why: str, instead: str) -> ValueError:
    return ValueError(f"ClosedForm: {why}, so its posterior has no closed form; take {instead}")


def _check_kind(model: Model, theta: Theta) -> None:
    """Refuse a y that is not drawn from a normal."""
    if model.has_local_latents or model.summed_sites or model.views is not None:
        raise _refusal("the likelihood of the model is a mixture", "credo.BayesByBackprop()")
    bare = _bare_law(model, theta)
    if isinstance(bare, dist.CategoricalLogits | dist.CategoricalProbs | dist.BernoulliLogits | dist.BernoulliProbs):
        raise _refusal("y is a class label", "credo.Laplace(subset='last_layer'), or credo.NUTS()")
    if not isinstance(bare, dist.Normal | dist.MultivariateNormal):
        raise _refusal(f"y is drawn from {type(bare).__name__}, not from a normal", "credo.Laplace() or credo.NUTS()")
    if isinstance(bare, dist.MultivariateNormal) and model.rows is not None and model.rows.gaps:
        raise ValueError(
            "ClosedForm: some targets of a row are missing, and their noise is correlated; leave those rows out, take "
            "independent noise, or credo.NUTS()"
        )


def _check_mean(model: Model, theta: Theta, weights: Sequence[str], in_noise: frozenset[str]) -> None:
    """Refuse a mean that is not affine in its latents, and a noise that they enter as well."""
    both = [name for name in weights if name in in_noise]
    if both:
        raise _refusal(
            f"{both[0]!r} enters the noise as well as the mean (heteroscedastic)",
            OTHERS,
        )
    if not weights:
        raise ValueError(
            "ClosedForm: the mean of y depends on no latent, so there is no weight to be uncertain about; give the "
            f"last layer a prior, {LAST_LAYER}"
        )
    some = {name: theta[name] for name in weights}
    ones = {name: jnp.ones_like(leaf) for name, leaf in some.items()}

    def slope(some: Theta) -> dict[str, Array]:
        return {"mean": jax.jvp(lambda some: _law(model, {**theta, **some})["mean"], (some,), (ones,))[1]}

    bent = sorted(dependencies(slope, some)["mean"])
    if bent:
        raise _refusal(
            f"the mean of y is not linear in the weights ({', '.join(bent)} multiply one another, or are bent)",
            f"points for all layers but the last, {LAST_LAYER}, or another method, such as credo.NUTS()",
        )


def _check_prior(model: Model, theta: Theta, weights: Sequence[str]) -> None:
    """Refuse a prior of the weights that is not normal, with parameters that are known or among xi."""
    for name in weights:
        if name not in model.closed_form_sites | model.coupled_sites:
            raise _refusal(f"the prior of {name!r} is not normal", "credo.priors.normal() for it, or credo.NUTS()")
    some = {name: theta[name] for name in weights}

    def parts(theta: Theta) -> dict[str, Any]:
        slope = jax.grad(lambda some: model.log_prior({**theta, **some}))(some)
        return {"slope": slope, "factors": model.log_factors(theta)}

    used = dependencies(parts, theta)
    if model.factors and used["factors"].intersection(weights):
        raise _refusal("the prior puts a condition on the function", "credo.NUTS()")
    above = sorted(name for name in used["slope"].intersection(model.template) if name not in weights)
    if above:
        raise _refusal(
            f"the prior of the weights depends on the latent {above[0]!r}",
            "credo.priors.learned(), whose scales the evidence sets, or credo.NUTS()",
        )
