"""What each site of a program is, where its value comes from, and what it adds to the log joint density.

- a *latent*, drawn outside the plate `data`, is a part of theta;
- a *local latent*, drawn inside it, has one value per row: it is not a part of theta, and is drawn afresh in every run
  of training; a prediction draws it with noise that depends on the draw and on what the row holds;
- a *summed* site, discrete and drawn inside the plate, takes every value it can have: its rows are sums over them;
- a *marginalised* site, `sample(name, law, infer={"marginalised": True})` inside the plate, is what y would be without
  what the program has integrated out by hand: nothing depends on its value, it has a law to predict from;
- a *param*, one of xi, is learned or given: it has no prior, and so no Jacobian either.
"""

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions import biject_to, constraints
from numpyro.primitives import Messenger

from credo import random
from credo._precision import in_working_precision, working_precision
from credo.models.rows import Told
from credo.predictive.censored import Censored
from credo.predictive.missing import observed_part
from credo.predictive.sharpened import sharpened
from credo.typing import Array, Key, Theta

SiteOfTrace = Mapping[str, Any]
# The leaf of theta that seeds the local latents of one draw: with it, a draw is a function of x again.
LOCAL_NOISE = "local_noise"
NOTHING_TOLD = Told(None)


@dataclass(frozen=True)
class Xi:
    """Learned prior parameters as constants: name, shape, dtype and bytes, so that models can be hashed."""

    items: tuple[tuple[str, tuple[int, ...], str, bytes], ...] = ()

    @classmethod
    def of(cls, xi: Theta) -> "Xi":
        """From unconstrained arrays by name."""
        arrays = {name: np.asarray(value, working_precision()) for name, value in xi.items()}
        return cls(
            tuple((name, array.shape, str(array.dtype), array.tobytes()) for name, array in sorted(arrays.items()))
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """The unconstrained arrays by name."""
        found = {name: np.frombuffer(content, dtype).reshape(shape) for name, shape, dtype, content in self.items}
        return in_working_precision(found)


class Sites(Messenger):
    """Gives the sites of a program their values, and sums the log-Jacobians of the latents.

        latent: T(theta[name]), T the bijector to its support      param: T(xi[name]), T the one to its constraint

    A latent that theta does not hold is drawn by the enclosing `seed` handler; a param that neither theta nor xi holds
    takes its initial value; a local latent is drawn with a key of its own, made from `local_key()`, unless its values
    are given.

    Arguments:
        theta: unconstrained latents by name, xi that take precedence over those in `xi`, `local_values`, and values of
            summed and marginalised sites.
        xi: unconstrained params by name.
        local_key: called if there is a local latent; None leaves it to the enclosing `seed` handler.
        gaps: whether rows of y may miss some of their targets, which are then left out of its law.
        told: what the batch tells of y beside its values: which rows are censored, whose density is P(Y ≥ y), and the
            precisions of their noise.
    """

    def __init__(
        self,
        theta: Theta,
        xi: Theta,
        local_key: Callable[[], Key] | None = None,
        *,
        gaps: bool = False,
        told: Told = NOTHING_TOLD,
    ) -> None:
        super().__init__(None)
        # theta may be of a fit in another precision.
        self.values = in_working_precision({**xi, **theta})
        self.local_key = local_key
        self.gaps, self.told = gaps, told
        self.log_jacobian: Array = jnp.zeros(())
        self.num_local = 0
        self.types: dict[str, str] = {}

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] not in ("sample", "param"):
            return
        if self.types.setdefault(msg["name"], msg["type"]) != msg["type"]:
            raise ValueError(f"the name {msg['name']!r} is both a `param` and a `sample` site; rename one of them")
        if msg["type"] == "param":
            self._set_param(msg)
        elif msg["name"] == "y":
            if self.told.precisions is not None:
                msg["fn"] = sharpened(msg["fn"], self.told.precisions)
            if self.gaps and msg["is_observed"]:
                msg["fn"] = observed_part(msg["fn"], msg["value"])
            if self.told.censored is not None and msg["is_observed"]:
                msg["fn"] = Censored(msg["fn"], self.told.censored)
        elif is_marginalised(msg):
            msg["value"] = self.values.get(msg["name"], msg["value"])
        elif is_summed(msg):
            self._set_summed(msg)
        elif is_local(msg):
            self._set_local(msg)
        elif is_latent(msg) and msg["name"] in self.values:
            self._set_latent(msg)

    def _set_latent(self, msg: dict[str, Any]) -> None:
        unconstrained = self.values[msg["name"]]
        if is_unconstrained(msg["fn"].support):
            msg["value"] = unconstrained
            return
        transform = biject_to(msg["fn"].support)
        msg["value"] = transform(unconstrained)
        self.log_jacobian += jnp.sum(transform.log_abs_det_jacobian(unconstrained, msg["value"]))

    def _set_param(self, msg: dict[str, Any]) -> None:
        if msg["name"] in self.values:
            msg["value"] = bijector(msg)(jnp.asarray(self.values[msg["name"]]))
        else:
            msg["value"] = _initial_value(msg)

    def _set_summed(self, msg: dict[str, Any]) -> None:
        if msg["name"] in self.values:
            # One value for all rows, which it broadcasts against.
            value = jnp.asarray(self.values[msg["name"]])
            msg["value"] = value.reshape((1,) * len(msg["fn"].batch_shape))

    def _set_local(self, msg: dict[str, Any]) -> None:
        if msg["name"] in self.values:
            msg["value"] = jnp.moveaxis(self.values[msg["name"]], 0, row_axis(msg))
        # Numbered in order: the noise of a draw does not depend on which other sites are given.
        elif self.local_key is not None:
            msg["kwargs"]["rng_key"] = jax.random.fold_in(self.local_key(), self.num_local)
            self.num_local += 1


