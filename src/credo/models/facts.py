"""Facts about the sites of a program that are known before anything is computed."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from credo.models.sites import (
    SiteOfTrace,
    is_factor,
    is_latent,
    is_local,
    is_marginalised,
    is_summed,
    is_unconstrained,
    normal_of,
    stripped,
    unconstrained,
)


class Fact(NamedTuple):
    """What a site is: see `models.sites`.

    Arguments:
        shape: unconstrained, of a latent or a param.
        values: of a site that is summed over.
        is_normal: whether it is a normal latent.
        is_real: whether it is a latent on all real numbers, which theta holds as it is.
        is_coupled: whether it is a latent whose entries are correlated in the prior.
        is_undrawn: whether it is a latent with a density that nothing can be drawn from.
        is_point: whether it is a param that is the weights of a point layer.
    """

    shape: tuple[int, ...]
    values: tuple[int, ...]
    is_latent: bool
    is_local: bool
    is_factor: bool
    is_marginalised: bool
    is_normal: bool
    is_real: bool
    is_coupled: bool
    is_undrawn: bool
    is_param: bool
    is_point: bool


def fact_of(site: SiteOfTrace) -> Fact:
    """What a site of a trace is."""
    latent, param = is_latent(site), site["type"] == "param"
    return Fact(
        shape=jnp.shape(unconstrained(site)) if latent or (param and site["value"] is not None) else (),
        values=_values(site) if is_summed(site) else (),
        is_latent=latent,
        is_local=is_local(site),
        is_factor=is_factor(site),
        is_marginalised=is_marginalised(site),
        is_normal=normal_of(site) is not None,
        is_real=latent and is_unconstrained(site["fn"].support),
        is_coupled=latent and _is_coupled(stripped(site["fn"])),
        is_undrawn=latent and getattr(stripped(site["fn"]), "draws_are_starts", False),
        is_param=param,
        is_point=param and "point" in site["kwargs"],
    )


def _is_coupled(distribution: dist.Distribution) -> bool:
    return isinstance(distribution, dist.MultivariateNormal) or getattr(distribution, "couples_entries", False)


def _values(site: SiteOfTrace) -> tuple[int, ...]:
    # The values are known while nothing is computed.
    with jax.ensure_compile_time_eval():
        return tuple(np.ravel(stripped(site["fn"]).enumerate_support(expand=False)).tolist())
