"""Models in which a given label may be wrong: the law of y, with what is true kept apart."""

from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

from credo.models.program import Model
from credo.models.sites import stripped
from credo.models.summed import combinations, parts_of
from credo.predictive.conditional import Conditional
from credo.predictive.label_errors import LabelsApart, OutliersApart
from credo.typing import Array, Theta


@dataclass(frozen=True)
class Judging(Model):
    """A model of which the law of y is asked for, with what is true kept apart: see `judging`."""

    def _law(self, theta: Theta, x: Array) -> Conditional:
        if self.summed_sites:
            labels = jnp.asarray(combinations(self.summed_sites)[self.predicts])
            log_weights, parts = parts_of(
                lambda values: self._trace({**theta, **values}, x, None)[0], self.summed_sites
            )
            apart: Any = LabelsApart(parts, log_weights, labels)
        else:
            apart = OutliersApart(stripped(self._trace(theta, x, None)[0]["y"]["fn"]))
        return apart


def judging(model: Model) -> Judging:
    """The model as one that tells how probable it is that what was given is wrong.

    The true label is summed out and predicted, or y has a law of which the first component is that of values that are
    no outliers.
    """
    if not (model.predicts in model.summed_sites or (model.predicts != "y" and _is_mixture(model))):
        raise ValueError(
            "label_errors needs a model in which what was given may be wrong, and this one takes y for the truth; fit "
            "credo.models.noisy_labels(net, 'nar') instead, for numbers with task='regression'"
        )
    return Judging(**{field.name: getattr(model, field.name) for field in fields(model)})


def _is_mixture(model: Model) -> bool:
    found: list[bool] = []
    template, x = model.template, model.example().x

    def look(theta: Theta) -> None:
        found.append(isinstance(stripped(model._trace(theta, x, None)[0]["y"]["fn"]), dist.MixtureSameFamily))

    jax.eval_shape(look, template)
    return found[0]
