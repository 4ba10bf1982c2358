"""A generator of weights, trained against a critic: adversarial distillation of a posterior.

The critic D finds how draws of theta and G(z) differ, with slopes of about one; the generator makes it find less:

    max_D  E[D(theta)] − E[D(G(z))] − λ E[(‖∇D(θ̂)‖ − 1)²],        min_G  −E[D(G(z))],

θ̂ on the line between a draw and a generated one. The first two terms are then the Wasserstein distance. The draws are
the data and the engine's rows: `Adversarial` is run like any method.

Reference: Wang et al., Adversarial distillation of Bayesian neural network posteriors, 2018; Gulrajani et al., Improved
training of Wasserstein GANs, 2017.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo import random
from credo.inference.engine import driver
from credo.inference.method import Method
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.models.program import Model
from credo.posterior import Draws, Generator
from credo.posterior.generator import generate
from credo.typing import Array, Batch, Key, Theta, Tree

# Gulrajani et al.: λ, and steps of the critic for each of the generator.
PENALTY, CRITIC_STEPS = 10.0, 5
CRITIC_UNITS = 128
# The noise of a weight begins with what the directions leave of its sd, and at least with this part of it.
LEAST_NOISE = 0.05
# The sd of a unit of the untrained generator, tanh(tanh(z)) for z of about the sd one.
UNIT_SD = 0.5


class AdversarialState(NamedTuple):
    """The generator and the critic, and the states of their optimisers."""

    generator: Theta
    critic: Theta
    generator_optimizer: Tree
    critic_optimizer: Tree


class AdversarialInfo(NamedTuple):
    """The engine watches `log_joint`, which here is minus the Wasserstein distance, what the generator climbs."""

    log_joint: Array


@dataclass(frozen=True)
class Adversarial(Method):
    """A Wasserstein GAN with gradient penalty over draws of theta, which are the rows of the data.

    Arguments:
        num_steps: of the generator.
        batch_size: draws, and generated ones, that a step compares.
    """

    num_steps: int = 1000
    batch_size: int = 64
    learning_rate: float = 1e-3

    def plan(self) -> Plan:
        return Plan(num_records=self.num_steps, batch_size=self.batch_size, independent_batches=True)

    def optimizer(self) -> optax.GradientTransformation:
        """Adam without momentum to speak of, at a rate that falls to nothing."""
        rate = optax.cosine_decay_schedule(self.learning_rate, self.num_steps * CRITIC_STEPS)
        return optax.adam(rate, b1=0.5, b2=0.9)

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> AdversarialState:
        critic = first_critic(key, data.x.shape[1])
        return AdversarialState(theta, critic, self.optimizer().init(theta), self.optimizer().init(critic))

    def step(
        self, key: Key, model: Model, state: AdversarialState, batch: Batch
    ) -> tuple[AdversarialState, AdversarialInfo]:
        *critic_keys, generator_key = jax.random.split(key, CRITIC_STEPS + 1)

        def sharpen(carry: tuple[Theta, Tree], key: Key) -> tuple[tuple[Theta, Tree], Array]:
            fakes = _fakes(state.generator, key, self.batch_size)
            distance, gradient = jax.value_and_grad(_objective)(carry[0], key, batch.x, fakes)
            return self._descended(jax.tree.map(jnp.negative, gradient), *carry), distance

        first = (state.critic, state.critic_optimizer)
        (critic, critic_optimizer), distances = jax.lax.scan(sharpen, first, jnp.stack(critic_keys))

        def found_out(generator: Theta) -> Array:
            return -jnp.mean(criticised(critic, _fakes(generator, generator_key, self.batch_size)))

        gradient = jax.grad(found_out)(state.generator)
        generator, optimizer = self._descended(gradient, state.generator, state.generator_optimizer)
        moved = AdversarialState(generator, critic, optimizer, critic_optimizer)
        return moved, AdversarialInfo(-distances[-1])

    def _descended(self, gradient: Theta, values: Theta, optimizer: Tree) -> tuple[Theta, Tree]:
        updates, optimizer = self.optimizer().update(gradient, optimizer, values)
        return optax.apply_updates(values, updates), optimizer

    def status_line(self, infos: Any) -> str:
        return f"distance {-float(infos.log_joint[-1]):.3g}"

    def posterior(self, model: Model, outcome: Outcome) -> Generator:
        """The generator, which still generates weights in sds of the draws."""
        trace = {"distance": -np.asarray(outcome.infos.log_joint)}
        return Generator(model, outcome.state.generator, outcome.provenance(self.to_config()), trace)


def generator(draws: Draws, num_hidden: int, *, seed: int, num_steps: int = Adversarial.num_steps) -> Generator:
    """A generator of theta, trained against the draws.

    Arguments:
        num_hidden: its units; it takes about 4 · n · (num_hidden + 2) bytes for n weights.
        num_steps: of training.
    """
    theta, weights = draws.weighted_draws(0)
    rows = (
        np.random.default_rng(seed).choice(len(weights), len(weights), p=weights) if draws.weights is not None else ...
    )
    flat = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in theta.values()], axis=1)[rows]
    mean, sd = flat.mean(axis=0), flat.std(axis=0) + np.finfo(np.float32).tiny
    data = Batch(jnp.asarray((flat - mean) / sd), jnp.zeros(len(flat)), len(flat))
    method = Adversarial(num_steps=num_steps)
    # The method starts from a generator, as others do from theta.
    start = {name: leaf[None] for name, leaf in first_generator((flat - mean) / sd, num_hidden, seed).items()}
    found = method.posterior(draws.model, driver.run(method, draws.model, data, seed=seed, starts=start))
    layers = found.layers | {
        "outer": found.layers["outer"] * sd,
        "centre": mean + sd * found.layers["centre"],
        "log_scale": found.layers["log_scale"] + np.log(sd),
    }
    layers = {name: leaf.astype(np.float32) for name, leaf in layers.items()}
    return Generator(draws.model, layers, draws.provenance, None, draws.scaling, draws.probes)


def first_generator(draws: np.ndarray, num_hidden: int, seed: int) -> Theta:
    """A generator along the principal directions of centred draws, (draws, n), one unit for each."""
    rank = min(num_hidden, *draws.shape)
    _, lengths, directions = np.linalg.svd(draws, full_matrices=False)
    along = directions[:rank] * lengths[:rank, None] / np.sqrt(len(draws))
    rest = np.mean(draws**2, axis=0) - np.sum(along**2, axis=0)
    mixing = np.random.default_rng(seed).standard_normal((num_hidden, num_hidden))
    layers = {
        "inner": np.eye(num_hidden),
        "inner_bias": np.zeros(num_hidden),
        "middle": np.eye(num_hidden) + LEAST_NOISE * mixing,
        "middle_bias": np.zeros(num_hidden),
        "outer": np.pad(along / UNIT_SD, ((0, num_hidden - rank), (0, 0))),
        "centre": np.zeros(draws.shape[1]),
        "log_scale": np.log(np.maximum(rest, LEAST_NOISE**2)) / 2,
    }
    return {name: leaf.astype(np.float32) for name, leaf in layers.items()}


def first_critic(key: Key, num_inputs: int) -> Theta:
    """A network of two layers with random weights."""
    keys = jax.random.split(key, 3)
    shapes = {"first": (num_inputs, CRITIC_UNITS), "second": (CRITIC_UNITS, CRITIC_UNITS), "last": (CRITIC_UNITS, 1)}
    kernels = {
        name: random.normal(own, shape) * np.sqrt(2 / shape[0])
        for own, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return kernels | {"first_bias": jnp.zeros(CRITIC_UNITS), "second_bias": jnp.zeros(CRITIC_UNITS)}


def criticised(critic: Theta, theta: Array) -> Array:
    """D(theta), (…,) of theta (…, n)."""
    hidden = jax.nn.leaky_relu(theta @ critic["first"] + critic["first_bias"])
    return (jax.nn.leaky_relu(hidden @ critic["second"] + critic["second_bias"]) @ critic["last"])[..., 0]


def _fakes(generator: Theta, key: Key, num: int) -> Array:
    return jax.vmap(lambda own: generate(generator, own))(jax.random.split(key, num))


def _objective(critic: Theta, key: Key, draws: Array, fakes: Array) -> Array:
    """The distance that the critic sees, less the penalty for slopes other than one."""
    share = jax.random.uniform(jax.random.fold_in(key, 1), (len(fakes), 1))
    between = share * draws + (1 - share) * fakes
    slopes = jax.vmap(jax.grad(criticised, argnums=1), in_axes=(None, 0))(critic, between)
    lengths = jnp.sqrt(jnp.sum(slopes**2, axis=1) + 1e-12)
    distance = jnp.mean(criticised(critic, draws)) - jnp.mean(criticised(critic, fakes))
    return distance - PENALTY * jnp.mean((lengths - 1) ** 2)
