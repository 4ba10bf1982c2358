"""Normal numbers: credo's generator and its inverse of the distribution function, beside those of JAX.

    python -m benchmarks noise

As many as a network of 784-400-400-10 has weights, drawn in one array, in an array for each leaf, and added to each
leaf in a compiled loop, as stochastic weights are; then in the steps of SGLD. The sides take turns and the best of
several rounds counts. Then the rows of minibatches, and what credo relies on, asked of each generator.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of, seconds
from benchmarks.vi import BATCH_SIZE, MLP
from credo import random
from credo.inference.engine import driver as engine
from credo.inference.engine.minibatch import permute

# Keys by generator, and normal numbers by the inverse of their distribution function.
GENERATORS: dict[str, Callable[[int], Any]] = {
    "credo's hash": random.key,
    "threefry2x32": partial(jax.random.key, impl="threefry2x32"),
    "rbg": partial(jax.random.key, impl="rbg"),
    "unsafe_rbg": partial(jax.random.key, impl="unsafe_rbg"),
}
INVERSES = {"credo's": random.normal, "JAX's": jax.random.normal}
PAIRS = tuple(product(GENERATORS, INVERSES))
LAYERS = ((784, 400), (400, 400), (400, 10))
NUM_REPEATS, NUM_ROUNDS, NUM_COMPILED = 10, 8, 2
NUM_ROWS = (1_000, 60_000, 1_000_000)
# Of the steps of SGLD, one in so many is kept.
THIN = 20

Normal = Callable[[Any, tuple[int, ...]], Any]


def main() -> None:
    """All tables."""
    numbers()
    langevin_steps()
    minibatches()
    properties()


def numbers() -> None:
    """Every generator with either inverse, and what the program of the leaves takes to compile."""
    num = sum(_size(shape) for shape in _shapes())
    columns = ("one array", "an array per leaf", "added in a loop", "beside credo's", "compiling")
    table = new_table(f"{num:,} normal numbers", "what", *columns)
    pairs = {f"{generator}, {inverse} inverse": (generator, inverse) for generator, inverse in PAIRS}
    uses = {"one array": (_flat, 1), "an array per leaf": (_leaves, 1), "added in a loop": (_added, NUM_REPEATS)}
    times = {}
    for use, (function, repeats) in uses.items():
        sides = {
            name: partial(jax.jit(partial(function, INVERSES[inverse])), GENERATORS[generator](0))
            for name, (generator, inverse) in pairs.items()
        }
        times[use] = {name: time / repeats for name, time in best_of(NUM_ROUNDS, sides).items()}
    in_loop = times["added in a loop"]
    for name, (generator, inverse) in pairs.items():
        figures = (f"{times[use][name] * 1e3:.2f} ms" for use in uses)
        ratio = in_loop[name] / next(iter(in_loop.values()))
        compiling = _compiling(partial(_leaves, INVERSES[inverse]), GENERATORS[generator](0))
        table.add_row(name, *figures, f"{ratio:.2f}", f"{compiling:.2f} s")
    console.print(table)


def langevin_steps() -> None:
    """A step of SGLD with keys of each generator; the inverse is credo's."""
    table = new_table(f"{MLP.label}, batch {BATCH_SIZE}: a step of SGLD", "what", "per step", "beside credo's")
    times = MLP.per_step({name: _sgld_chunk(key(0)) for name, key in GENERATORS.items()})
    for name, time in times.items():
        table.add_row(name, f"{time * 1e3:.2f} ms", f"{time / next(iter(times.values())):.2f}")
    console.print(table)


def minibatches() -> None:
    """Row numbers of one batch of an epoch: a permutation at the places of the batch, beside one of all rows."""
    columns = ("credo's permute", "jax.random.permutation", "ratio")
    table = new_table(f"Row numbers of a batch of {BATCH_SIZE}", "rows", *columns)
    places = jnp.arange(BATCH_SIZE)
    for num_rows in NUM_ROWS:
        sides = {
            "credo": jax.jit(partial(permute, positions=places, num=num_rows)),
            "JAX": jax.jit(lambda key, num_rows=num_rows: jax.random.permutation(key, num_rows)[:BATCH_SIZE]),
        }
        ours, theirs = best_of(
            NUM_ROUNDS, {name: partial(side, random.key(0)) for name, side in sides.items()}
        ).values()
        table.add_row(f"{num_rows:,}", f"{ours * 1e6:.0f} µs", f"{theirs * 1e6:.0f} µs", f"{theirs / ours:.1f}")
    console.print(table)


