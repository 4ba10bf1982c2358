"""The contract that every method keeps, as a function: for the methods of the registry, and for one of your own.

    credo.testing.check_method(MyMethod(num_samples=6))

Give it settings that finish at once. A method that passes can be fitted, saved, resumed, wrapped in an ensemble and
judged like any other; whether its draws are those of the posterior, only a known posterior tells.
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from credo import random
from credo.data import Data
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.models import regression
from credo.models.program import Model
from credo.networks import MLP
from credo.posterior import Draws, load
from credo.posterior.saving import pack

SEED = 3


@dataclass(frozen=True)
class Case:
    """A method on a small regression in units far from standard ones: 20 rows, a network of 14 numbers.

    `prior` is that of the weights, for a method that does not take any.

    >>> import credo
    >>> case = credo.testing.Case(credo.MAP(num_steps=3))
    >>> case.data.size, case.posterior.num_draws
    (20, 1)
    """

    method: Method
    prior: Any = None

    @cached_property
    def data(self) -> Data:
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, 20)
        return Data(x, 10 + 3 * np.sin(2 * x) + 0.1 * rng.normal(size=20), standardise=True)

    @cached_property
    def net(self) -> MLP:
        return MLP([4], out=1, inputs=1)

    @cached_property
    def model(self) -> Model:
        return regression(self.net, prior=self.prior)

    @cached_property
    def posterior(self) -> Any:
        return self.fit()

    def fit(self, *, seed: int = SEED, **options: Any) -> Any:
        return fit(self.model, self.data, self.method, seed=seed, **options)


def check_method(method: Method, *, prior: Any = None) -> None:
    """Raise an AssertionError that says which part of the contract a method breaks.

    Arguments:
        method: with settings that finish at once.
        prior: of the weights, for a method that does not take any.

    >>> from credo import MAP
    >>> check_method(MAP(num_steps=5, batch_size=7))
    """
    case = Case(method, prior)
    for check in CHECKS:
        check(case)


def check_settings_are_values(case: Case) -> None:
    """Equal settings make equal methods, which can be hashed, printed and written as JSON.

    >>> import credo
    >>> credo.testing.check_settings_are_values(credo.testing.Case(credo.NUTS(num_samples=6)))
    """
    method = case.method
    twin = type(method)(**vars(method))
    _require(twin == method and hash(twin) == hash(method), "two methods of the same settings are not equal")
    _require(repr(method).startswith(f"{type(method).__name__}("), "its repr does not begin with its name")
    config = method.to_config()
    _require(json.loads(json.dumps(config)) == config, "to_config() changes on its way through JSON")
    _require(config["name"] == type(method).__name__, "to_config() has not the name of the class")


def check_draws_are_finite(case: Case) -> None:
    """`sample` gives draws in the shape of theta, all of them finite.

    >>> import credo
    >>> credo.testing.check_draws_are_finite(credo.testing.Case(credo.MAP(num_steps=3)))
    """
    template = case.posterior.model.template
    draws = case.posterior.sample(random.key(0), 3)
    _require(draws.keys() == template.keys(), f"draws have the names {list(draws)}, theta has {list(template)}")
    for name, leaf in draws.items():
        _require(leaf.shape == (3, *template[name].shape), f"three draws of {name} have the shape {leaf.shape}")
        _require(bool(np.isfinite(leaf).all()), f"a draw of {name} is not finite")


def check_predicts_in_the_users_units(case: Case) -> None:
    """Predictions are finite, noisy, and near the targets rather than near zero.

    >>> import credo
    >>> credo.testing.check_predicts_in_the_users_units(credo.testing.Case(credo.MAP(num_steps=3)))
    """
    prediction = case.posterior.predict(np.linspace(-2, 2, 5))
    _require(prediction.mean.shape == (5,), f"five rows are predicted with the shape {prediction.mean.shape}")
    _require(bool(np.isfinite(prediction.mean).all()), "a mean is not finite")
    _require(bool((prediction.aleatoric > 0).all()), "the noise of some row is not positive")
    # A few steps towards targets near 10 say little, but standardised units would be near 0.
    _require(bool(np.abs(prediction.mean - 10).max() < 10), "predictions are not in the units of the targets")


def check_seed_decides(case: Case) -> None:
    """The same seed gives the same bits, another seed other draws.

    >>> import credo
    >>> credo.testing.check_seed_decides(credo.testing.Case(credo.MAP(num_steps=3)))
    """
    _require(same_bits(case.fit(), case.posterior), "two fits with the same seed differ")
    ours, others = (one.sample(random.key(0), 2) for one in (case.posterior, case.fit(seed=SEED + 1)))
    _require(
        not any(np.array_equal(others[name], leaf) for name, leaf in ours.items()), "another seed gives the same draws"
    )


def check_chains_differ(case: Case) -> None:
    """No two chains draw the same.

    >>> import credo
    >>> credo.testing.check_chains_differ(credo.testing.Case(credo.SGLD(num_samples=3, num_warmup=3, num_chains=2)))
    """
    if isinstance(case.posterior, Draws) and case.posterior.num_chains > 1:
        same = [name for name, leaf in case.posterior.theta.items() if np.array_equal(leaf[0], leaf[1])]
        _require(not same, f"two chains have the same draws of {', '.join(same)}")


def check_network_is_untouched(case: Case) -> None:
    """The network that was passed in is the same afterwards, to the bit.

    >>> import credo
    >>> credo.testing.check_network_is_untouched(credo.testing.Case(credo.MAP(num_steps=3)))
    """
    before, _, after = _bits(case.net), case.fit(), _bits(case.net)
    _require(before == after, "fitting has changed the network that was passed in")


def check_saved_and_loaded(case: Case) -> None:
    """What was saved loads, and predicts the same bits.

    >>> import credo
    >>> credo.testing.check_saved_and_loaded(credo.testing.Case(credo.MAP(num_steps=3)))
    """
    x = np.linspace(-2, 2, 5)
    with tempfile.TemporaryDirectory() as folder:
        case.posterior.save(Path(folder) / "run")
        loaded: Any = load(Path(folder) / "run")
    _require(loaded.provenance == case.posterior.provenance, "the provenance changes on its way through a file")
    _require(same_bits(loaded, case.posterior), "arrays change on their way through a file")
    same = str(loaded.diagnostics) == str(case.posterior.diagnostics)
    _require(same, "diagnostics change on their way through a file")
    ours, theirs = case.posterior.predict(x), loaded.predict(x)
    same = ours.mean.tobytes() == theirs.mean.tobytes() and ours.variance.tobytes() == theirs.variance.tobytes()
    _require(same, "a posterior that was loaded predicts other bits")


def check_checkpoints(case: Case) -> None:
    """A fit that is written down as it goes gives the same bits, and so does what its folder holds.

    >>> import credo
    >>> credo.testing.check_checkpoints(credo.testing.Case(credo.MAP(num_steps=3)))
    """
    with tempfile.TemporaryDirectory() as folder:
        written = case.fit(checkpoint=folder)
        again = case.fit(checkpoint=folder, resume=True)
    _require(same_bits(written, case.posterior), "a fit with checkpoints gives other bits")
    _require(same_bits(again, case.posterior), "a fit that has ended is not what its folder holds")


def check_memory(case: Case) -> None:
    """`describe` knows the parameters, and at least the memory that the posterior takes.

    >>> import credo
    >>> credo.testing.check_memory(credo.testing.Case(credo.MAP(num_steps=3)))
    """
    needs = case.method.describe(case.model, case.data)
    num = case.posterior.model.num_parameters
    _require(needs.num_parameters == num, f"describe() tells {needs.num_parameters} parameters, and there are {num}")
    enough = needs.num_bytes >= case.posterior.num_bytes
    _require(enough, f"describe() tells {needs.num_bytes} bytes, and the posterior takes {case.posterior.num_bytes}")


def check_diagnostics(case: Case) -> None:
    """Diagnostics print, and end with their verdict.

    >>> import credo
    >>> credo.testing.check_diagnostics(credo.testing.Case(credo.MAP(num_steps=3)))
    """
    found = case.posterior.diagnostics
    _require(str(found).endswith(found.verdict), "diagnostics do not end with their verdict")


CHECKS: tuple[Callable[[Case], None], ...] = (
    check_settings_are_values,
    check_draws_are_finite,
    check_predicts_in_the_users_units,
    check_seed_decides,
    check_chains_differ,
    check_network_is_untouched,
    check_saved_and_loaded,
    check_checkpoints,
    check_memory,
    check_diagnostics,
)


def same_bits(one: Any, other: Any) -> bool:
    """Whether two posteriors consist of the same arrays, to the bit.

    >>> import credo
    >>> case = credo.testing.Case(credo.MAP(num_steps=3))
    >>> credo.testing.same_bits(case.posterior, case.fit(seed=0))  # another seed
    False
    """
    ours, theirs = pack(one)[1], pack(other)[1]
    return ours.keys() == theirs.keys() and all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)


def _bits(net: MLP) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(nnx.state(net))]


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
