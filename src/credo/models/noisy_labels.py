"""Noisy labels: what was given is not what is true. Paper, "Noisy labels and semi-supervised learning".

    theta ~ p(theta),    clean ~ Cat(softmax(f_theta(x))),    y ~ p(y | clean, sigma)

The true label is the site `clean`, which is predicted; y is the label that was given. The three cases (Frénay and
Verleysen, "Classification in the presence of label noise", 2014) differ in what the noise, sigma, depends on:

    ncar    on nothing: one rate, at which any other label is given (noise completely at random)
    nar     on the true label: sigma = confusion[clean], the law of y (noise at random)
    nnar    on x too: sigma = rate(x)[clean] of a second network (noise not at random; the paper also prints "NNAC")

The true label is summed out, so that any method works: p(y | x, theta) = Σ_k p(clean = k | x, theta) p(y | clean = k).
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpyro

from credo._checks import require_at_least, require_one_of
from credo.data import is_observed
from credo.models import priors
from credo.models.classification import class_distribution, probs
from credo.models.imposed import imposed_by
from credo.models.label_noise import KINDS, as_label_noise
from credo.models.network import check_symmetries, drawn_outputs, initial_weights, num_outputs
from credo.models.outliers import outliers, outliers_from_config
from credo.models.program import Model
from credo.models.recipe import Recipe
from credo.models.rows import ModelConfig
from credo.networks import network_config
from credo.typing import Array, Batch, Theta

Kind = Literal["ncar", "nar", "nnar"]
TASKS = ("classification", "regression")


def noisy_labels(
    net: Any,
    kind: Kind = "nar",
    *,
    task: str = "classification",
    prior: Any = None,
    errors: Any = None,
    noise_net: Any = None,
    **settings: Any,
) -> Model:
    """A network that learns from labels of which some are wrong, and how often they are.

        theta ~ p(theta),    clean ~ Cat(softmax(f_theta(x))),    y ~ p(y | clean, sigma),    sigma of clean and x

    `predict(x)` is about the true label, `predict(x, of="y")` about the one that would be given, and
    `posterior.label_errors(data)` is the probability that each given label is wrong.

    Arguments:
        net: as for `credo.models.classification`: one output per class, or one for two classes.
        kind: "ncar", one rate of errors; "nar", a confusion matrix; "nnar", a second network of x.
        task: "regression" for numbers of which some are outliers: see `credo.models.outliers`.
        prior: of the weights, as for `credo.models.classification`.
        errors: what is known about them. Numbers are known values: a rate (ncar), or a confusion matrix (K, K) whose
            row k is the law of y where k is true (nar); a NumPyro distribution is a prior: Beta(1, 4) of the rate and
            Dirichlet of the rows, which expects eight in ten labels to be right, by default. For nnar, a prior of
            `credo.priors` on the weights of the second network; N(0, 1/fan-in) by default.
        noise_net: the second network (nnar), with an output for each class that may be mistaken, or with one for all;
            several annotators have as many each. One hidden layer of 16 units by default.
        settings: `annotators`, how many labels each row may have: y is (rows, annotators) then, some of them missing,
            and each annotator makes errors of their own. `noise` and `wide` of a regression.

    >>> from credo.networks import MLP
    >>> model = noisy_labels(MLP([20], out=3), "nar")
    >>> print(model.bind((np.zeros((4, 2)), np.array([0, 1, 2, 0]))).graph().parents("sigma"))
    ('confusion', 'clean')
    """
    require_one_of(KINDS, kind=kind)
    require_one_of(TASKS, task=task)
    make = outliers if task == "regression" else _mislabelled
    return make(net, kind, prior=prior, errors=errors, noise_net=noise_net, **settings)


def _mislabelled(
    net: Any, kind: Kind, *, prior: Any, errors: Any, noise_net: Any, annotators: int | None = None
) -> Model:
    chosen_prior, chosen_errors = priors.as_prior(prior), as_label_noise(kind, errors, noise_net)
    terms = priors.terms_of(chosen_prior)
    if annotators is not None:
        require_at_least(2, annotators=annotators)

    def program(x: Array, y: Array | None = None, **inputs: Array) -> None:
        logits = drawn_outputs(net, chosen_prior, probs, x, inputs)
        given = chosen_errors.draw(x, num_classes(logits.shape[-1]), annotators)
        with numpyro.plate("data", x.shape[0]):
            clean = numpyro.sample("clean", class_distribution(logits))
            # Annotators do not know of each other.
            numpyro.sample("y", given(clean).to_event(0 if annotators is None else 1), obs=y)

    def initial(x: Array) -> Theta:
        own = initial_weights(net)(x)
        return own | chosen_errors.initial(x, num_classes(num_outputs(net, x)), annotators)

    def check(batch: Batch) -> None:
        outputs = num_outputs(net, batch.x)
        check_given(batch, num_classes(outputs), annotators)
        check_symmetries(net, chosen_prior, batch.x)
        chosen_errors.check(batch.x, num_classes(outputs), annotators)

    config = ModelConfig(
        model="noisy_labels",
        network=network_config(net),
        prior=chosen_prior.to_config(),
        kind=kind,
        task="classification",
        errors=chosen_errors.to_config(),
        annotators=annotators,
    )

    def make(net: Any, prior: Any) -> Model:
        return _mislabelled(net, kind, prior=prior, errors=errors, noise_net=noise_net, annotators=annotators)

    return Model(
        program,
        inputs=imposed_by(terms, chosen_prior),
        config=config,
        initial=initial,
        check=check,
        predicts="clean",
        labels=True,
        recipe=Recipe(make, net, chosen_prior, sees_x_by_network=kind != "nnar"),
    )


def num_classes(outputs: int) -> int:
    """One output stands for two classes."""
    return max(outputs, 2)


def check_given(batch: Batch, classes: int, annotators: int | None) -> None:
    """Refuse labels that there is no class for, or of another number of annotators."""
    expected = "(rows,)" if annotators is None else f"(rows, {annotators})"
    if batch.y.shape[1:] != (() if annotators is None else (annotators,)) or batch.y.dtype.kind != "i":
        hint = f"; pass annotators={batch.y.shape[1]}" if batch.y.ndim == 2 and batch.y.shape[1] != annotators else ""
        raise ValueError(
            f"y must hold integer class labels of shape {expected}, got {batch.y.dtype} of shape {batch.y.shape}{hint}"
        )
    known = np.asarray(batch.y)[np.asarray(is_observed(batch.y))]
    if known.min() < 0 or known.max() >= classes:
        raise ValueError(
            f"y holds labels from {known.min()} to {known.max()}, but a network with {classes} classes needs labels "
            f"from 0 to {classes - 1}; relabel y, or give the network {max(known.max() + 1, 2)} outputs"
        )


def noisy_labels_from_config(config: Mapping[str, Any], net: Any) -> Model:
    """The model that its `config` describes, around the network `net`."""
    if config["task"] == "regression":
        return outliers_from_config(config, net)
    prior, errors = priors.from_config(config["prior"]), KINDS[config["kind"]].arguments(config["errors"])
    return noisy_labels(net, config["kind"], prior=prior, annotators=config["annotators"], **errors)