def properties() -> None:
    """What a run relies on whose draws are the same bits for any number of cores, of chains and of steps at a time."""
    table = new_table("Properties", "what", *GENERATORS)
    for question, holds in PROPERTIES.items():
        table.add_row(question, *("yes" if holds(key(0)) else "no" for key in GENERATORS.values()))
    console.print(table)


# -- pieces ------------------------------------------------------------------------------------------------


def _shapes() -> list[tuple[int, ...]]:
    return [shape for layer in LAYERS for shape in (layer, layer[1:])]


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _flat(normal: Normal, key: Any) -> Any:
    return normal(key, (sum(map(_size, _shapes())),))


def _leaves(normal: Normal, key: Any) -> list[Any]:
    shapes = _shapes()
    return [normal(own, shape) for own, shape in zip(jax.random.split(key, len(shapes)), shapes, strict=True)]


def _added(normal: Normal, key: Any) -> list[Any]:
    def step(number: Any, theta: list[Any]) -> list[Any]:
        noise = _leaves(normal, jax.random.fold_in(key, number))
        return [leaf + 1e-3 * own for leaf, own in zip(theta, noise, strict=True)]

    return jax.lax.fori_loop(0, NUM_REPEATS, step, [jnp.zeros(shape) for shape in _shapes()])


def _compiling(function: Callable[..., Any], key: Any) -> float:
    # A function of its own each time: JAX remembers those that it has seen.
    return min(seconds(lambda: jax.jit(lambda key: function(key)).lower(key).compile()) for _ in range(NUM_COMPILED))


def _sgld_chunk(key: Any) -> Callable[[], Any]:
    """A compiled chunk of steps in the engine, whose keys come from this one."""
    method = credo.SGLD(batch_size=BATCH_SIZE)
    driver = engine.Driver(method, MLP.model, method.plan(), MLP.num_steps)
    chain = driver.start(0, 0, None, credo.Data(*MLP.arrays).batch(), None)
    chain.key = key
    driver.compile([chain])
    return lambda: driver.chunk(chain, num_records=MLP.num_steps // THIN, thin=THIN)


def _draw(key: Any, num: int = 8) -> Any:
    return jax.random.bits(key, (num,))


def _same_alone(key: Any) -> bool:
    keys = jax.random.split(key, 4)
    return np.array_equal(jax.vmap(_draw)(keys), np.stack([_draw(own) for own in keys]))


def _same_in_smaller_batch(key: Any) -> bool:
    keys = jax.random.split(key, 4)
    return np.array_equal(jax.vmap(_draw)(keys[2:]), jax.vmap(_draw)(keys)[2:])


def _equal_for_equal_keys(key: Any) -> bool:
    first, second = jax.vmap(_draw)(jnp.stack([key, key]))
    return np.array_equal(first, second)


def _starts_alike(key: Any) -> bool:
    return np.array_equal(_draw(key, 8), _draw(key, 1_000)[:8])


def _folds_apart(key: Any) -> bool:
    """Folding in a number twice must not lead back, and the order of two numbers must matter."""
    fold = jax.random.fold_in
    twice, there, back = fold(fold(key, 1), 1), fold(fold(key, 1), 2), fold(fold(key, 2), 1)
    return not any(np.array_equal(*map(jax.random.key_data, pair)) for pair in ((twice, key), (there, back)))


PROPERTIES: dict[str, Callable[[Any], bool]] = {
    "a key's numbers are the same in a batch of keys and alone": _same_alone,
    "they are the same in batches of any size": _same_in_smaller_batch,
    "equal keys give equal numbers in a batch": _equal_for_equal_keys,
    "a long array begins with the numbers of a short one": _starts_alike,
    "folds of numbers into a key are all different": _folds_apart,
}


if __name__ == "__main__":
    main()
