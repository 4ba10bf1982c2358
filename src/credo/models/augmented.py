"""Augmentation as a part of the model: x′ ~ p(x′ | x, Aug), y ~ p(y | x′, theta). Paper, figure "Data augmentation"."""

from dataclasses import replace
from typing import Any, Literal

from credo._checks import require_at_least, require_one_of
from credo.models.augmentations import Augmentation, as_augmentation
from credo.models.program import Model
from credo.models.rows import ModelConfig
from credo.models.views import Augmented, Views, Without

# The most images that a likelihood sums over: each is one pass of the network.
MAX_IMAGES = 1024


def augmented(model: Model, transform: Any, *, num_draws: int | Literal["all"] = 4, average: bool = False) -> Model:
    """A model of data that could have looked otherwise, with the same labels: x′ is integrated out, row by row.

        p(theta | D, Aug) ∝ p(theta) Π ∫ p(y | x′, theta) p(x′ | x, Aug) dx′
                          ≈ p(theta) Π 1/K Σₖ p(y | x′ₖ, theta),    x′ₖ ~ p(x′ | x, Aug)

    Paper, "Data augmentation". Each row counts once, however many views of it there are: K views as rows of their own,
    Π Πₖ p(y | x′ₖ, theta), would be a posterior of K·N labels that nobody gave, too narrow by √K (a cold posterior).

    **The bound.** Methods that follow a noisy gradient (MAP, VI, SG-MCMC, SWAG, dropout, ensembles of them) see fresh
    draws in each step. By Jensen's inequality what they climb is on average a lower bound of the log likelihood,

        E Σ log 1/K Σₖ p(y | x′ₖ, theta)  ≤  Σ log ∫ p(y | x′, theta) p(x′ | x, Aug) dx′,

    tighter with every draw; with K = 1, which the paper has as a simplification, it is E log p(y | x′, theta), which
    asks that *every* view explains the label. Samplers of a fixed density (NUTS, HMC, Metropolis, MCLMC, tempering) and
    Laplace take the same K draws all along, made from what each row holds: theirs is the exact posterior of that model.

    Arguments:
        model: any model; its likelihood is averaged, its prior, latents, conditions and missing targets stay.
        transform: of `credo.augmentations`, such as `shift(1)`, or any pure JAX function `(key, x) → x′` of one row in
            the user's units, which keeps its shape.
        num_draws: K, the passes of the network per row; "all" to sum over all images of a transformation that has
            finitely many (flips, shifts, groups), which is exact.
        average: whether predictions are averaged over K views of the new input as well, the same ones whenever it is
            asked about. Without it p(y | x, theta) is that of the input as it is: K times cheaper.

    >>> from credo import augmentations, models, networks
    >>> model = models.classification(networks.MLP([20], out=10))
    >>> augmented(model, augmentations.shift(1), num_draws=8).views.num
    8

    References: Wenzel et al., 2020, How good is the Bayes posterior in deep neural networks really? Nabarro et al.,
    2022, Data augmentation in Bayesian neural networks and the cold posterior effect.
    """
    if not isinstance(model, Model):
        raise ValueError(
            f"model must be a credo.Model to augment, got {type(model).__name__}; make one of a network with "
            "credo.models.classification(net) or credo.models.regression(net)"
        )
    if model.views is not None:
        raise ValueError("model is augmented already; join transformations with credo.augmentations.compose(…)")
    require_one_of((True, False), average=average)
    chosen = as_augmentation(transform)
    views = Views(chosen, _num_draws(chosen, num_draws), bool(average))
    config = None
    if model.config is not None:
        config = ModelConfig(
            model="augmented",
            network=model.config["network"],
            inner=model.config,
            transform=chosen.to_config(),
            num_draws=num_draws,
            average=bool(average),
        )

    def again(made: Model) -> Model:
        return augmented(made, transform, num_draws=num_draws, average=average)

    # What was bound before knows nothing of the augmentation.
    unbound = replace(model, rows=None, constants=type(model.constants)())
    return replace(
        unbound,
        program=Without(model.program),
        inputs=Augmented(model.inputs, views),
        config=config,
        views=views,
        recipe=None if model.recipe is None else model.recipe.then(again),
    )


def _num_draws(transform: Augmentation, num_draws: Any) -> int | None:
    if num_draws != "all":
        if isinstance(num_draws, str):
            raise ValueError(f"num_draws must be a whole number of at least 1, or 'all', got {num_draws!r}")
        require_at_least(1, num_draws=num_draws)
        return int(num_draws)
    if transform.num_images is None:
        raise ValueError(
            f"num_draws='all': {transform} has infinitely many images; pass a number of draws, or a transformation "
            "with finitely many (flip, shift, group)"
        )
    if transform.num_images > MAX_IMAGES:
        raise ValueError(
            f"num_draws='all': {transform} has {transform.num_images:,} images, and credo sums over at most "
            f"{MAX_IMAGES:,}; pass a number of draws"
        )
    return None
