"""The contract of a program, checked before anything is compiled."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from credo._dataflow import dependencies
from credo._text import nearest
from credo.models.rows import RowShapes
from credo.models.sites import (
    LOCAL_NOISE,
    SiteOfTrace,
    bijector,
    constraint_of,
    in_data_plate,
    is_latent,
    is_local,
    is_marginalised,
    is_summed,
    log_density,
)
from credo.models.traced import Traced
from credo.predictive.sharpened import refuse_precisions, sharpened
from credo.typing import Theta


def check_program(trace: Mapping[str, Any], num_rows: int) -> None:
    """Refuse a program that inference could not use, and say how to fix it."""
    _check_targets(trace, num_rows)
    for name, site in trace.items():
        if name == LOCAL_NOISE:
            raise ValueError(f"the site {name!r} has a name that credo reserves; rename it")
        if site["type"] == "param":
            _check_param(name, site)
        if is_summed(site):
            _check_summed(name, site)
        if is_marginalised(site) and not in_data_plate(site):
            raise ValueError(
                f"the site {name!r} is marginalised, so it belongs to the rows: move it into the plate 'data'"
            )
        if is_latent(site) or is_local(site):
            _check_drawn(name, site)
    if not any(is_latent(site) or is_local(site) for site in trace.values()):
        raise ValueError("the program draws no latent variable: there is nothing to infer")


def check_prior(dependencies: Mapping[str, frozenset[str]]) -> None:
    """Refuse a prior that looks at the batch, which is another one at each step and for each method.

    Arguments:
        dependencies: for each site outside the plate `data`, whether its density depends on "x" or "y".
    """
    for name, seen in dependencies.items():
        if seen:
            what = " and ".join(sorted(seen))
            raise ValueError(
                f"the site {name!r} is outside the plate 'data', so it is part of the prior, but depends on the batch "
                f"({what}), which differs from step to step; give the model inputs of its own, "
                "credo.Model(program, inputs={'u': points}) with program(x, y=None, *, u) (inputs={'u': 'training'} "
                "for the training inputs), or move the site into the plate"
            )


def check_labels(model: Traced, rows: RowShapes) -> None:
    """Refuse precisions of class labels, before they are taken for numbers."""
    if rows.precise and model.labels:
        refuse_precisions("y holds class labels, which have no noise of their own")


def check_precisions(model: Traced) -> None:
    """Refuse precisions of targets whose law has no noise of its own for them to scale."""
    if model.summed_sites or model.has_local_latents or model.views is not None or len(model.predictable) > 1:
        refuse_precisions("the likelihood of the model is a mixture, not a noise around one function")
    model._look(lambda trace: sharpened(law := trace["y"]["fn"], jnp.ones(law.batch_shape[:1])))


def check_values(model: Traced) -> None:
    """Refuse densities that depend on values that a program does not have: of sites that it has integrated out.

    Of summed sites it has one value in each row: the prior cannot depend on them.
    """
    shapes = model._look(lambda trace: {name: one["fn"].shape() for name, one in _marginalised(trace)})
    values = {name: jnp.zeros(shape) for name, shape in shapes.items()}
    values |= {name: jnp.zeros((), jnp.int32) for name in model.summed_sites}
    if not values:
        return
    example = model.example()
    theta = {name: jnp.zeros(leaf.shape) for name, leaf in model.template.items()}
    outside: set[str] = set()

    def terms(values: Theta) -> Theta:
        trace = model._trace({**theta, **values}, example.x, example.y)[0]
        others = {name: one for name, one in trace.items() if one["type"] == "sample" and name not in values}
        outside.update(name for name, one in others.items() if not in_data_plate(one))
        return {name: log_density(one) for name, one in others.items()}

    for name, seen in dependencies(terms, values).items():
        for hidden in sorted(seen & shapes.keys()):
            raise ValueError(
                f"the site {name!r} depends on the value of {hidden!r}, which is marginalised: the program has "
                f"integrated it out, so it has none. Compute {name!r} from what {hidden!r} is drawn from, or drop "
                "infer={'marginalised': True} to have a discrete site summed out"
            )
        if seen and name in outside:
            raise ValueError(
                f"the site {name!r} is outside the plate 'data', so it is part of the prior, but depends on "
                f"{sorted(seen)[0]!r}, which has a value in each row; move it into the plate"
            )


def _marginalised(trace: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, site) for name, site in trace.items() if is_marginalised(site)]


def check_factors(once: Mapping[str, Any], twice: Mapping[str, Any]) -> None:
    """Refuse factors of the prior that are not numbers at a draw from it, or no sums over the rows of their plate.

    Arguments:
        once, twice: the factors, from the inputs as they are and with each row twice: a sum, scaled by N/n, stays.
    """
    for name, value in once.items():
        if not np.isfinite(value):
            raise ValueError(
                f"the factor {name!r} is {float(value)} at a draw from the prior; look for a division by zero, or for "
                "a logarithm or a root outside its domain"
            )
        if not np.allclose(value, twice[name], rtol=1e-3):
            raise ValueError(
                f"the factor {name!r} stands in the plate of an input, but is no sum over its rows: with each row "
                f"twice it is {float(twice[name]):g} for {float(value):g}, so minibatches would give another prior; "
                "leave the division by the number of rows out, or take the mean of the rows outside the plate"
            )


def check_inputs(trace: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Refuse a plate with the name of an input, but another size."""
    for name, array in inputs.items():
        num = array.shape[0] if array.ndim else 1
        if name in trace and trace[name]["type"] != "plate":
            raise ValueError(f"inputs: the program has a site {name!r} too; rename one of them")
        if name in trace and trace[name]["args"][0] != num:
            raise ValueError(
                f"the plate {name!r} has size {trace[name]['args'][0]} for {num} rows of the input of that name; its "
                f"size must be {name}.shape[0], so that some rows can stand for all of them"
            )


