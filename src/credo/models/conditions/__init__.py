"""Consistency conditions: what a function should be like, as penalties C(theta, x) for `credo.priors.consistent`.

    p(theta | D_x) ∝ p(theta) exp(−strength · mean over x of C(theta, x))

Paper, "Prior with a consistency condition".
"""

from collections.abc import Callable, Mapping
from typing import Any

from credo._checks import require_one_of
from credo.models.conditions.close_values import CloseValues, close_values
from credo.models.conditions.condition import (
    Condition,
    Custom,
    Function,
    Labelled,
    Plain,
    Ready,
    check_penalty,
    from_json,
)
from credo.models.conditions.convexity import Convex, convex
from credo.models.conditions.derivatives import derivative
from credo.models.conditions.knowledge import Agrees, DifferentialEquation, agrees, differential_equation
from credo.models.conditions.neighbours import FisherSnedecor, Neighbours, fisher_snedecor, neighbours
from credo.models.conditions.pseudo_labels import PseudoLabels, pseudo_labels
from credo.models.conditions.same_label import SameLabel, same_label
from credo.models.conditions.slopes import Monotone, Smooth, monotone, smooth
from credo.models.conditions.symmetry import Equivariant, Invariant, equivariant, invariant
from credo.models.conditions.values import (
    Bounded,
    LowDensity,
    Sparse,
    Subspace,
    bounded,
    low_density,
    sparse,
    subspace,
)

_MAKERS: tuple[Callable[..., Condition], ...] = (
    monotone,
    smooth,
    convex,
    bounded,
    sparse,
    invariant,
    equivariant,
    low_density,
    subspace,
    neighbours,
    fisher_snedecor,
    agrees,
    differential_equation,
    same_label,
    close_values,
    pseudo_labels,
)
CONDITIONS = {maker.__name__: maker for maker in _MAKERS}


def as_condition(condition: Any) -> Condition:
    """A condition from what users pass: one of this module, or any `(function, x) -> penalties`, one per row.

    >>> as_condition(lambda f, x: (f(x)[:, 0] - 1) ** 2).name
    'custom'
    """
    # A maker or a class that was not called, such as `credo.conditions.smooth`, would be taken for a penalty.
    if callable(condition) and not isinstance(condition, type) and condition not in CONDITIONS.values():
        is_whole = all(hasattr(condition, part) for part in ("name", "prepare", "resolved", "to_config"))
        return condition if is_whole else Custom(condition)
    raise ValueError(
        f"condition: {condition!r} is not a condition; pass a function (function, x) -> penalties, one per row, or one "
        f"of credo.conditions, such as credo.conditions.smooth(); there are {', '.join(CONDITIONS)}"
    )


def from_config(config: Mapping[str, Any]) -> Condition:
    """The condition that `to_config` described.

    >>> from credo import conditions
    >>> conditions.from_config(conditions.smooth(order=2).to_config())
    Smooth(order=2)
    """
    name = config["name"]
    settings = {key: from_json(name, value) for key, value in config.items() if key != "name"}
    require_one_of(CONDITIONS, condition=name)
    return CONDITIONS[name](**settings)


__all__ = [
    "Agrees",
    "Bounded",
    "CloseValues",
    "Condition",
    "Convex",
    "Custom",
    "DifferentialEquation",
    "Equivariant",
    "FisherSnedecor",
    "Function",
    "Invariant",
    "Labelled",
    "LowDensity",
    "Monotone",
    "Neighbours",
    "Plain",
    "PseudoLabels",
    "Ready",
    "SameLabel",
    "Smooth",
    "Sparse",
    "Subspace",
    "agrees",
    "as_condition",
    "bounded",
    "check_penalty",
    "close_values",
    "convex",
    "derivative",
    "differential_equation",
    "equivariant",
    "fisher_snedecor",
    "from_config",
    "invariant",
    "low_density",
    "monotone",
    "neighbours",
    "pseudo_labels",
    "same_label",
    "smooth",
    "sparse",
    "subspace",
]
