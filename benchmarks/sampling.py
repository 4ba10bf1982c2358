"""Posteriors from stochastic gradients and microcanonical dynamics: what they cost, beside SGD, NUTS and peers.

    python -m benchmarks sampling

Steps run inside the engine's compiled chunks, or in whole runs that were compiled before; the sides take turns and the
best of several rounds counts. Comparisons of samplers are single whole runs in new processes, with compilation. The
peers need an environment of their own, which `make bench` makes; CREDO_PEERS names the interpreter of another.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from rich.table import Table

import credo
from benchmarks import blackjax_runs, peers
from benchmarks.printing import console, new_table
from benchmarks.problems import LARGE, MEDIUM, SMALL, Problem
from benchmarks.side_by_side import SEEDS, beside, whole_run
from benchmarks.timing import best_of
from benchmarks.vi import BATCH_SIZE, MLP
from credo.diagnostics.chains import convergence
from credo.inference.engine import driver as engine
from credo.inference.method import Method

MEMBERS, MEMBER_BATCH, MEMBER_STEPS = 10, 64, 2_000
SWAG_STEPS = 600
# Draws of 478,000 weights: one in so many steps is kept, of each method alike.
THIN = 20
WITHOUT_PEERS = "The peers were left out: `make bench` makes their environment, .venv-peers."
# The two samplers of the same posterior. NUTS with its defaults, but for the number of draws; MCLMC with a warm-up that
# brings its members from their modes to the typical set: after 2,000 steps the sds of functions are 40% too large.
NUTS = {"side": "credo", "num": 100, "depth": 10}
MCLMC = {"side": "mclmc", "members": 4, "draws": 500, "thin": 50, "warmup": 10_000, "training_steps": 300}
# The run of NUTS that their standard deviations are compared with.
REFERENCE = NUTS | {"num": 300, "seed": 100}
# Chunks of MCLMC: (problem, steps).
MICROCANONICAL_STEPS = ((SMALL, 4_000), (MEDIUM, 300), (LARGE, 30))
MICROCANONICAL_RUNS = (SMALL, MEDIUM)
NUM_ROUNDS = 8
# The settings in which the peer is timed: members, draws and steps are the same on both sides.
AS_BDE = {"side": "mclmc, as bde", "members": 10, "draws": 500, "thin": 10, "warmup": 2_000, "training_steps": 1_000}


def main() -> None:
    """All tables."""
    steps()
    trainings()
    members()
    samplers()
    microcanonical_steps()
    beside_blackjax()
    if peers.interpreter() is None:
        console.print(WITHOUT_PEERS)
        return
    against_torch()
    against_bde()


def steps() -> None:
    """A step of SGLD and SGHMC beside one of SGD."""
    table = new_table(f"{MLP.label}, batch {BATCH_SIZE}: time per step", "method", "per step", "ratio to SGD", "asked")
    sides = {"SGD": _sgd(), "SGLD": _sgld(), "SGHMC": credo.SGHMC(batch_size=BATCH_SIZE)}
    times = MLP.per_step({name: MLP.chunk(method, THIN) for name, method in sides.items()})
    _print_ratios(table, times, {"SGLD": "≤ 1.5"})


def trainings() -> None:
    """SWAG, half of whose steps collect, beside SGD with the same momentum."""
    title = f"{MLP.label}, batch {BATCH_SIZE}: training, {SWAG_STEPS:,} steps"
    table = new_table(title, "method", "time", "ratio to SGD", "asked")
    swag = credo.SWAG(num_steps=SWAG_STEPS, num_warmup=SWAG_STEPS // 2, batch_size=BATCH_SIZE)
    sides = {"SGD with momentum": _sgd(num_steps=SWAG_STEPS, momentum=swag.momentum), "SWAG": swag}
    times = best_of(5, {name: _training(method, MLP.model, MLP.arrays) for name, method in sides.items()})
    _print_ratios(table, times, {"SWAG": "≤ 1.1"})


def members() -> None:
    """Ten members beside one: the same steps, compiled before."""
    title = f"8-50-50-1, batch {MEMBER_BATCH}: training, {MEMBER_STEPS:,} steps"
    table = new_table(title, "what", "time", "ratio", "asked")
    all_of_them = f"{MEMBERS} members"
    times = best_of(5, {"one network": _small_training(_member()), all_of_them: _small_training(_ensemble())})
    _print_ratios(table, times, {all_of_them: "≤ 4"})


def samplers() -> None:
    """Ensemble-initialised MCLMC beside NUTS: least function-space ESS per second of whole runs, for several seeds.

    One seed would not do: whether a chain stays in a minor mode decides about the least ESS.
    """
    columns = ("method", "seed", "seconds", "worst R-hat", "least ESS", "ESS per second")
    table = new_table(f"{MEDIUM.name}: whole runs, 4 chains", *columns)
    speeds: dict[str, list[float]] = {}
    for seed in SEEDS:
        for name, settings in (("NUTS", NUTS), ("MCLMC from MAP", MCLMC)):
            run = _run(settings | {"seed": seed})
            speed = run["ess"] / run["seconds"]
            speeds.setdefault(name, []).append(speed)
            figures = (f"{run['seconds']:.1f}", f"{run['rhat']:.3f}", f"{run['ess']:.0f}", f"{speed:.2f}")
            table.add_row(name, str(seed), *figures)
    console.print(table)
    ratio = np.median(speeds["MCLMC from MAP"]) / np.median(speeds["NUTS"])
    console.print(f"MCLMC beside NUTS, medians of ESS per second: {ratio:.1f} (asked ≥ 5)")


def microcanonical_steps() -> None:
    """A step of MCLMC, two gradients, beside one of blackjax's on the same log density (one chain)."""
    columns = ("credo", "blackjax", "its own keys", "blackjax / credo")
    table = new_table("MCLMC, time per step (one chain)", "problem", *columns)
    for problem, num_steps in MICROCANONICAL_STEPS:
        sides = {
            "credo": _mclmc_chunk(problem, num_steps),
            "blackjax": blackjax_runs.mclmc_chunk(problem, num_steps),
            "threefry": blackjax_runs.mclmc_chunk(problem, num_steps, generator=jax.random.key),
        }
        ours, theirs, with_own_keys = (time / num_steps for time in best_of(NUM_ROUNDS, sides).values())
        times = (f"{time * 1e6:.1f} µs" for time in (ours, theirs, with_own_keys))
        table.add_row(problem.name, *times, f"{theirs / ours:.2f}")
    console.print(table)


