"""Laplace and dropout: what a posterior of a trained network costs, beside a pass over the data and laplace-torch.

    python -m benchmarks laplace

Fits are of an untrained network, since their cost does not depend on its weights. Times are of the second call; the
first one compiles, and is shown apart. The sides take turns, and the best of several rounds counts. laplace-torch has
its fastest backend; it needs an environment of its own, which `make bench` makes; CREDO_PEERS names the interpreter of
another.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from benchmarks import peers
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of
from credo import random
from credo.inference.laplace import row_sums
from credo.inference.laplace.curvature import curvature_of
from credo.inference.laplace.evidence import prior_precision
from credo.inference.laplace.laplace import Laplace
from credo.inference.laplace.row_sums import Problem
from credo.posterior.linearised import Linearisation, output_moments

NUM_ROWS, NUM_NEW, NUM_DEFAULT_ROWS = 10_000, 256, 1_024
# What is fitted, by the names that the peer's program has too.
FITS = {
    "kronecker": Laplace("kronecker", prediction="probit"),
    "diagonal": Laplace("diagonal", prediction="probit"),
    "last layer, kronecker": Laplace("kronecker", "last_layer", prediction="probit"),
    "last layer, full": Laplace("full", "last_layer", prediction="probit"),
    "last layer, diagonal": Laplace("diagonal", "last_layer", prediction="probit"),
}


def main() -> None:
    """All tables."""
    with_peer = peers.interpreter() is not None
    theirs = peers.measure("laplace_torch_times.py") if with_peer else None
    if theirs is None:
        console.print("laplace-torch was left out: `make bench` makes its environment, .venv-peers.")
    fits(theirs)
    predictions(theirs)
    last_layer()
    memory()


def fits(theirs: Any) -> None:
    """Curvature and root over all rows."""
    table = new_table(
        f"64-256-256-10, {NUM_ROWS:,} rows: fit",
        "what",
        "credo",
        "first call",
        "laplace-torch",
        "backend",
        "ratio",
        "asked",
    )
    jobs = {name: _fit(method, _classifier(), *_images()) for name, method in FITS.items()}
    jobs["full, 8-50-1"] = _fit(Laplace("full"), _regression(), *_table())
    few = tuple(part[:NUM_DEFAULT_ROWS] for part in _images())
    jobs["default diagonal"] = _fit(FITS["diagonal"], _classifier(), *few)
    for name, job in jobs.items():
        first = _seconds(job)
        ours = best_of(3, {name: job})[name]
        backend, other = _fastest(theirs, name)
        ratio = "" if other is None else f"{other / ours:.1f} ×"
        asked = "≥ 20 ×" if name == "default diagonal" else "≥ 1 ×"
        shown = "" if other is None else f"{other:.2f} s"
        table.add_row(name, f"{ours:.3f} s", f"{first:.1f} s", shown, backend, ratio, asked)
    console.print(table)


def predictions(theirs: Any) -> None:
    """The linearised network with the probit formula, and dropout by draws."""
    table = new_table(
        f"64-256-256-10: prediction of {NUM_NEW} rows", "what", "credo", "laplace-torch", "ratio", "asked"
    )
    x, y = _images()
    for name, method in FITS.items():
        posterior = method.from_trained(_classifier(), (x, y))
        ours = best_of(3, {name: lambda posterior=posterior: posterior.predict(x[:NUM_NEW]).probs})[name]
        _compared(table, name, ours, None if theirs is None else theirs["predict"][name], "≥ 5 ×")
    console.print(table)
    table = new_table(
        f"64-256-256-10: dropout, 100 draws, {NUM_ROWS:,} rows", "what", "credo", "torch", "ratio", "asked"
    )
    dropout = credo.fit(_classifier(), (x, y), credo.MCDropout(num_steps=10, batch_size=128), progress=False)
    ours = best_of(3, {"dropout": lambda: dropout.predict(x, num_draws=100).probs})["dropout"]
    _compared(table, "MC dropout", ours, None if theirs is None else theirs["dropout"], "≥ 1 ×")
    console.print(table)


def last_layer() -> None:
    """The last layer of a large network beside one pass of the network over the data."""
    model = credo.models.classification(credo.networks.MLP([400, 400], 10, activation="relu"))
    rng = np.random.default_rng(0)
    data = rng.normal(size=(NUM_ROWS, 784)).astype(np.float32), rng.integers(0, 10, NUM_ROWS)
    bound = model.bind(data)
    theta, batch = _theta(bound), credo.Data(*data).batch()
    table = new_table(f"784-400-400-10, {NUM_ROWS:,} rows", "what", "time", "ratio", "asked")
    jobs: dict[str, Callable[[], Any]] = {
        "one pass": partial(_pass, bound, theta, batch),
        "last layer, kronecker": _fit(FITS["last layer, kronecker"], model, *data),
    }
    times = best_of(5, jobs)
    for name, value in times.items():
        asked = "" if name == "one pass" else "≤ 1.5 ×"
        table.add_row(name, f"{value:.3f} s", f"{value / times['one pass']:.2f} ×", asked)
    console.print(table)


def memory() -> None:
    """What the compiled programs hold beside their arguments."""
    x, y = _images()
    bound = _classifier().bind((x, y))
    theta, batch = _theta(bound), credo.Data(x, y).batch()
    parameters = 4 * bound.num_parameters
    table = new_table(f"64-256-256-10, {bound.num_parameters:,} weights: memory", "what", "bytes", "× the parameters")
    problem = Problem.of(bound, theta, tuple(theta), "ggn")
    programs = {
        "fit, diagonal": row_sums.diagonal.lower(problem, theta, batch),
        "fit, kronecker": row_sums.kronecker.lower(problem, theta, batch),
    }
    for structure in ("diagonal", "kronecker"):
        root = curvature_of(problem, theta, batch, structure).root(prior_precision(bound, theta, problem.names))
        linear = Linearisation.of(bound, theta, root)
        programs[f"predict {NUM_NEW} rows, {structure}"] = output_moments.lower(linear, theta, root, x[:NUM_NEW])
    for name, program in programs.items():
        found = program.compile().memory_analysis()
        total = found.temp_size_in_bytes + found.output_size_in_bytes
        table.add_row(name, f"{total / 1e6:.1f} MB", f"{total / parameters:.1f}")
    console.print(table)


# -- the sides --------------------------------------------------------------------------------------------------


def _fit(method: Laplace, model: credo.Model, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """Curvature and root, as `from_trained` makes them; without the evidence, which the peer leaves for later."""
    bound = model.bind((x, y))
    theta, batch = _theta(bound), credo.Data(x, y).batch()
    names = method.names(bound, theta)
    problem = Problem.of(bound, theta, names, method.curvature)
    precision = prior_precision(bound, theta, names)
    root = jax.jit(lambda curvature, precision: curvature.root(precision))
    return lambda: root(curvature_of(problem, theta, batch, method.structure), precision)


@partial(jax.jit, static_argnums=0)
def _pass(model: credo.Model, theta: Any, batch: Any) -> Any:
    """The log likelihood in blocks of rows, as the fit sees them."""
    blocks = [part.reshape(10, -1, *part.shape[1:]) for part in (batch.x, batch.y)]

    def add(total: Any, block: Any) -> Any:
        return total + jnp.sum(model.predictive(theta, block[0]).log_prob(block[1])), None

    return jax.lax.scan(add, jnp.zeros(()), blocks)[0]


def _theta(model: credo.Model) -> Any:
    return jax.jit(model.initial_theta)(random.key(0))


def _images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(NUM_ROWS, 64)).astype(np.float32), rng.integers(0, 10, NUM_ROWS)


def _table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(1_000, 8)).astype(np.float32), rng.normal(size=1_000).astype(np.float32)


def _classifier() -> credo.Model:
    return credo.models.classification(credo.networks.MLP([256, 256], 10, activation="relu"))


def _regression() -> credo.Model:
    return credo.models.regression(credo.networks.MLP([50], 1), noise=1.0)


def _fastest(theirs: Any, name: str) -> tuple[str, float | None]:
    if theirs is None:
        return "", None
    if name == "default diagonal":
        return "curvlinops", theirs["default diagonal"]
    times = theirs["fit"][name]
    backend = min(times, key=times.get)
    return backend, times[backend]


def _compared(table: Any, name: str, ours: float, other: float | None, asked: str) -> None:
    shown, ratio = ("", "") if other is None else (f"{other:.2f} s", f"{other / ours:.1f} ×")
    table.add_row(name, f"{ours:.3f} s", shown, ratio, asked)


def _seconds(job: Callable[[], Any]) -> float:
    began = time.perf_counter()
    jax.block_until_ready(job())
    return time.perf_counter() - began
