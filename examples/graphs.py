"""Every graphical model of the paper: a NumPyro program of a few lines, and its belief network drawn from it.

    python examples/graphs.py --out docs

writes the page `graphs.md` and its pictures, `images/graphs/*.svg`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import typer

import credo
from credo.models.graph import Graph, Node, graph_of

WEIGHTS = dist.Normal(jnp.zeros(3), 1.0).to_event(1)


def network(θ, x):
    """Stands for any network."""
    return jnp.tanh(jnp.sum(θ * x, axis=-1))


def labelled(y):
    """Which rows have a label."""
    return True if y is None else jnp.isfinite(y)


def stochastic_weights(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def stochastic_activations(x, y=None):
    model = credo.models.activations([3, 3], out=1, noise=0.1)
    model.program(x, y)


def learned_prior(x, y=None):
    ξ = numpyro.param("ξ", 1.0, constraint=dist.constraints.positive)
    θ = numpyro.sample("θ", dist.Normal(jnp.zeros(3), ξ).to_event(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def consistency_condition(x, y=None, *, u):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("u", len(u)):
        step = network(θ, u + 0.1) - network(θ, u)
        numpyro.factor("C", -jax.nn.relu(-step) / len(u))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def noisy_labels(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(θ, x), 0.1))
        numpyro.sample("y", dist.Normal(t, 0.5), obs=y)


def noise_completely_at_random(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(θ, x), 0.1))
        σ = numpyro.sample("σ", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(t, σ), obs=y)


def noise_at_random(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(θ, x), 0.1))
        σ = numpyro.sample("σ", dist.LogNormal(t, 0.5))
        numpyro.sample("y", dist.Normal(t, σ), obs=y)


def noise_not_at_random(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(θ, x), 0.1))
        σ = numpyro.sample("σ", dist.LogNormal(t + x[:, 0], 0.5))
        numpyro.sample("y", dist.Normal(t, σ), obs=y)


def semi_supervised(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)), numpyro.handlers.mask(mask=labelled(y)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def data_augmentation(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        augmented = numpyro.sample("x′", dist.Normal(x, 0.1).to_event(1))
        numpyro.sample("y", dist.Normal(network(θ, augmented), 0.1), obs=y)


def meta_learning(x, y=None):
    ξ = numpyro.sample("ξ", WEIGHTS)
    with numpyro.plate("task", 5, dim=-1):
        θ = numpyro.sample("θ", dist.Normal(ξ, 0.3).to_event(1))
        with numpyro.plate("data", len(x), dim=-2):
            numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def transfer_learning(x, y=None):
    ξ = numpyro.param("ξ", jnp.array([0.7, -0.2, 1.1]))
    σ = numpyro.param("σ", 0.3, constraint=dist.constraints.positive)
    selected = jnp.array([1.0, 1.0, 0.0]) * ξ
    θ = numpyro.sample("θ", dist.Normal(selected, σ).to_event(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def self_supervised(x, y=None):
    θ_s = numpyro.sample("θₛ", WEIGHTS)
    θ_p = numpyro.sample("θₚ", WEIGHTS)
    θ_t = numpyro.sample("θₜ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        l = numpyro.deterministic("l", jnp.tanh(θ_s * x))  # noqa: E741
        numpyro.sample("yₚ", dist.Normal(network(θ_p, l), 0.1), obs=x[:, 0])
        with numpyro.handlers.mask(mask=labelled(y)):
            numpyro.sample("y", dist.Normal(network(θ_t, l), 0.1), obs=y)