def is_latent(site: SiteOfTrace) -> bool:
    """Whether a site is drawn outside the plate `data` and not observed: a part of theta."""
    return _is_drawn(site) and not in_data_plate(site)


def is_local(site: SiteOfTrace) -> bool:
    """Whether a site is drawn inside the plate `data` and not observed or summed over: one value per row."""
    return _is_drawn(site) and in_data_plate(site) and not is_summed(site)


def is_summed(site: SiteOfTrace) -> bool:
    """Whether a site inside the plate `data` is discrete, with finitely many values: its rows are sums over these."""
    is_inside = _is_drawn(site) and in_data_plate(site)
    return is_inside and site["fn"].support.is_discrete and bool(stripped(site["fn"]).has_enumerate_support)


def is_marginalised(site: SiteOfTrace) -> bool:
    """Whether a site is what y would be without what the program has integrated out by hand."""
    return site["type"] == "sample" and bool((site.get("infer") or {}).get("marginalised"))


def is_seen(site: SiteOfTrace) -> bool:
    """Whether a site is a part of the likelihood."""
    return site["type"] == "sample" and in_data_plate(site) and not is_local(site) and not is_marginalised(site)


def is_factor(site: SiteOfTrace) -> bool:
    """Whether a site is observed outside the plate `data`: a condition on the latents, part of the prior."""
    return site["type"] == "sample" and site["is_observed"] and not in_data_plate(site)


def in_data_plate(site: SiteOfTrace) -> bool:
    return any(frame.name == "data" for frame in site["cond_indep_stack"])


def of_new_task(site: SiteOfTrace) -> Array:
    """The value of a site; of one in the plate `tasks` that of its last task, which has a prior and no data."""
    in_tasks = any(frame.name == "tasks" for frame in site["cond_indep_stack"])
    return site["value"][-1] if in_tasks else site["value"]


def _is_drawn(site: SiteOfTrace) -> bool:
    is_drawn = site["type"] == "sample" and not site["is_observed"] and site["name"] != "y"
    return is_drawn and not is_marginalised(site)


def is_unconstrained(support: Any) -> bool:
    """Whether a support is all real numbers, of an array or of one."""
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    return support is constraints.real


def constraint_of(param: SiteOfTrace) -> Any:
    return param["kwargs"].get("constraint", constraints.real)


def bijector(param: SiteOfTrace) -> Any:
    """From the real numbers to the constraint of a param."""
    return biject_to(constraint_of(param))


def _initial_value(param: SiteOfTrace) -> Array | None:
    """The initial value in the program; if that is a function of a key, the key depends on the name alone."""
    with handlers.seed(rng_seed=jax.random.fold_in(random.key(0), zlib.crc32(param["name"].encode()))):
        value = param["fn"](*param["args"])
    if value is None:  # `check_program` refuses it, once the program has run
        return None
    if not jax.tree_util.all_leaves([value]):
        raise ValueError(
            f"the param {param['name']!r} holds a tree of arrays ({type(value).__name__}); declare each array with a "
            "numpyro.param of its own (flax_module, nnx_module and eqx_module declare whole trees)"
        )
    return jnp.asarray(value, working_precision())


def unconstrained_latents(trace: Mapping[str, Any]) -> Theta:
    """The latents of a trace in unconstrained form: theta."""
    return {name: unconstrained(site) for name, site in trace.items() if is_latent(site)}