def beside_blackjax() -> None:
    """Whole runs of MCLMC from MAP by blackjax on the same log density, for several seeds."""
    counts = f"{MCLMC['members']} chains of {MCLMC['warmup']:,} + {MCLMC['draws']} × {MCLMC['thin']} steps"
    for problem in MICROCANONICAL_RUNS:
        size = {"sizes": problem.sizes, "num_data": problem.num_data}
        beside(f"{problem.name}: whole runs of MCLMC from MAP, {counts}", size | MCLMC, reference=size | REFERENCE)


def against_torch() -> None:
    """SGLD of posteriors, and ten trainings in PyTorch, one after another."""
    table = new_table("Torch peers", "what", "peer", "credo", "ratio", "asked")
    sgld, ensemble = MLP.chunk(_sgld(), THIN), _small_training(_ensemble())
    best_of(2, {"sgld": sgld, "ensemble": ensemble})
    theirs: dict[str, float] = peers.measure("sampling_torch.py")
    # After the peer: both see the same minutes of the machine.
    ours = best_of(5, {"sgld": sgld, "ensemble": ensemble})
    pairs = (
        ("SGLD step, posteriors", theirs["sgld"], ours["sgld"] / MLP.num_steps, "≥ 3"),
        (f"{MEMBERS} trainings", theirs["training"] * MEMBERS * MEMBER_STEPS, ours["ensemble"], "≥ 5"),
    )
    for what, peer, own, asked in pairs:
        table.add_row(what, _time(peer), _time(own), f"{peer / own:.1f}", asked)
    console.print(table)


