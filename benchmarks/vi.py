"""Variational inference: the cost of a step beside that of MAP, of the families, and of peers.

    python -m benchmarks vi

All steps of credo run inside the engine's compiled chunks, on minibatches of 128 drawn on the device. The sides take
turns and the best of several rounds counts. The torch peers need an environment of their own, which `make bench` makes;
CREDO_PEERS names the interpreter of another.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.module import random_nnx_module
from numpyro.infer import SVI, Trace_ELBO, TraceMeanField_ELBO, autoguide

import credo
from benchmarks import peers as peer_programs
from benchmarks.printing import console, new_table
from benchmarks.timing import best_of, seconds
from credo.inference.engine import driver as engine
from credo.inference.method import Method
from credo.inference.variational.families import LowRankFamily

NUM_DATA, BATCH_SIZE = 6_000, 128
ESTIMATORS = ("local", "flipout", "weights")
# Each torch peer, and the estimator of credo that does what it does.
TORCH_PEERS = {
    "torchbnn": "weights",
    "blitz": "weights",
    "bayesian-torch": "weights",
    "bayesian-torch-flipout": "flipout",
    "pyro": "weights",
}
# Both are the same mean-field Gaussian: flat, and by site with the KL term in closed form.
NUMPYRO_SIDES = {
    "NumPyro AutoDiagonalNormal": (autoguide.AutoDiagonalNormal, Trace_ELBO),
    "NumPyro AutoNormal": (autoguide.AutoNormal, TraceMeanField_ELBO),
}


@dataclass(frozen=True)
class Problem:
    """A classifier of ten classes on noise in the shape of the data: the time of a step does not depend on its values.

    Arguments:
        label: for the tables.
        net: one of `credo.networks`.
        shape: of one input.
        num_steps, num_rounds: per timed chunk, and how many of these.
        asked: the most that a step of BayesByBackprop may cost, in steps of MAP.
    """

    label: str
    net: Any
    shape: tuple[int, ...]
    num_steps: int
    num_rounds: int = 8
    asked: float = 2.0

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        x = rng.random((NUM_DATA, *self.shape), dtype=np.float32)
        return x, rng.integers(0, 10, NUM_DATA).astype(np.int32)

    @cached_property
    def model(self) -> credo.Model:
        """One object, so that tables share compiled programs."""
        return credo.models.classification(self.net).bind(self.arrays)

    def chunk(self, method: Method, thin: int = 1) -> Callable[[], Any]:
        """A compiled chunk of `num_steps` steps in the engine, one in `thin` of them recorded."""
        driver = engine.Driver(method, self.model, method.plan(), self.num_steps)
        chain = driver.start(0, 0, None, credo.Data(*self.arrays).batch(), None)
        driver.compile([chain])
        return lambda: driver.chunk(chain, num_records=self.num_steps // thin, thin=thin)

    def per_step(self, sides: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
        """Seconds per step of chunks that take turns."""
        return {name: time / self.num_steps for name, time in best_of(self.num_rounds, sides).items()}


MLP = Problem("784-400-400-10", credo.networks.MLP([400, 400], 10, activation="relu"), (784,), 40)
CNN = Problem("CNN 28×28, 80,202 weights", credo.networks.CNN(10), (28, 28, 1), 1, num_rounds=4, asked=2.5)
SMALL = Problem("20-20-20-10, 1,050 weights", credo.networks.MLP([20, 20], 10, activation="relu"), (20,), 100)


def main() -> None:
    """All tables."""
    steps()
    families()
    peers()


def steps() -> None:
    """A step of variational inference beside one of MAP, both with Adam."""
    table = new_table("Time per step, batch 128", "network", "method", "per step", "ratio to MAP", "asked")
    for problem in (MLP, CNN):
        sides = {"MAP": problem.chunk(credo.MAP(batch_size=BATCH_SIZE))}
        sides |= {f"BayesByBackprop, {name}": problem.chunk(_vi(estimator=name)) for name in ESTIMATORS}
        sides["IVON"] = problem.chunk(credo.IVON(batch_size=BATCH_SIZE))
        times = problem.per_step(sides)
        best = min(list(sides)[1:-1], key=times.__getitem__)
        asked = {best: f"≤ {problem.asked}", "IVON": "≤ 1.5" if problem is MLP else ""}
        for name, time in times.items():
            ratio = f"{time / times['MAP']:.2f}"
            table.add_row(problem.label, name, f"{time * 1e3:.2f} ms", ratio, asked.get(name, ""))
    console.print(table)


def families() -> None:
    """Richer covariances beside the diagonal one, with the same estimator."""
    table = new_table("Families, estimator 'weights'", "network", "family", "diagonal", "per step", "ratio", "asked")
    for problem, name, family in ((SMALL, "full", "full"), (MLP, "low rank, 20", LowRankFamily(rank=20))):
        sides = {"diagonal": _vi(estimator="weights"), name: _vi(estimator="weights", family=family)}
        times = problem.per_step({side: problem.chunk(method) for side, method in sides.items()})
        plain, rich = times["diagonal"], times[name]
        table.add_row(
            problem.label, name, f"{plain * 1e3:.2f} ms", f"{rich * 1e3:.2f} ms", f"{rich / plain:.2f}", "≤ 2.0"
        )
    console.print(table)


def peers() -> None:
    """Other libraries, beside the same estimator in credo and beside the one that credo takes by itself."""
    table = new_table(
        "Peers, time per step, batch 128, Adam, one draw",
        *("network", "peer", "per step", "credo, same estimator", "ratio", "credo, default", "ratio", "asked"),
    )
    problems = {"mlp": MLP, "cnn": CNN}
    chunks = {
        name: {estimator: problem.chunk(_vi(estimator=estimator)) for estimator in ESTIMATORS}
        for name, problem in problems.items()
    }
    theirs: dict[tuple[str, str], float] = {}
    ours: dict[str, dict[str, float]] = {}
    for name, problem in problems.items():
        both = chunks[name] | {side: _numpyro_chunk(problem, *parts) for side, parts in NUMPYRO_SIDES.items()}
        ours[name] = problem.per_step(both)
        theirs |= {(side, name): ours[name].pop(side) for side in NUMPYRO_SIDES}
    for peer in TORCH_PEERS if peer_programs.interpreter() else ():
        theirs |= {(peer, name): time for name, time in peer_programs.measure("vi_torch.py", peer).items()}
        # Again after each peer: all see the same minutes of the machine.
        for name, problem in problems.items():
            for estimator, chunk in chunks[name].items():
                ours[name][estimator] = min(ours[name][estimator], seconds(chunk) / problem.num_steps)
    for (peer, name), time in theirs.items():
        same, default = ours[name][TORCH_PEERS.get(peer, "weights")], ours[name]["local"]
        cells = [f"{own * 1e3:.2f} ms" for own in (time, same, default)]
        asked = "≥ 3.0" if peer in TORCH_PEERS else "≥ 1.5"
        table.add_row(
            problems[name].label, peer, *cells[:2], f"{time / same:.2f}", cells[2], f"{time / default:.2f}", asked
        )
    console.print(table)
    if not peer_programs.interpreter():
        console.print("The torch peers were left out: `make bench` makes their environment, .venv-peers.")


# -- pieces ------------------------------------------------------------------------------------------------


def _vi(**settings: Any) -> credo.BayesByBackprop:
    return credo.BayesByBackprop(batch_size=BATCH_SIZE, **settings)


def _numpyro_chunk(problem: Problem, guide: Any, elbo: Any) -> Callable[[], Any]:
    """A compiled scan of NumPyro's SVI over minibatches, of the same flax network, wrapped as NumPyro has it."""
    x, y = map(jax.numpy.asarray, problem.arrays)
    built = problem.net.build(x.shape)

    def program(x: Any, y: Any) -> None:
        network = random_nnx_module("net", built, prior=dist.Normal(0, 1))
        logits = network(x)
        # The rows are taken outside: the plate sets the scale N/n, and the compiler drops the rows that it draws.
        with numpyro.plate("data", NUM_DATA, subsample_size=BATCH_SIZE):
            numpyro.sample("y", dist.Categorical(logits=logits), obs=y)

    svi = SVI(program, guide(program, init_scale=0.01), numpyro.optim.Adam(1e-3), elbo())
    start = svi.init(jax.random.key(0), x[:BATCH_SIZE], y[:BATCH_SIZE])

    @jax.jit
    def run(state: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            rows = jax.random.randint(key, (BATCH_SIZE,), 0, NUM_DATA)
            return svi.update(state, x[rows], y[rows])

        return jax.lax.scan(step, state, jax.random.split(key, problem.num_steps))

    return lambda: run(start, jax.random.key(1))


if __name__ == "__main__":
    main()
