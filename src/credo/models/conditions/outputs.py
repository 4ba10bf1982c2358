"""Which of the network's own outputs a condition is about."""

import jax
import jax.numpy as jnp

from credo._checks import require_at_least
from credo.models.conditions.condition import Function
from credo.typing import Array


def check_choice(name: str, output: int | None, label: int | None) -> None:
    """Refuse what is no output and no class, before there is a model."""
    if output is not None and label is not None:
        raise ValueError(f"{name}: pass output (a target) or label (a class), not both")
    require_at_least(0, **{key: value for key, value in (("output", output), ("label", label)) if value is not None})


def num_predicted(function: Function, x: Array) -> int:
    """Columns of the prediction: targets, or classes."""
    # Nothing is computed. In a lambda, since a function need not be hashable.
    return int(jax.eval_shape(lambda points: function(points), x).shape[-1])


def means(function: Function, x: Array) -> Array:
    """The network's own outputs without those that only set the noise, (rows, outputs)."""
    return function.raw(x)[:, : num_predicted(function, x)]


def logits(name: str, function: Function, x: Array) -> Array:
    """One logit per class, (rows, classes); with two classes, that of the first is zero."""
    raw, num_classes = function.raw(x), num_predicted(function, x)
    if num_classes == 2 and raw.shape[-1] == 1:
        return jnp.concatenate([jnp.zeros_like(raw), raw], axis=-1)
    if num_classes < 2 or raw.shape[-1] != num_classes:
        raise ValueError(f"{name} is about classes, but the model predicts {num_classes} number(s) per row")
    return raw


def chosen(name: str, function: Function, x: Array, *, output: int | None, label: int | None) -> Array:
    """One number per row, (rows,): a target in the model's units, or the log-odds of a class.

    The log-odds log p/(1 − p) rise exactly where the probability does, and do not saturate.
    """
    if label is not None:
        classes = logits(name, function, x)
        _check_range(name, "label", label, classes.shape[-1])
        others = jnp.delete(classes, label, axis=-1, assume_unique_indices=True)
        return classes[:, label] - jax.nn.logsumexp(others, axis=-1)
    outputs = means(function, x)
    if output is None and outputs.shape[-1] > 1:
        raise ValueError(
            f"{name}: the model has {outputs.shape[-1]} outputs; say which one is meant, output= (a target, from 0) or "
            "label= (a class)"
        )
    _check_range(name, "output", output or 0, outputs.shape[-1])
    return outputs[:, output or 0]


def _check_range(name: str, argument: str, choice: int, num: int) -> None:
    if choice >= num:
        raise ValueError(f"{name}: {argument} must be from 0 to {num - 1}, got {choice}")
