"""Priors over the weights: which distribution each parameter of a network is drawn from.

A prior maps one parameter (its path, shape and fan-in) to a NumPyro distribution over an array of that shape, or draws
it from several sites (`draw`). Paper, "Setting the priors".
"""

from credo.models.priors.base import Composite, Described, Drawn, Parameter, Prior, draw, inputs_of, prior_at
from credo.models.priors.by_path import ByPath, as_prior, by_path
from credo.models.priors.config import from_config
from credo.models.priors.consistent import Consistent, consistent, terms_of
from credo.models.priors.custom import Custom, distribution_from_config, distribution_to_config
from credo.models.priors.few import Few, few
from credo.models.priors.from_posterior import from_posterior
from credo.models.priors.hierarchical import HalfCauchy, Horseshoe, half_cauchy, horseshoe, relevance
from credo.models.priors.independent import FanIn, Laplace, Normal, ScaleMixture, fan_in, laplace, normal, scale_mixture
from credo.models.priors.last_layers import LastLayers, on_network
from credo.models.priors.learned import Learned, learned
from credo.models.priors.matching import Matched, matching
from credo.models.priors.ordered import Ordered, OrderedNormal, ordered
from credo.models.priors.points import Point, point
from credo.models.priors.regularizers import (
    GroupLasso,
    RadialLaplace,
    Regularized,
    Unnormalised,
    from_regularizer,
    group_lasso,
)
from credo.models.priors.scales import SHARED_BY
from credo.models.priors.spheres import Givens, GivensAngles, UnitNorm, givens, unit_norm
from credo.models.priors.table import Table, table
from credo.models.priors.transferred import JointNormal, Transferred

__all__ = [
    "SHARED_BY",
    "ByPath",
    "Composite",
    "Consistent",
    "Custom",
    "Described",
    "Drawn",
    "FanIn",
    "Few",
    "Givens",
    "GivensAngles",
    "GroupLasso",
    "HalfCauchy",
    "Horseshoe",
    "JointNormal",
    "Laplace",
    "LastLayers",
    "Learned",
    "Matched",
    "Normal",
    "Ordered",
    "OrderedNormal",
    "Parameter",
    "Point",
    "Prior",
    "RadialLaplace",
    "Regularized",
    "ScaleMixture",
    "Table",
    "Transferred",
    "UnitNorm",
    "Unnormalised",
    "as_prior",
    "by_path",
    "consistent",
    "distribution_from_config",
    "distribution_to_config",
    "draw",
    "fan_in",
    "few",
    "from_config",
    "from_posterior",
    "from_regularizer",
    "givens",
    "group_lasso",
    "half_cauchy",
    "horseshoe",
    "inputs_of",
    "laplace",
    "learned",
    "matching",
    "normal",
    "on_network",
    "ordered",
    "point",
    "prior_at",
    "relevance",
    "scale_mixture",
    "table",
    "terms_of",
    "unit_norm",
]
