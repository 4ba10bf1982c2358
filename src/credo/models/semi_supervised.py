"""Few labels and many inputs without: what unlabelled rows tell is in the prior, and only there.

In a plain model rows without targets bring no information (paper, "Degree of supervision", partially labelled data):
p(y | x, theta) says nothing about x. What they can tell is what the user assumes of inputs and labels together, and
each of the three ways of the paper is a condition that says it:

    p(theta | D) ∝ p(L_y | L_x, theta) · p(theta | L, U)
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from credo._checks import require_one_of, require_positive
from credo.data import Data
from credo.models import conditions, priors
from credo.models.classification import classification
from credo.models.imposed import Imposed
from credo.models.inputs import Declared, Inputs
from credo.models.program import Model
from credo.models.recipe import Recipe
from credo.models.regression import regression

Kind = Literal["condition", "graph", "pseudo_labels"]
Task = Literal["classification", "regression"]

# For each row of the data.
STRENGTHS = {"graph": 1.0, "pseudo_labels": 0.5}
GRAPHS: dict[Task, tuple[Any, type]] = {
    "classification": (conditions.same_label, conditions.SameLabel),
    "regression": (conditions.close_values, conditions.CloseValues),
}


def semi_supervised(
    net: Any,
    kind: Kind = "graph",
    *,
    task: Task = "classification",
    prior: Any = None,
    noise: Any = None,
    using: Any = None,
    strength: float | None = None,
) -> Model:
    """A network for data of which only some rows have targets, and an assumption that makes the others count.

        log p(theta | L, U) = log p(theta) + strength · what is assumed, a sum over rows or pairs of them

        "condition"      −C(theta, x), a mean over rows                  the function is like this at all inputs
        "graph"          log Σ_ab p_a(x_i) p_b(x_j) ψ_ij(a, b)           near inputs have the same label
        "pseudo_labels"  log(c p_ỹ(u) + (1 − c)/(K − 1)(1 − p_ỹ(u)))     a simpler model is right, c of the time

    Where what is assumed is false, unlabelled rows do harm: compare with the plain model on rows that were held out.

    Arguments:
        net: as for `classification` or `regression`.
        kind: which of the three ways.
        task: "classification" or "regression".
        prior, noise: as for `classification` and `regression`; noise is for regression alone.
        using: what the way goes by. "condition": of `credo.conditions`, one or a list; `neighbours` and, for classes,
            `low_density` by default. "graph": `credo.conditions.same_label(…)`, or `close_values(…)` for regression,
            with settings of yours. "pseudo_labels": the simple model, see `credo.conditions.pseudo_labels`.
        strength: of what is assumed, for each row of the data; 1 by default for a graph and 0.5 for pseudo-labels,
            whose errors come together; for a condition, in all, as for `credo.priors.consistent`.

    >>> from credo import datasets, networks
    >>> moons = datasets.moons(40)
    >>> data = Data(moons.x[::10], moons.y[::10], unlabelled=moons.x)
    >>> model = semi_supervised(networks.MLP([8], out=2)).bind(data)
    >>> print(model.describe().factors[0].prior.split(": ")[1])
    labels of near inputs agree, known or not, the less the longer the way along the graph

    References: Zhu, Ghahramani, Lafferty, 2003 (graphs); Belkin, Niyogi, Sindhwani, 2006 (conditions); Li, Ko, Choi,
    2019, Naive semi-supervised deep learning using pseudo-label.
    """
    require_one_of(get_args(Kind), kind=kind)
    require_one_of(get_args(Task), task=task)
    if strength is not None:
        require_positive(strength=strength)
    if task == "classification" and noise is not None:
        raise ValueError(f"noise is {noise!r}, and classes have none; leave it out, or pass task='regression'")
    return _made(net, _assumed(prior, kind, task, using, strength), task, noise)


def _made(net: Any, assumed: priors.Consistent, task: Task, noise: Any) -> Model:
    if task == "classification":
        model = classification(net, prior=assumed)
    else:
        model = regression(net, prior=assumed, noise=noise)
    recipe = Recipe(lambda net, prior: _made(net, prior, task, noise), net, assumed)
    return replace(model, inputs=Unlabelled(Imposed(assumed.terms), task), recipe=recipe)


def _assumed(prior: Any, kind: Kind, task: Task, using: Any, strength: float | None) -> priors.Consistent:
    """The prior of the weights, with what is assumed of inputs and labels together."""
    if kind == "condition":
        condition = _usual_conditions(task) if using is None else using
        return priors.consistent(prior, condition, strength=strength)
    usual = STRENGTHS[kind]
    condition = _graph(task, using) if kind == "graph" else conditions.pseudo_labels(using)
    return priors.consistent(prior, condition, strength=usual if strength is None else strength, per="point")


def _usual_conditions(task: Task) -> list[conditions.Condition]:
    if task == "regression":
        return [conditions.neighbours()]
    return [conditions.neighbours(), conditions.low_density()]


def _graph(task: Task, using: Any) -> Any:
    made, expected = GRAPHS[task]
    if using is None:
        return made()
    if not isinstance(using, expected):
        raise ValueError(
            f"using is {using!r}, and the graph of a {task} is credo.conditions.{made.__name__}(…); pass one, or "
            "kind='condition' for other conditions"
        )
    return using


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """What a model asks of its data, if some rows have no target and the others tell classes apart."""

    declared: Declared
    task: Task

    def bound(self, data: Data) -> Inputs:
        if data.num_labelled == data.size:
            raise ValueError(
                "semi_supervised: all rows have a target, so there is nothing unlabelled to learn from; pass "
                "credo.Data(x, y, unlabelled=u), or NaN or None as the targets of some rows"
            )
        if self.task == "regression" and data.y.dtype.kind != "f":
            raise ValueError("semi_supervised: y holds whole numbers, and a regression needs floats; cast y to float")
        if self.task == "classification" and len(np.unique(data.y[data.labelled])) < 2:
            raise ValueError(
                f"semi_supervised: all {data.num_labelled} labelled row(s) have the class {data.y[data.labelled][0]}; "
                "label at least one row of each class"
            )
        return self.declared.bound(data)