def unconstrained_params(trace: Mapping[str, Any]) -> Theta:
    """The params of a trace in unconstrained form: xi."""
    return {name: unconstrained(site) for name, site in trace.items() if site["type"] == "param"}


def unconstrained(site: SiteOfTrace) -> Array:
    """The value of a latent or a param on the real numbers, from where its bijector leads to its support."""
    transform = bijector(site) if site["type"] == "param" else biject_to(site["fn"].support)
    return jnp.asarray(transform.inv(site["value"]), working_precision())


def zeros_for_y(site: SiteOfTrace) -> Array | None:
    """Values for targets that nobody looks at: drawing them takes time, and JAX's Poisson takes no key of ours."""
    is_unseen = site["type"] == "sample" and site["name"] == "y" and not site["is_observed"]
    return jnp.zeros(site["fn"].shape()) if is_unseen else None


def log_density(site: SiteOfTrace, moments: tuple[Theta, Theta] | None = None) -> Array:
    """log p(value | parents) of a site, summed; E_q[log p] for a normal latent whose moments under q are given.

    E_q[log N(w; m, s²)] = log N(E_q[w]; m, s²) − Var_q[w] / 2s²
    """
    normal = normal_of(site) if moments is not None and site["name"] in moments[0] else None
    if moments is None or normal is None:
        log_prob = jnp.sum(site["fn"].log_prob(site["value"]))
    else:
        mean, variance = (moment[site["name"]] for moment in moments)
        # The bare normal may be smaller than the site (expand): it broadcasts against the moments.
        expected_square = ((mean - normal.loc) ** 2 + variance) / normal.scale**2
        log_prob = jnp.sum(-0.5 * (expected_square + math.log(2 * math.pi)) - jnp.log(normal.scale))
    return log_prob if site["scale"] is None else site["scale"] * log_prob


def row_log_density(site: SiteOfTrace) -> Array:
    """log p(value | parents) of each row of a site inside the plate `data`, (rows,) or (1,)."""
    log_prob = _of_one_class(site) if is_summed(site) else None
    log_prob = site["fn"].log_prob(site["value"]) if log_prob is None else log_prob
    if log_prob.ndim > 1:
        axis = log_prob.ndim + data_plate(site).dim
        log_prob = jnp.sum(log_prob, tuple(other for other in range(log_prob.ndim) if other != axis))
    return log_prob if site["scale"] is None else site["scale"] * log_prob


def _of_one_class(site: SiteOfTrace) -> Array | None:
    """log p of a class that is the same in all rows: a column, where NumPyro would look up each row; else None."""
    bare = stripped(site["fn"])
    if not isinstance(bare, dist.CategoricalLogits) or jnp.size(site["value"]) != 1:
        return None
    return jnp.take(jax.nn.log_softmax(bare.logits), site["value"].reshape(()), axis=-1)


def data_plate(site: SiteOfTrace) -> Any:
    """The plate of the rows, for a site inside it."""
    (plate,) = (frame for frame in site["cond_indep_stack"] if frame.name == "data")
    return plate


def normal_of(site: SiteOfTrace) -> dist.Normal | None:
    """The normal that a latent is drawn from, stripped of its shape; None for any other site."""
    bare = stripped(site["fn"]) if is_latent(site) else None
    return bare if type(bare) is dist.Normal else None


def stripped(distribution: dist.Distribution) -> dist.Distribution:
    """A distribution without the wrappers that only repeat it over an array."""
    while isinstance(distribution, dist.Independent | dist.ExpandedDistribution):
        distribution = distribution.base_dist
    return distribution


def local_values(run: Callable[[Array, Callable[[], Key]], Mapping[str, Any]], seed: Any, x: Array) -> Theta:
    """The local latents of one draw by name, rows first, each row from a run of the program on that row alone.

    The noise comes from the seed of the draw and from what the row holds, so that a draw is one function of x: a row
    has the same value whatever is asked with it, and equal rows have equal values.

    Arguments:
        run: `run(x, local_key)`, a trace of the program.
        seed: of the draw, a whole number.
        x: rows, (rows, …).
    """
    key = jax.random.fold_in(random.key(0), jnp.asarray(seed).astype(jnp.uint32))

    def of_row(row: Array) -> Theta:
        own = jax.random.fold_in(key, random.content(row))
        local = {name: site for name, site in run(row[None], lambda: own).items() if is_local(site)}
        return {name: jnp.squeeze(site["value"], row_axis(site)) for name, site in local.items()}

    return jax.vmap(of_row)(jnp.asarray(x))


def row_axis(site: SiteOfTrace) -> int:
    """The axis of a local latent's value that the rows are along, counted from the end."""
    return data_plate(site).dim - site["fn"].event_dim
