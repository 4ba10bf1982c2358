"""What weights share a scale, and the name of the site that holds it: for learned and for drawn scales alike."""

from credo.models.priors.base import Parameter

# What a scale is shared by.
SHARED_BY = ("network", "layer", "array", "input", "weight")


def scale_site(per: str, path: str) -> str:
    """The name of the scale of the parameter at this path."""
    owner = {"network": "prior", "layer": path.rpartition(".")[0] or "prior"}
    return f"{owner.get(per, path)}.scale"


def scale_shape(per: str, parameter: Parameter) -> tuple[int, ...]:
    """The shape of the scale: one number, one for each input of a kernel, or one for each weight."""
    if per == "weight":
        return parameter.shape
    if per == "input" and len(parameter.shape) >= 2:
        return (*parameter.shape[:-1], 1)
    return ()
