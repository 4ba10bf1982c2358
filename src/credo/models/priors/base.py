"""What a prior is: for each parameter of a network the distribution it is drawn from, or a way to draw it."""

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpyro
import numpyro.distributions as dist

from credo._checks import require_positive
from credo.typing import Array

# Sites that a run of the program has drawn already, by name, each with the prior that drew it; and the model's own
# inputs, which none drew.
Drawn = dict[str, tuple["Prior | None", Array]]


class Parameter(NamedTuple):
    """What a prior may look at: a parameter's dotted path, its shape, how many inputs feed one unit, its own value.

    >>> from credo import priors
    >>> kernel = priors.Parameter("hidden.0.kernel", (4, 20), fan_in=4)
    >>> float(priors.fan_in(1.0)(kernel).variance[0, 0])
    0.25
    """

    path: str
    shape: tuple[int, ...]
    fan_in: int = 1
    initial: Any = None


@runtime_checkable
class Prior(Protocol):
    """Anything that gives a parameter its distribution.

    A prior that draws more than one site has a method `draw(parameter, drawn) -> Array` as well: see `Composite`. One
    that removes a symmetry of the network says which, `breaks`: "permutable" or "rescalable" units.

    >>> import numpyro.distributions as dist
    >>> from credo import priors
    >>> class HeavyTailed:
    ...     def __call__(self, parameter):
    ...         return dist.StudentT(4.0).expand(parameter.shape).to_event()
    ...     def to_config(self):
    ...         return {"name": "heavy_tailed"}
    >>> HeavyTailed()(priors.Parameter("head.bias", (3,))).event_shape
    (3,)
    """

    def __call__(self, parameter: Parameter) -> dist.Distribution: ...
    def to_config(self) -> dict[str, Any]: ...


class Described:
    """A dataclass that is stored as its name and its numbers.

    >>> from credo import priors
    >>> priors.normal(2.0).to_config()
    {'name': 'normal', 'scale': 2.0}
    """

    name: ClassVar[str]

    def to_config(self) -> dict[str, Any]:
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


class Composite(Described, ABC):
    """A prior that makes a parameter from other sites, so that no single distribution is its own.

    >>> from credo import priors
    >>> isinstance(priors.half_cauchy(), priors.Composite), isinstance(priors.normal(), priors.Composite)
    (True, False)
    """

    def __call__(self, parameter: Parameter) -> dist.Distribution:
        raise ValueError(
            f"prior: {self.name} makes {parameter.path!r} from other sites, so it has no distribution of its own; "
            "draw it with credo.models.priors.draw(prior, parameter, {})"
        )

    @abstractmethod
    def draw(self, parameter: Parameter, drawn: Drawn) -> Array:
        """The value of the parameter; sites that other parameters share are looked up in `drawn`, or put there."""


def draw(prior: Prior, parameter: Parameter, drawn: Drawn) -> Array:
    """Draw a parameter inside a NumPyro program: one site at its path, or whatever sites the prior makes it from.

    >>> from numpyro import handlers
    >>> from credo.models.priors import normal
    >>> with handlers.seed(rng_seed=0):
    ...     draw(normal(), Parameter("head.bias", (3,)), {}).shape
    (3,)
    """
    own = getattr(prior, "draw", None)
    return numpyro.sample(parameter.path, prior(parameter)) if own is None else own(parameter, drawn)


def inputs_of(prior: Prior) -> dict[str, Any]:
    """The arrays that a prior asks its model to hold, by name; most ask for none.

    >>> from credo import priors
    >>> priors.inputs_of(priors.normal())
    {}
    """
    own = getattr(prior, "inputs", None)
    return {} if own is None else own()


def prior_at(prior: Prior, path: str) -> Prior:
    """The prior of one parameter, where there is one for each.

    >>> from credo import priors
    >>> priors.prior_at(priors.by_path({"*.bias": priors.normal(10.0)}), "head.bias")
    Normal(scale=10.0)
    """
    own = getattr(prior, "at", None)
    return prior if own is None else own(path)


def fill(scalar: dist.Distribution, shape: tuple[int, ...]) -> dist.Distribution:
    """A distribution of numbers, independent for every entry of an array."""
    return scalar.expand(shape).to_event(len(shape))


def positive(name: str, value: float) -> float:
    """The number, if it is positive and finite."""
    require_positive(**{name: value})
    return float(value)
