"""Outliers: numbers of which some are far off. Paper, "Noisy labels and semi-supervised learning", for regression.

    clean ~ N(f_theta(x), noise²),    y ~ (1 − rate) · N(f_theta(x), noise²) + rate · N(f_theta(x), wide²)

for each output by itself. Which of them are outliers is integrated out, and what is predicted is `clean`, the value
without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._checks import require_one_of
from credo._precision import working_precision
from credo.models import likelihoods, priors
from credo.models.imposed import imposed_by
from credo.models.label_noise import (
    as_rate,
    draw_each,
    from_known_or_prior,
    initial_each,
    known_or_prior,
    scalar_prior,
)
from credo.models.likelihoods import FixedCovariance, FullCovariance
from credo.models.network import check_symmetries, drawn_outputs, initial_weights, num_outputs
from credo.models.noise_network import NoiseNetwork
from credo.models.priors import Parameter, Point
from credo.models.program import Model
from credo.models.recipe import Recipe
from credo.models.regression import check_outputs
from credo.models.rows import ModelConfig
from credo.models.sites import stripped
from credo.networks import network_config
from credo.typing import Array, Batch, Theta

KINDS = ("ncar", "nar", "nnar")
# Of standardised targets: outliers are several standard deviations away, most likely between one and ten.
WIDE_PRIOR = (float(np.log(3.0)), 0.7)
# The rate that points and a network of x start from.
EXPECTED_RATE = 0.2


def outliers(
    net: Any,
    kind: Literal["ncar", "nar", "nnar"] = "ncar",
    *,
    prior: Any = None,
    noise: Any = None,
    errors: Any = None,
    wide: Any = None,
    noise_net: Any = None,
) -> Model:
    """A regression in which some targets are outliers, each output by itself.

        y ~ (1 − rate) · N(f_theta(x), noise²) + rate · N(f_theta(x), wide²)

    `predict(x)` is about a value that is none, `predict(x, of="y")` about what would be measured, and
    `posterior.label_errors(data)` is the probability that each target is an outlier. Targets may be missing.

    Arguments:
        net: as for `credo.models.regression`.
        kind: "ncar", one rate and one wide scale; "nar", one of each for every output; "nnar", rates from a second
            network of x.
        prior: of the weights, as for `credo.models.regression`.
        noise: of values that are no outliers, as for `credo.models.regression`; independent for each output.
        errors: the rate: a number, or a NumPyro distribution; Beta(1, 4) by default. "point" for rates that are learned
            as one value each, or `credo.priors.point(density)` with a density of their log-odds, such as
            `credo.priors.few(1.0)`, which knows how many outputs are bad. For nnar, a prior of `credo.priors` on the
            weights of the second network.
        wide: the scale of outliers, in the units of `noise`: a number, or one for each output; a NumPyro distribution
            on positive numbers; by default a log-normal one around three standard deviations of standardised targets.
        noise_net: the second network (nnar), with an output for each target; one hidden layer of 16 units by default.

    >>> from credo.networks import MLP
    >>> print(outliers(MLP([20], out=1)).bind((np.zeros((4, 2)), np.zeros(4))).graph().parents("y"))
    ('rate', 'wide', 'clean')
    """
    require_one_of(KINDS, kind=kind)
    chosen_prior, chosen_noise = priors.as_prior(prior), _independent(likelihoods.as_noise(noise))
    chosen_errors = _Outliers.of(kind, errors, wide, noise_net)
    terms = priors.terms_of(chosen_prior)

    targets_of = partial(likelihoods.num_targets, chosen_noise)

    def program(x: Array, y: Array | None = None, **inputs: Array) -> None:
        outputs = drawn_outputs(net, chosen_prior, partial(likelihoods.means, chosen_noise), x, inputs)
        drawn = chosen_noise.draw(targets_of(outputs.shape[-1]))
        rate, wide = chosen_errors.draw(x, targets_of(outputs.shape[-1]))
        with numpyro.plate("data", x.shape[0]):
            law = chosen_noise.around(outputs, drawn)
            numpyro.sample("clean", law, infer={"marginalised": True})
            if kind == "nnar":
                rate = numpyro.deterministic("rate", rate)
            numpyro.sample("y", contaminated(law, rate, wide), obs=None if y is None else y.astype(working_precision()))

    def initial(x: Array) -> Theta:
        return initial_weights(net)(x) | chosen_errors.initial(x, targets_of(num_outputs(net, x)))

    def check(batch: Batch) -> None:
        outputs = num_outputs(net, batch.x)
        check_outputs(batch, outputs, chosen_noise)
        check_symmetries(net, chosen_prior, batch.x)
        chosen_errors.check(batch.x, targets_of(outputs))

    config = ModelConfig(
        model="noisy_labels",
        network=network_config(net),
        prior=chosen_prior.to_config(),
        kind=kind,
        task="regression",
        noise=chosen_noise.to_config(),
        **chosen_errors.to_config(),
    )

    def make(net: Any, prior: Any) -> Model:
        return outliers(net, kind, prior=prior, noise=noise, errors=errors, wide=wide, noise_net=noise_net)

    return Model(
        program,
        inputs=imposed_by(terms, chosen_prior),
        config=config,
        initial=initial,
        check=check,
        predicts="clean",
        recipe=Recipe(make, net, chosen_prior, sees_x_by_network=kind != "nnar"),
    )


def contaminated(law: dist.Distribution, rate: Array, wide: Array) -> dist.Distribution:
    """(1 − rate) · law + rate · N(its mean, wide²), for normal laws of one number, or of several outputs by themselves.

    >>> law = contaminated(dist.Normal(jnp.zeros(2), 1.0), jnp.asarray(0.5), jnp.asarray(3.0))
    >>> float(law.variance[0])
    5.0
    """
    shape, normal = law.shape(), stripped(law)
    scales = jnp.stack([jnp.broadcast_to(scale, shape) for scale in (normal.scale, wide)], axis=-1)
    rates = jnp.broadcast_to(rate, shape)
    parts = dist.Normal(jnp.broadcast_to(normal.loc, shape)[..., None], scales)
    mixture = dist.MixtureSameFamily(dist.Categorical(probs=jnp.stack([1 - rates, rates], axis=-1)), parts)
    return mixture.to_event(law.event_dim)


def outliers_from_config(config: Mapping[str, Any], net: Any) -> Model:
    """The model that its `config` describes, around the network `net`."""
    is_of_x, errors = config["kind"] == "nnar", config["errors"]
    return outliers(
        net,
        config["kind"],
        prior=priors.from_config(config["prior"]),
        noise=likelihoods.from_config(config["noise"]),
        wide=from_known_or_prior(config["wide"]),
        **(NoiseNetwork.arguments(errors) if is_of_x else {"errors": from_known_or_prior(errors)}),
    )


@dataclass(frozen=True, eq=False)
class _Outliers:
    """How often targets are outliers, and how far off they are.

    Arguments:
        rate: known, a prior, a point, or a network of x.
        wide: known, or a prior.
        is_shared: whether all outputs have one rate and one scale.
    """

    rate: float | dist.Distribution | Point | NoiseNetwork
    wide: Any
    is_shared: bool

    @classmethod
    def of(cls, kind: str, errors: Any, wide: Any, noise_net: Any) -> "_Outliers":
        if noise_net is not None and kind != "nnar":
            raise ValueError(f"noise_net is for noise that depends on x, and kind is {kind!r}; pass kind='nnar'")
        rate = NoiseNetwork.of(noise_net, errors) if kind == "nnar" else _as_rate(errors)
        return cls(rate, _as_wide(wide), kind == "ncar")

    def draw(self, x: Array, targets: int) -> tuple[Array, Array]:
        """The rate and the wide scale, each one number, one per target, or one per row and target."""
        num = None if self.is_shared or targets == 1 else targets
        if isinstance(self.rate, NoiseNetwork):
            log_odds = self.rate.draw(x, targets) + working_precision().type(
                np.log(EXPECTED_RATE / (1 - EXPECTED_RATE))
            )
            rate = jax.nn.sigmoid(log_odds[..., 0] if targets == 1 else log_odds)
        elif isinstance(self.rate, Point):
            start = np.full(() if num is None else num, EXPECTED_RATE, working_precision())
            rate = self.rate.draw_rate(Parameter("rate", start.shape, initial=start))
        else:
            rate = draw_each("rate", self.rate, num)
        return rate, draw_each("wide", self.wide, targets if np.ndim(self.wide) else num)

    def initial(self, x: Array, targets: int) -> Theta:
        num = None if self.is_shared or targets == 1 else targets
        own = (
            self.rate.initial(x, targets)
            if isinstance(self.rate, NoiseNetwork)
            else initial_each("rate", self.rate, num)
        )
        return own | initial_each("wide", self.wide, num)

    def check(self, x: Any, targets: int) -> None:
        if isinstance(self.rate, NoiseNetwork):
            self.rate.check(x, targets, (targets,))
        if np.ndim(self.wide) and len(self.wide) != targets:
            raise ValueError(f"wide: it is for {len(self.wide)} target(s), but y has {targets}; pass one per target")

    def to_config(self) -> dict[str, Any]:
        errors = self.rate.to_config() if isinstance(self.rate, NoiseNetwork) else known_or_prior(self.rate)
        return {"errors": errors, "wide": known_or_prior(self.wide)}


def _independent(noise: likelihoods.Noise) -> likelihoods.Noise:
    if isinstance(noise, FixedCovariance | FullCovariance):
        raise ValueError(
            f"noise: outliers are those of each output by itself, and {noise.name!r} correlates them; pass a scale for "
            "each output, 'learned' or 'heteroscedastic'"
        )
    return noise


def _as_rate(errors: Any) -> float | dist.Distribution | Point:
    chosen = priors.point() if isinstance(errors, str) and errors == "point" else errors
    return chosen if isinstance(chosen, Point) else as_rate(chosen)


def _as_wide(wide: Any) -> Any:
    if wide is None:
        return dist.LogNormal(*WIDE_PRIOR)
    if isinstance(wide, dist.Distribution):
        return scalar_prior("wide", wide, 0.0, np.inf)
    scales = np.asarray(wide)
    if scales.dtype.kind not in "iuf" or scales.ndim > 1 or not np.all((scales > 0) & np.isfinite(scales)):
        raise ValueError(
            "wide: the scale of outliers is a positive number, one for each output, or a NumPyro distribution on "
            f"positive numbers; got {wide!r}"
        )
    return float(scales) if scales.ndim == 0 else tuple(scales.tolist())
