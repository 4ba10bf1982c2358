"""What every posterior is: the protocol, how it came about, and what posteriors of one model share."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from credo import _html, random
from credo._concurrency import require_own_jax
from credo._precision import working_precision
from credo._schema import Count, Seconds, Seed
from credo.data import Data, FileData, Scaling
from credo.diagnostics import Diagnostics
from credo.diagnostics.compression import Compression
from credo.models.label_errors import judging
from credo.models.program import Model
from credo.posterior.saving import save
from credo.predictive import Predictive, predictive
from credo.predictive.label_errors import errors_of
from credo.typing import Key, Theta

# Draws that a fitted q is predicted with: the Monte Carlo error of a mean is a tenth of its epistemic sd.
NUM_PREDICTIVE_DRAWS = 100
# Function-space diagnostics look at this many training inputs.
NUM_PROBES = 40


@dataclass(frozen=True)
class Provenance:
    """How a posterior came about: the method and its settings, the seed, the time, and the size of the data.

    `why` says why this method, where the user left that open (`"auto"`). `compression` tells what was saved and lost,
    where the posterior was made smaller since (`credo.compress`). `precision` is that of the fit.
    """

    method: dict[str, Any]
    seed: Seed
    seconds: Seconds
    num_data: Count
    interrupted: bool = False
    why: str = ""
    compression: Compression | None = None
    precision: str = field(default_factory=lambda: str(working_precision()))

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings, and the text of the cells of each setting."""
        settings = {
            "method": self.method["name"],
            "seed": self.seed,
            "rows fitted": self.num_data,
            "seconds": f"{self.seconds:.2f}",
            "interrupted": "yes" if self.interrupted else "no",
        } | {name: value for name, value in self.method.items() if name != "name"}
        return ["setting", "value"], [[name, str(value)] for name, value in settings.items()]


