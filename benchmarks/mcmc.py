"""NUTS and prediction, against bare compiled code, against blackjax and against NumPyro.

    python -m benchmarks mcmc

Each table is one run; the sides take turns and the best of several rounds counts. Whole runs start a new process per
run, so that they include compilation; imports and data are not counted.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from benchmarks import blackjax_runs, independent_normals
from benchmarks.printing import console, new_table
from benchmarks.problems import LARGE, MEDIUM, SMALL, Problem
from benchmarks.side_by_side import beside, whole_run
from benchmarks.timing import best_of, seconds
from credo import random
from credo.inference.engine import driver as engine
from credo.posterior import Provenance

# Chunks of trajectories: (problem, doublings, trajectories, the most that a leapfrog may cost in bare gradients).
LEAPFROGS = ((SMALL, 8, 40, 1.3), (MEDIUM, 6, 8, 1.15), (LARGE, 4, 4, 1.15))
NUM_ROUNDS = 8
# Whole runs: (problem, warm-up and draws per chain, doublings at most). The same for both sides.
WHOLE_RUNS = ((SMALL, 300, 10), (MEDIUM, 100, 7), (LARGE, 40, 5))
# Of the run that standard deviations are compared with: none of the seeds that are compared.
REFERENCE_SEED = 100


def main() -> None:
    """All tables."""
    leapfrogs()
    chains()
    prediction()
    scaling()
    whole_runs()
    independent_normals.main()
    beside_blackjax()


def leapfrogs() -> None:
    """Time per leapfrog of NUTS inside the engine, against a bare scan of the hand-written gradient and blackjax."""
    columns = ("bare gradient", "credo NUTS", "ratio", "asked", "blackjax", "its own keys", "blackjax / credo")
    table = new_table("NUTS, time per leapfrog (one chain)", "problem", *columns)
    for problem, depth, num_records, asked in LEAPFROGS:
        num_steps = num_records * 2**depth
        gradient = jax.value_and_grad(problem.hand_written())
        trajectories = {
            "credo": nuts_chunk(problem, depth, num_records),
            "blackjax": blackjax_runs.nuts_chunk(problem, depth, num_records),
            "threefry": blackjax_runs.nuts_chunk(problem, depth, num_records, generator=jax.random.key),
        }
        num_leapfrogs = {side: run() for side, run in trajectories.items()}

        def bare(
            gradient: Callable[..., Any] = gradient, num_steps: int = num_steps, problem: Problem = problem
        ) -> Any:
            return bare_scan(gradient, num_steps, problem.start())

        times = best_of(NUM_ROUNDS, {"bare": bare, **trajectories})
        per_bare = times["bare"] / num_steps
        per_leapfrog = {side: times[side] / num for side, num in num_leapfrogs.items()}
        ours, theirs, with_own_keys = per_leapfrog.values()
        table.add_row(
            problem.name, f"{per_bare * 1e6:.1f} µs", f"{ours * 1e6:.1f} µs", f"{ours / per_bare:.2f}", f"≤ {asked}",
            f"{theirs * 1e6:.1f} µs", f"{with_own_keys * 1e6:.1f} µs", f"{theirs / ours:.2f}",
        )  # fmt: skip
    console.print(table)


def chains() -> None:
    """Four chains against one, compiled before."""
    table = new_table("Chains on the cores", "problem", "one chain", "four chains", "ratio", "asked")
    for problem, num, depth in ((SMALL, 100, 8), (MEDIUM, 40, 6), (LARGE, 10, 5)):
        model, data = problem.model().bind(problem.arrays()), credo.Data(*problem.arrays()).batch()

        def run(
            num_chains: int,
            problem: Problem = problem,
            num: int = num,
            depth: int = depth,
            model: Any = model,
            data: Any = data,
        ) -> Any:
            method = _fixed_work(num, depth, num_chains)
            return engine.run(method, model, data, progress=False).draws

        times = best_of(3, {"one": lambda run=run: run(1), "four": lambda run=run: run(4)})
        ratio = times["four"] / times["one"]
        table.add_row(problem.name, f"{times['one']:.2f} s", f"{times['four']:.2f} s", f"{ratio:.2f}", "≤ 2.2")
    console.print(table)


def prediction() -> None:
    """Prediction with 1,000 draws against a bare jit(vmap(apply)) of the same network."""
    columns = ("rows", "jit(vmap(apply))", "credo predict", "throughput ratio", "asked")
    table = new_table("Prediction, 1,000 draws", *columns)
    for num_rows in (100, 1_000, 4_000):
        problem = MEDIUM
        flat = 0.1 * jax.random.normal(jax.random.key(1), (1000, problem.num_parameters))
        x = np.random.default_rng(1).normal(size=(num_rows, problem.sizes[0])).astype(np.float32)
        model = problem.model().bind(problem.arrays())
        theta = {name: np.asarray(leaf) for name, leaf in model.sample_prior(random.key(0), 1000).items()}
        posterior = credo.Draws(
            model,
            {name: leaf[None] for name, leaf in theta.items()},
            Provenance({}, 0, 0.0, 0),
        )
        bare = jax.jit(lambda flat, x, problem=problem: jax.vmap(problem.apply, (0, None))(flat, x).mean(0))
        times = best_of(
            5,
            {
                "bare": lambda f=bare, a=flat, b=x: f(a, b),
                "credo": lambda p=posterior, b=x: p.predict(b).mean,
            },
        )
        speed = {side: 1000 * num_rows / time / 1e6 for side, time in times.items()}
        ratio = speed["credo"] / speed["bare"]
        table.add_row(
            f"{num_rows:,}",
            f"{speed['bare']:.1f} M rows/s",
            f"{speed['credo']:.1f} M rows/s",
            f"{ratio:.2f}",
            "≥ 0.8",
        )
    console.print(table)


def scaling() -> None:
    """Time per leapfrog as the data and the network grow, beside that of the bare gradient."""
    columns = ("what grows", "size", "bare gradient", "credo NUTS", "per leapfrog and unit")
    table = new_table("Scaling of a leapfrog", *columns)
    for size in (1_000, 10_000, 100_000, 1_000_000):
        for what, problem, unit in (
            ("rows N (8-50-1)", Problem((8, 50, 1), size), size),
            ("weights D (N=100)", Problem((8, size // 10, 1), 100), size),
        ):
            bare, nuts = _time_of_gradient(problem), _time_per_leapfrog(problem)
            per_unit = f"{nuts / unit * 1e9:.1f} ns"
            table.add_row(what, f"{size:,}", f"{bare * 1e3:.3f} ms", f"{nuts * 1e3:.3f} ms", per_unit)
    console.print(table)


def whole_runs() -> None:
    """A whole fit from cold, compilation included, and its effective draws, against NumPyro's fastest chain method."""
    table = new_table(
        "Whole runs, 4 chains, compilation included",
        *("problem", "warm-up + draws, depth", "NumPyro", "credo", "time ratio"),
        *("ESS/s NumPyro", "ESS/s credo", "ESS/s ratio"),
    )
    for problem, num, depth in WHOLE_RUNS:
        first = {side: _whole_run(side, problem, num, depth) for side in ("credo", "parallel", "vectorized")}
        peer_name = min(("parallel", "vectorized"), key=lambda side, first=first: first[side]["seconds"])
        second = {side: _whole_run(side, problem, num, depth) for side in ("credo", peer_name)}
        ours, peer = (min(first[side], second[side], key=lambda run: run["seconds"]) for side in second)
        speeds = [run["ess"] / run["seconds"] for run in (peer, ours)]
        table.add_row(
            problem.name, f"{num} + {num}, {depth}", f"{peer['seconds']:.1f} s ({peer_name})",
            f"{ours['seconds']:.1f} s", f"{ours['seconds'] / peer['seconds']:.2f} (≤ 0.75)",
            f"{speeds[0]:.1f}", f"{speeds[1]:.1f}", f"{speeds[1] / speeds[0]:.2f} (≥ 1.5)",
        )  # fmt: skip
    console.print(table)


