"""Priors from their descriptions: what `to_config` has written down."""

from collections.abc import Callable, Mapping
from typing import Any

from credo._checks import require_one_of
from credo.models.imposed import Term
from credo.models.priors.base import Prior
from credo.models.priors.by_path import by_path
from credo.models.priors.consistent import Consistent
from credo.models.priors.custom import Custom, distribution_from_config
from credo.models.priors.few import few
from credo.models.priors.hierarchical import half_cauchy, horseshoe
from credo.models.priors.independent import fan_in, laplace, normal, scale_mixture
from credo.models.priors.last_layers import LastLayers
from credo.models.priors.learned import learned
from credo.models.priors.ordered import ordered
from credo.models.priors.points import point
from credo.models.priors.regularizers import group_lasso
from credo.models.priors.spheres import givens, unit_norm
from credo.models.priors.table import table
from credo.models.priors.transferred import Transferred

# What is stored as the name of its function and the numbers that it takes.
MAKERS: list[Callable[..., Prior]] = [
    normal,
    fan_in,
    laplace,
    scale_mixture,
    learned,
    group_lasso,
    half_cauchy,
    horseshoe,
    ordered,
    unit_norm,
    givens,
    few,
    table,
]


def from_config(config: Mapping[str, Any]) -> Prior:
    """The prior that `to_config` described.

    >>> from_config({"name": "normal", "scale": 2.0})
    Normal(scale=2.0)
    """
    name, arguments = config["name"], {key: value for key, value in config.items() if key != "name"}
    if name == "distribution":
        return Custom(distribution_from_config(arguments))
    if name == "by_path":
        patterns = {pattern: from_config(prior) for pattern, prior in arguments["patterns"].items()}
        return by_path(patterns, from_config(arguments["default"]))
    if name == "consistent":
        return Consistent(from_config(arguments["base"]), tuple(map(Term.from_config, arguments["terms"])))
    if name == "transferred":
        shapes = {path: tuple(shape) for path, shape in arguments["shapes"].items()}
        return Transferred(shapes, arguments["structure"], from_config(arguments["others"]))
    if name == "last_layers":
        base, chosen = from_config(arguments.pop("base")), tuple(arguments.pop("patterns"))
        return LastLayers(base, chosen, **arguments)
    if name == "point":
        density = arguments["regularised_by"]
        return point(None if density is None else from_config(density))
    if name == "regularizer":
        raise ValueError(
            f"the prior is made from the regularizer {arguments['function']}, a function: code, which is not stored; "
            "make the model again and pass it, credo.load(folder, model=model)"
        )
    by_name = {maker.__name__: maker for maker in MAKERS}
    require_one_of(by_name, prior=name)
    return by_name[name](**arguments)
