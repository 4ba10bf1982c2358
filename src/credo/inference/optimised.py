"""What all methods share that climb an objective step by step, and the optimiser's scaffold."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

from credo._checks import require_at_least
from credo._text import nearest
from credo.inference.method import Method, require_start
from credo.inference.plan import Plan
from credo.inference.settling import Schedule, Settling
from credo.typing import Tree

LearningRate = float | Settling | Schedule
RATE = Settling(1e-2)
# The ELBO in the progress bar, and the one that early stopping looks at, is an average over so many steps.
SMOOTHING_STEPS = 100
# The optimisers of optax that need a learning rate and nothing else. Not everything in it is one.
OPTIMIZERS = (
    *("adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "adan", "amsgrad"),
    *("fromage", "lamb", "lars", "lbfgs", "lion", "nadam", "nadamw", "noisy_sgd", "novograd", "optimistic_adam"),
    *("optimistic_adam_v2", "optimistic_gradient_descent", "polyak_sgd", "radam", "rmsprop", "rprop", "sgd"),
    *("sign_sgd", "signum", "sm3", "yogi"),
)


@dataclass(frozen=True)
class Optimised(Method):
    """A climb of an objective, on minibatches.

    Arguments:
        num_steps: gradient steps.
        learning_rate: a `schedules.Settling`, which falls to zero over the last half of the steps, however many; a
            number, which stays; or an optax schedule. The objective is per data point, so that a rate suits data sets
            of any size.
        batch_size: rows per step; None takes all of them.
        start: "network" for the network's own values, "prior" for a draw, or a method to run first.
    """

    num_steps: int = 5000
    learning_rate: LearningRate = RATE
    batch_size: int | None = None
    start: str | Method = "network"

    def __post_init__(self) -> None:
        require_at_least(1, num_steps=self.num_steps)
        if self.batch_size is not None:
            require_at_least(1, batch_size=self.batch_size)
        require_start(self.start)

    @property
    def schedule(self) -> float | Schedule:
        """The learning rate of a run of `num_steps`."""
        return rate_over(self.learning_rate, self.num_steps)

    def plan(self) -> Plan:
        return Plan(num_records=self.num_steps, batch_size=self.batch_size, start=self.start, lockstep=True)


@dataclass(frozen=True)
class Ascent(Optimised):
    """A climb by any optimiser of optax.

    Arguments:
        optimizer: the name of an optax optimiser ("adam", "sgd", "adamw", …), or any optax transformation (then the
            learning rate is its own business).
    """

    optimizer: str | optax.GradientTransformation = "adam"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.transformation()

    def transformation(self) -> optax.GradientTransformation:
        """The optax optimiser that the name and the learning rate stand for."""
        return named_optimizer(self.optimizer, self.schedule)

    def climb(self, gradient: Tree, optimizer: Tree, phi: Tree, **more: Any) -> tuple[Tree, Tree]:
        """phi one step uphill, and the state of the optimiser."""
        return climbed(self.transformation(), gradient, optimizer, phi, **more)


def climbed(
    transformation: optax.GradientTransformation, gradient: Tree, optimizer: Tree, phi: Tree, **more: Any
) -> tuple[Tree, Tree]:
    """phi one step uphill, and the state of the optimiser, which itself descends."""
    downhill = jax.tree.map(jnp.negative, gradient)
    extra = {"grad": downhill, **more} if more else {}
    updates, optimizer = optax.with_extra_args_support(transformation).update(downhill, optimizer, phi, **extra)
    return optax.apply_updates(phi, updates), optimizer


def rate_over(learning_rate: LearningRate, num_steps: int) -> float | Schedule:
    """A learning rate in a run of so many steps: a number, or a function of the number of the step."""
    return learning_rate.over(num_steps) if isinstance(learning_rate, Settling) else learning_rate


def named_optimizer(optimizer: str | optax.GradientTransformation, learning_rate: float | Schedule) -> Any:
    """The optax optimiser that a name and a learning rate stand for; or the optimiser itself."""
    if not isinstance(optimizer, str):
        return optimizer
    if optimizer not in OPTIMIZERS:
        hint = nearest(optimizer, OPTIMIZERS) or f"; known are {', '.join(OPTIMIZERS)}"
        raise ValueError(f"optimizer: optax has no {optimizer!r}{hint}")
    return getattr(optax, optimizer)(learning_rate)