def beside_blackjax() -> None:
    """The same whole runs by blackjax's NUTS on the same log density, for several seeds, with warm-up apart."""
    for problem, num, depth in WHOLE_RUNS:
        settings = {"sizes": problem.sizes, "num_data": problem.num_data, "num": num, "depth": depth}
        title = f"{problem.name}: whole runs of NUTS, 4 chains of {num} + {num}, depth {depth}"
        beside(title, {"side": "credo"} | settings, reference={"side": "credo", "seed": REFERENCE_SEED} | settings)


# -- pieces ------------------------------------------------------------------------------------------------


def bare_scan(gradient: Callable[..., Any], num_steps: int, start: Any) -> Any:
    @jax.jit
    def run(flat: Any) -> Any:
        def body(flat: Any, _: None) -> tuple[Any, Any]:
            value, slope = gradient(flat)
            return flat + 1e-7 * slope, value

        return jax.lax.scan(body, flat, None, length=num_steps)

    cached = _COMPILED.setdefault((gradient, num_steps), run)
    return cached(start)


_COMPILED: dict[Any, Callable[..., Any]] = {}


def _fixed_work(num_samples: int, depth: int, num_chains: int = 1) -> credo.NUTS:
    """No warm-up, so a step far too small: every trajectory doubles to the end."""

    return _FixedStep(num_samples=num_samples, num_warmup=0, num_chains=num_chains, max_depth=depth, start="network")


class _FixedStep(credo.NUTS):
    def init(self, *arguments: Any) -> Any:
        state = super().init(*arguments)
        return state._replace(tuning=state.tuning._replace(step_size=jnp.array(1e-7)))


def nuts_chunk(problem: Problem, depth: int, num_records: int) -> Callable[[], int]:
    """One compiled chunk of full trajectories in the engine; returns how many leapfrogs it made."""
    model, data = problem.model().bind(problem.arrays()), credo.Data(*problem.arrays()).batch()
    method = _fixed_work(num_records, depth)
    driver = engine.Driver(method, model, method.plan(), num_records)
    chain = driver.start(0, 0, None, data, None)
    driver.compile([chain])

    def run() -> int:
        _, _, infos = jax.block_until_ready(driver.chunk(chain, num_records=num_records, thin=1))
        return int(np.sum(infos.num_leapfrogs))

    return run


def _time_per_leapfrog(problem: Problem) -> float:
    nuts = nuts_chunk(problem, depth=4, num_records=2)
    num_leapfrogs = nuts()
    return min(seconds(nuts) for _ in range(3)) / num_leapfrogs


def _time_of_gradient(problem: Problem) -> float:
    def bare() -> Any:
        return bare_scan(gradient, 20, problem.start())

    gradient = jax.value_and_grad(problem.hand_written())
    jax.block_until_ready(bare())
    return min(seconds(bare) for _ in range(3)) / 20


def _whole_run(side: str, problem: Problem, num: int, depth: int) -> dict[str, float]:
    settings = {"side": side, "sizes": problem.sizes, "num_data": problem.num_data, "num": num, "depth": depth}
    return whole_run(settings)


if __name__ == "__main__":
    main()