class Posterior(Protocol):
    """p(theta | D), or what stands for it.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> posterior = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> posterior.predict([[0.0], [1.0]]).mean.shape, posterior.sample(credo.random.key(0), 5)["head.bias"].shape
    ((2,), (5, 1))
    """

    @property
    def model(self) -> Model:
        """The model, bound to the shape of the data."""

    @property
    def provenance(self) -> Provenance:
        """How it came about."""

    @property
    def num_bytes(self) -> int:
        """What it takes to keep, in memory."""

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta: every leaf gains a leading axis."""

    def predict(self, x: Any, *, num_draws: int | None = None, of: str | None = None) -> Predictive:
        """The marginal p(y | x, D), of the site to predict or of another."""

    def about(self, site: str) -> Self:
        """This posterior, of which another site is predicted: "y" is what was observed."""

    def label_errors(self, data: Any, *, num_draws: int | None = None) -> np.ndarray:
        """P(the given label is wrong | x, y, D) of each row."""

    def placed(self, data: Data | FileData) -> Self:
        """This posterior with what it must know of the data it came from."""

    def save(self, folder: str | Path) -> None:
        """Write the posterior into a folder that `credo.load` reads."""

    @property
    def diagnostics(self) -> Diagnostics:
        """Evidence for and against the fit, with a verdict in words."""


class BasePosterior:
    """What is the same for every posterior of one model that draws of theta can be had from.

    `stored_as` is the name of its kind in a manifest.
    """

    stored_as: ClassVar[str]
    model: Model
    provenance: Provenance
    scaling: Scaling
    probes: np.ndarray | None

    def placed(self, data: Data | FileData) -> Self:
        """This posterior with what it must know of the data it came from."""
        provenance = replace(self.provenance, num_data=data.num_labelled)
        return replace(self, scaling=data.scaling, probes=data.probes(NUM_PROBES), provenance=provenance)  # type: ignore[type-var]

    @property
    def models(self) -> list[Model]:
        """The models behind it, without learned constants."""
        return [replace(self.model, xi=None)]

    @property
    def _made(self) -> str:
        made, compression = self.provenance, self.provenance.compression
        since = f", compressed {compression.ratio:.0f}-fold by {compression.by}" if compression else ""
        return f"by {made.method.get('name', '?')} in {made.seconds:.1f} s{since}"

    def _repr_html_(self) -> str:
        return shown(self)

    def describe(self) -> str:
        """What it is and how it came about; of a compressed posterior also what that saved and lost."""
        compression = self.provenance.compression
        return "\n".join([repr(self), *([str(compression)] if compression else [])])

    def sample(self, key: Key, num: int) -> Theta:
        """`num` draws of theta: every leaf gains a leading axis."""
        raise NotImplementedError

    def weighted_draws(self, num: int) -> tuple[Theta, np.ndarray]:
        """`num` draws of theta, or those that are kept, and weights that add up to one: the same at every call."""
        return self.sample(random.key(self.provenance.seed), num), np.full(num, 1 / num)

    def canonical(self) -> Self:
        """The same functions by weights that can be compared: of draws, see `Draws.canonical`."""
        raise ValueError(
            f"canonical() sorts the units of draws, and a {type(self).__name__} has none: each of its fits has one "
            "arrangement of the units already; use it on what a sampler leaves, such as credo.NUTS()"
        )

    def inputs(self, x: Any) -> np.ndarray:
        """x as an array with rows and columns as in training, or an error that says what does not fit."""
        require_own_jax()
        return self.model.inputs_like(x)

    def about(self, site: str) -> Self:
        """This posterior, of which another site is predicted: "y" is what was observed."""
        return self.with_model(lambda model: model.predicting(site))

    def with_model(self, change: Callable[[Model], Model]) -> Self:
        """This posterior of theta, in another model of the same theta."""
        return replace(self, model=change(self.model))  # type: ignore[type-var]

    def predict(self, x: Any, *, num_draws: int | None = None, of: str | None = None) -> Predictive:
        """The marginal p(y | x, D), averaged over draws of theta: the same ones at every call.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: how many draws to average; 100 by default.
            of: the site to predict, where the model has another than what was observed ("y").
        """
        if of is not None:
            return self.about(of).predict(x, num_draws=num_draws)
        inputs, num = self.inputs(x), at_least_one(num_draws=num_draws, default=NUM_PREDICTIVE_DRAWS)
        theta = self.sample(random.key(self.provenance.seed), num)
        return predictive(self.model, {**theta, **self.model.local_noise(num)}, inputs, scaling=self.scaling)

    def label_errors(self, data: Any, *, num_draws: int | None = None) -> np.ndarray:
        """P(the given label is wrong | x, y, D) of each row, averaged over draws of theta; NaN where none was given.

            1 − p(clean = y | x, y, theta),    p(clean | x, y, theta) ∝ p(y | clean, x, theta) p(clean | x, theta)

        Of a regression with outliers, the probability that each target is one. For models that tell what is given from
        what is true (`credo.models.noisy_labels`), and for rows like those they were fitted to, or those themselves.

        Arguments:
            data: credo.Data or (x, y), y in the shape that it had in training, which is that of the answer.
            num_draws: how many draws to average, as for `predict`.
        """
        given = self.model.like_training(data)
        judged = self.judged().predict(given.x, num_draws=num_draws)
        return errors_of(judged, self.scaling.targets(given.y))

    def judged(self) -> Self:
        """This posterior, of which p(y | x, theta) is asked for with what is true kept apart: see `label_errors`."""
        return self.with_model(judging)

    def __copy__(self) -> Self:
        return replace(self)  # type: ignore[type-var]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        own = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        return replace(self, **copy.deepcopy(own, memo))  # type: ignore[type-var]

    def save(self, folder: str | Path) -> None:
        """Write the posterior into a folder: arrays as safetensors, the rest as JSON. See `credo.load`."""
        save(self, folder)


def shown(posterior: Any) -> str:
    """What a notebook shows of anything with diagnostics and a provenance: whether it worked, and how it was made."""
    found = posterior.diagnostics
    verdict = _html.verdict(found.verdict, found.status)
    return _html.notebook(_html.code(repr(posterior)), verdict, _html.table(*posterior.provenance.cells()))


def at_least_one(default: int | None = None, **counts: int | None) -> int:
    """The count of that name, or its default; a ValueError below one."""
    ((name, count),) = counts.items()
    num = default if count is None else count
    if num is None or num < 1:
        raise ValueError(f"{name} must be at least 1, got {num}")
    return num