def check_xi(shapes: Mapping[str, tuple[int, ...]], xi: Theta) -> None:
    """Refuse values for params that the program does not have, or has in another shape."""
    for name, value in xi.items():
        if name not in shapes:
            known = f"it has {', '.join(shapes)}" if shapes else "it has none"
            raise ValueError(f"xi: the program has no param {name!r}{nearest(name, shapes)}; {known}")
        if value.shape != shapes[name]:
            raise ValueError(
                f"xi: {name!r} has shape {value.shape}, but its unconstrained shape is {shapes[name]}; "
                "pass values like those of model.initial_xi()"
            )


def _check_targets(trace: Mapping[str, Any], num_rows: int) -> None:
    if "y" not in trace:
        names = [name for name, site in trace.items() if site["type"] == "sample"]
        raise ValueError(
            f"the program has no site 'y'{nearest('y', names)}; it draws {names or 'nothing'}. Observe the targets "
            "with numpyro.sample('y', ..., obs=y)"
        )
    if not in_data_plate(trace["y"]):
        raise ValueError(
            "the site 'y' is not inside a plate 'data'; write `with numpyro.plate('data', x.shape[0]):` around it, "
            "to tell the likelihood from the prior"
        )
    size, subsample = trace["data"]["args"]
    if size != num_rows or subsample not in (None, size):
        raise ValueError(
            f"the plate 'data' has size {size} (subsample {subsample}) for {num_rows} rows; its size must be "
            "x.shape[0]: credo takes care of minibatches and their scaling"
        )


def _check_summed(name: str, site: SiteOfTrace) -> None:
    if site["fn"].event_dim or len(site["cond_indep_stack"]) > 1:
        raise ValueError(
            f"the latent site {name!r} is discrete and has several values in each row; credo sums over one for each "
            "row, drawn in the plate 'data' alone. Draw one site for each, or write the sum as a mixture "
            "(dist.MixtureSameFamily)"
        )


def _check_param(name: str, site: SiteOfTrace) -> None:
    if site["value"] is None:
        raise ValueError(f"the param {name!r} has no initial value; write numpyro.param({name!r}, value)")
    if in_data_plate(site) and site["kwargs"].get("event_dim") is not None:
        raise ValueError(
            f"the param {name!r} has one value per row of the plate 'data', which minibatches cannot learn; drop its "
            "event_dim to share it between the rows, or compute it from x"
        )
    try:
        bijector(site)
    except NotImplementedError as error:
        raise ValueError(
            f"the param {name!r} has the constraint {constraint_of(site)}, and NumPyro has no bijector to it; use one "
            "that gradient ascent can respect, such as constraints.positive"
        ) from error


def _check_drawn(name: str, site: SiteOfTrace) -> None:
    if site["fn"].support.is_discrete:
        where = "has infinitely many values" if in_data_plate(site) else "is outside the plate 'data'"
        raise ValueError(
            f"the latent site {name!r} is discrete and {where}; gradient-based inference needs it summed out of the "
            "program. credo sums out those that each row has inside the plate, with finitely many values; write other "
            "sums yourself, as a mixture (dist.MixtureSameFamily)"
        )
    if is_local(site) and not site["fn"].has_rsample:
        raise ValueError(
            f"the latent site {name!r} inside the plate 'data' has a distribution whose draws have no gradient; use "
            "one that is a smooth function of standard noise, such as dist.Normal, or sum it out of the program"
        )