def against_bde() -> None:
    """Ensemble-initialised sampling by sklearn-contrib-bde: the same model, members, draws and steps."""
    title = f"8-50-50-2, ReLU, N={MEDIUM.num_data:,}: whole runs, {AS_BDE['members']} members × {AS_BDE['draws']} draws"
    table = new_table(title, "what", "seconds", "worst R-hat", "least ESS", "ratio of seconds", "asked")
    runs = {"sklearn-contrib-bde": _bde(), "credo": _run(AS_BDE)}
    for name, run in runs.items():
        ratio = runs["sklearn-contrib-bde"]["seconds"] / run["seconds"]
        asked = "> 1" if name == "credo" else ""
        figures = (f"{run['seconds']:.1f}", f"{run['rhat']:.3f}", f"{run['ess']:.0f}")
        table.add_row(name, *figures, f"{ratio:.1f}", asked)
    console.print(table)


# -- pieces ------------------------------------------------------------------------------------------------


def _sgd(num_steps: int = 2_000, momentum: float = 0.0) -> Method:
    optimizer = optax.sgd(1e-2, momentum=momentum or None)
    return credo.MAP(num_steps=num_steps, optimizer=optimizer, batch_size=BATCH_SIZE)


def _sgld() -> Method:
    return credo.SGLD(batch_size=BATCH_SIZE)


def _member() -> Method:
    return credo.MAP(num_steps=MEMBER_STEPS, learning_rate=1e-3, batch_size=MEMBER_BATCH)


def _ensemble() -> Method:
    return credo.DeepEnsemble(_member(), members=MEMBERS)


def _mclmc_chunk(problem: Problem, num_steps: int) -> Callable[[], Any]:
    """One compiled chunk of steps in the engine, of which the last is recorded."""
    model, data = problem.model().bind(problem.arrays()), credo.Data(*problem.arrays()).batch()
    method = credo.MCLMC(num_samples=1, num_warmup=0, num_chains=1, thin=num_steps, start="network")
    driver = engine.Driver(method, model, method.plan(), 1)
    chain = driver.start(0, 0, None, data, None)
    driver.compile([chain])
    return lambda: driver.chunk(chain, num_records=1, thin=num_steps)


def _training(method: Method, model: credo.Model, arrays: tuple[Any, Any]) -> Callable[[], Any]:
    """A whole run of the engine, compiled by its first call."""
    batch = credo.Data(*arrays).batch()
    return lambda: engine.run(method, model, batch, progress=False).states


def _small_training(method: Method) -> Callable[[], Any]:
    """The same, on 8-50-50-1."""
    return _training(method, MEDIUM.model().bind(MEDIUM.arrays()), MEDIUM.arrays())


def _run(settings: dict[str, Any]) -> dict[str, float]:
    """A whole run in a new process. One will do: it takes minutes, over which the noise of the machine averages out."""
    return whole_run({"sizes": MEDIUM.sizes, "num_data": MEDIUM.num_data} | settings)


def _bde() -> dict[str, float]:
    """The same of sklearn-contrib-bde."""
    x, y = MEDIUM.arrays()
    settings = json.dumps(AS_BDE | {"hidden": MEDIUM.sizes[1:-1]})
    with tempfile.TemporaryDirectory() as folder:
        data, functions = Path(folder) / "data.npz", Path(folder) / "functions.npy"
        np.savez(data, x=x, y=y, probes=MEDIUM.probes())
        run = peers.measure("sampling_bde.py", str(data), str(functions), settings)
        found = convergence(np.load(functions))
        return {"seconds": run["seconds"], "ess": found.ess_bulk, "rhat": found.rhat}


def _print_ratios(table: Table, times: dict[str, float], asked: dict[str, str]) -> None:
    """A row for each side, beside the first of them."""
    first = next(iter(times.values()))
    for name, time in times.items():
        table.add_row(name, _time(time), f"{time / first:.2f}", asked.get(name, ""))
    console.print(table)


def _time(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1e3:.2f} ms"


if __name__ == "__main__":
    main()
