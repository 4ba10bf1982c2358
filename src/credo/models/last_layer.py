"""A distribution over the last layers alone. Paper, "Bayesian inference on the (n-)last layer(s) only".

    w = argmax ELBO, or given,    theta ~ p(theta),    y ~ p(y | f_theta(g_w(x)))

Layers before the head are points w, a transformation g_w that is learned along with q, or taken as it was trained; what
is left is a shallow Bayesian network on the features g_w(x).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax

from credo._checks import require_at_least
from credo.models import priors
from credo.models.priors import Prior, inputs_of
from credo.models.program import Model
from credo.models.recipe import Recipe
from credo.networks.functional import Network, functional
from credo.networks.trained import arrays_by_name, matched
from credo.typing import Array, Theta


def last_layer(
    model: Model, *, bayesian: str | Sequence[str] | None = None, num_layers: int = 1, trained: Any = None
) -> Model:
    """The same model with a distribution over its last layers alone; all other weights are points.

        w = argmax ELBO, or given,    theta ~ p(theta),    y ~ p(y | f_theta(g_w(x)))

    Without `trained`, `credo.BayesByBackprop` learns points and distribution together, and for other methods a run of
    it finds the points first. With it, or once they are found, the points are constants: then every method runs on
    features that are computed once (see `models.on_features`), and the posterior predicts from raw inputs all the same.

    The head keeps the model's prior. Points that are learned are regularised by it too, where it is one density on all
    real numbers (not one that is learned, or made of other sites, such as a horseshoe).

    Arguments:
        model: made of a network, by `credo.models.classification`, `regression`, `noisy_labels`, `outliers`,
            `semi_supervised`, or one of these `augmented`.
        bayesian: which layers have a distribution, by the paths of their arrays with `*` wildcards, one or several.
        num_layers: else, how many of the last layers that have parameters, in the order in which data pass them;
            layers side by side count as one.
        trained: where the other layers come from, to stay as they are: anything that `credo.networks.load_params`
            takes, or a posterior of one network, such as that of `credo.MAP`. What it has of the head is where
            optimisation of the head starts, if it fits; another head is welcome.

    >>> from credo import datasets, models, networks
    >>> model = last_layer(models.regression(networks.MLP([50, 20], out=1), noise=0.1))
    >>> print(model.bind(datasets.gap()).describe().num_parameters)
    21

    References: Snoek et al., 2015, Scalable Bayesian optimization using deep neural networks; Zeng et al., 2018, The
    relevance of Bayesian layer positioning; Brosse et al., 2020, On last-layer algorithms for classification.
    """
    recipe = _recipe(model)
    require_at_least(1, num_layers=num_layers)
    patterns = () if bayesian is None else (bayesian,) if isinstance(bayesian, str) else tuple(bayesian)
    if bayesian is not None and not patterns:
        raise ValueError("bayesian holds no pattern; pass one, such as 'head.*', or leave it out for the last layer")
    if patterns and num_layers != 1:
        raise ValueError(f"bayesian is {bayesian!r} and num_layers {num_layers}: they say the same twice; pass one")
    prior = _of_last_layers(recipe.prior, patterns, num_layers, trained is None)
    made: Model = recipe.make(recipe.net, prior)
    if trained is None:
        return made
    source = _arrays(trained)

    def found(x: Array) -> Theta:
        """The arrays that were trained: all of the points, and those of the head that fit it."""
        network = functional(recipe.net, x)
        return matched(network.params, source, optional=_drawn(prior, network, x))

    def frozen(x: Array) -> Theta:
        drawn = _drawn(prior, functional(recipe.net, x), x)
        return {path: value for path, value in found(x).items() if path not in drawn}

    def initial(x: Array) -> Theta:
        return made.initial(x) | found(x)  # type: ignore[misc]

    return replace(made, trained=frozen, initial=initial)


def _recipe(model: Any) -> Recipe:
    if not isinstance(model, Model):
        raise ValueError(
            f"model must be a credo.Model, got {type(model).__name__}; make one of a network with "
            "credo.models.classification(net) or credo.models.regression(net)"
        )
    if model.recipe is None:
        what = "a program of your own" if model.config is None else f"of the kind {model.config['model']!r}"
        raise ValueError(
            f"model is {what}, which is not made of one network and one prior, so its last layers cannot be told from "
            "the others; make them points where it draws them, prior={'head.*': credo.priors.normal(), '*': 'point'}, "
            "or begin with credo.models.classification(net) or credo.models.regression(net)"
        )
    if any(isinstance(one, priors.LastLayers) for one in _with_base(model.recipe.prior)):
        raise ValueError("model has a distribution over its last layers alone already; begin with the whole model")
    if inputs_of(model.recipe.prior):
        raise ValueError(
            "model has a prior from a posterior, which is about several arrays at once; to keep the layers of that "
            "posterior, give the model another prior and pass trained=posterior"
        )
    return model.recipe


def _of_last_layers(prior: Prior, *settings: Any) -> Prior:
    """The prior of the last layers; its conditions are about the whole function, and stay."""
    if isinstance(prior, priors.Consistent):
        return replace(prior, base=priors.LastLayers(prior.base, *settings))
    return priors.LastLayers(prior, *settings)


def _with_base(prior: Prior) -> list[Any]:
    return [prior, getattr(prior, "base", None)]


def _drawn(prior: Prior, network: Network, x: Array) -> frozenset[str]:
    """The paths of the arrays that have a distribution."""
    chosen = priors.on_network(prior, network, x)
    return frozenset(path for path in network.params if not isinstance(priors.prior_at(chosen, path), priors.Point))


def _arrays(trained: Any) -> Theta:
    """The arrays of a trained network by name, of whatever framework, or of a posterior."""
    if not hasattr(trained, "provenance"):
        return arrays_by_name(trained)
    theta = getattr(trained, "mean", None)
    if theta is None and getattr(trained, "num_draws", 0) * getattr(trained, "num_chains", 0) == 1:
        theta = {name: leaf[0, 0] for name, leaf in trained.theta.items()}
    if theta is None:
        raise ValueError(
            f"trained is {trained!r}, which is no one network; pass a posterior of a single one, such as "
            "credo.fit(model, data, credo.MAP())"
        )
    return jax.device_get(jax.jit(trained.model.weights)(theta))
