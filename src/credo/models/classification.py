"""Bayesian classification: theta ~ p(theta), y ~ Cat(softmax(f_theta(x))). Paper, figure "BBNs", (a)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo.models import priors
from credo.models.imposed import imposed_by
from credo.models.network import check_symmetries, drawn_outputs, initial_weights, num_outputs
from credo.models.program import Model
from credo.models.recipe import Recipe
from credo.models.rows import ModelConfig
from credo.networks import network_config
from credo.typing import Array, Batch


def classification(net: Any, *, prior: Any = None) -> Model:
    """A network with weights drawn from a prior, whose outputs are the logits of the classes.

        theta ~ p(theta),    y ~ Cat(softmax(f_theta(x)))      K outputs, labels 0 … K−1
                             y ~ Bernoulli(sigmoid(f_theta(x)))  one output, labels 0 and 1

    Arguments:
        net: any network that `credo.networks.functional` takes, with one output per class, or one for two classes.
        prior: of `credo.priors`, a NumPyro distribution, or a dict of parameter paths; N(0, 1) by default.

    >>> from credo.networks import MLP
    >>> model = classification(MLP(features=[50], out=3))
    """
    chosen_prior = priors.as_prior(prior)
    terms = priors.terms_of(chosen_prior)

    def program(x: Array, y: Array | None = None, **inputs: Array) -> None:
        logits = drawn_outputs(net, chosen_prior, probs, x, inputs)
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", class_distribution(logits), obs=y)

    def check(batch: Batch) -> None:
        check_labels(batch, num_outputs(net, batch.x))
        check_symmetries(net, chosen_prior, batch.x)

    config = ModelConfig(model="classification", network=network_config(net), prior=chosen_prior.to_config())
    return Model(
        program,
        inputs=imposed_by(terms, chosen_prior),
        config=config,
        initial=initial_weights(net),
        check=check,
        labels=True,
        recipe=Recipe(lambda net, prior: classification(net, prior=prior), net, chosen_prior),
    )


def class_distribution(logits: Array) -> dist.Distribution:
    """p(y | logits) for logits of shape (rows, outputs): one output stands for two classes."""
    if logits.shape[-1] == 1:
        return dist.Bernoulli(logits=logits[..., 0])
    return dist.Categorical(logits=logits)


def probs(logits: Array) -> Array:
    """The probabilities of the classes, (rows, classes); two columns for one output."""
    if logits.shape[-1] == 1:
        logits = jnp.concatenate([jnp.zeros_like(logits), logits], axis=-1)
    return jax.nn.softmax(logits)


def check_labels(batch: Batch, outputs: int) -> None:
    """Refuse labels that a network with this many outputs has no class for."""
    if batch.y.ndim != 1 or not jnp.issubdtype(batch.y.dtype, jnp.integer):
        raise ValueError(
            f"y must hold integer class labels of shape (rows,), got {batch.y.dtype} of shape {batch.y.shape}; "
            "encode the classes as 0, 1, …"
        )
    num_classes = max(outputs, 2)
    low, high = int(np.min(batch.y)), int(np.max(batch.y))
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"y holds labels from {low} to {high}, but a network with {num_classes} classes needs labels from "
            f"0 to {num_classes - 1}; relabel y, or give the network {max(high + 1, 2)} outputs"
        )
