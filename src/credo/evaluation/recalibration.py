"""Recalibration: maps, fitted to held-out data, that make predicted probabilities match observed frequencies.

A map acts on the marginal p(y | x, D), the mean over the draws, since that is what must be calibrated:

    regression   P'(Y ≤ y) = R(F(y)),   R the distribution function of F(y) on held-out rows   Kuleshov et al. (2018)
    classes      p' ∝ p^(1/T),   p'ₖ ∝ exp(aₖ log pₖ + bₖ)                                     Guo et al. (2017)
                 p'ₖ ∝ the isotonic regression of [y = k] on pₖ                        Zadrozny and Elkan (2002)

The result is a prediction like any other, for every metric and plot. `functions` stay those of the draws: a map of the
marginal says nothing about a single draw.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from credo._text import nearest
from credo.data import Data, require_equal_precisions, require_uncensored
from credo.evaluation.checks import judged, rows_for
from credo.evaluation.class_maps import IsotonicClasses, Temperature, VectorScaling
from credo.evaluation.quantile_map import IsotonicQuantiles
from credo.posterior.base import shown
from credo.predictive import ClassPredictive, Predictive
from credo.typing import Key, Theta


class Map(Protocol):
    """A map of marginals: `fit` on held-out rows, then call it on any prediction of the same posterior."""

    @classmethod
    def fit(cls, predictive: Any, y: object) -> Self:
        """The map that calibrates `predictive` on targets `y`."""

    def __call__(self, predictive: Any) -> Predictive:
        """The recalibrated prediction."""


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """A posterior whose predictions go through a map.

    Runs of tables are saved with their map (`credo evaluate --recalibrate`); of others save the posterior itself.

    Arguments:
        posterior: any posterior.
        map: fitted to data that the posterior has not seen.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.05)
    >>> posterior = credo.fit(model, credo.datasets.gap(30), credo.ClosedForm())
    >>> mended = credo.recalibrate(posterior, credo.datasets.gap(100, seed=1))
    >>> bool(mended.predict([[0.5]]).std[0] > posterior.predict([[0.5]]).std[0])
    True
    """

    posterior: Any
    map: Map

    model = property(attrgetter("posterior.model"), doc="The posterior's model.")
    provenance = property(attrgetter("posterior.provenance"), doc="How the posterior was made.")
    diagnostics = property(attrgetter("posterior.diagnostics"), doc="Evidence for and against the posterior's fit.")
    num_bytes = property(attrgetter("posterior.num_bytes"), doc="The size of the posterior in memory.")

    def __repr__(self) -> str:
        return f"Recalibrated({self.posterior!r}, by {type(self.map).__name__})"

    def _repr_html_(self) -> str:
        return shown(self)

    def about(self, site: str) -> Self:
        """This posterior: its map is for one site alone, and others are refused."""
        if site != self.model.predicts:
            raise ValueError(
                f"of is {site!r}, and the map was fitted to predictions of {self.model.predicts!r}; recalibrate "
                f"posterior.about({site!r})"
            )
        return self

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta, which a map of the marginal does not change."""
        return self.posterior.sample(key, num)

    def predict(self, x: Any, *, num_draws: int | None = None, of: str | None = None) -> Predictive:
        """The recalibrated marginal on inputs x, of the site that the map was fitted to."""
        if of is not None:
            return self.about(of).predict(x, num_draws=num_draws)
        return self.map(self.posterior.predict(x, num_draws=num_draws))


def recalibrate(
    posterior: Any, data: Data | tuple[ArrayLike, ArrayLike], how: str | type[Map] | None = None
) -> Recalibrated:
    """The posterior with calibrated predictions.

    Arguments:
        posterior: any posterior.
        data: rows that it was not trained on, `credo.Data` or (x, y): training rows would look too good. Its targets
            are of what the posterior predicts: with noisy labels, `posterior.about("y")` predicts what is seen.
        how: "isotonic", "temperature" or "vector" (the last two for classes), or a class with `fit` and `__call__`
            like `Map`. By default isotonic for regression and temperature for classes.

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from credo.predictive.tabulated import from_normal
    >>> posterior = SimpleNamespace(predict=lambda x, num_draws=None: from_normal(x[:, 0], 0.5))
    >>> x = np.linspace(-1, 1, 1000)[:, None]
    >>> y = x[:, 0] + np.random.default_rng(0).normal(size=1000)
    >>> print(recalibrate(posterior, (x, y)).predict(x).std[0].round(1))
    1.0
    """
    held_out = rows_for(posterior, data)
    require_uncensored(held_out, "credo.recalibrate")
    require_equal_precisions(held_out, "credo.recalibrate")
    predictive, y = judged(posterior.predict(held_out.x), held_out.y)
    return Recalibrated(posterior, _chosen(how, predictive).fit(predictive, y))


def _chosen(how: str | type[Map] | None, predictive: Predictive) -> type[Map]:
    if how is not None and not isinstance(how, str):
        return how
    of_classes = isinstance(predictive, ClassPredictive)
    known: dict[str, type[Map]] = {
        "isotonic": IsotonicClasses if of_classes else IsotonicQuantiles,
        "temperature": Temperature,
        "vector": VectorScaling,
    }
    name = how or ("temperature" if of_classes else "isotonic")
    if name not in known:
        raise ValueError(f"how must be one of {', '.join(known)}, got {name!r}{nearest(name, known)}")
    return known[name]
