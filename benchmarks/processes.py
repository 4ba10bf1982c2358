"""Two processes beside one, each on a core of its own: chains, data-parallel steps, and what the collective costs.

    python -m benchmarks processes

Efficiency is the time of one process on one core over twice that of two processes on two cores, for the same work: the
second of two equal fits, so that nothing is compiled. Chains are those of NUTS on a small network; steps are those of
MAP on 784-400-400-10 (478,410 weights), by the size of the minibatch. The sides take turns.
"""

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

from benchmarks.printing import console, new_table

BATCH_SIZES = (128, 512, 2048)
NUM_STEPS = {128: 200, 512: 60, 2048: 20}
NUM_ROUNDS = 2
NUM_REDUCTIONS = 100
WORKER = "worker"


def main() -> None:
    """One table."""
    table = new_table("Two processes, a core each", "work", "one process [s]", "two [s]", "efficiency")
    for work in ("chains", *(f"steps of {size}" for size in BATCH_SIZES)):
        one, two = float("inf"), float("inf")
        for _ in range(NUM_ROUNDS):
            one, two = min(one, seconds(work, 1)), min(two, seconds(work, 2))
        table.add_row(work, f"{one:.2f}", f"{two:.2f}", f"{one / (2 * two):.2f}")
    console.print(table)
    milliseconds = 1e3 * seconds("reduction", 2) / NUM_REDUCTIONS
    console.print(f"one all-reduce of 478,410 numbers over loopback: {milliseconds:.2f} ms")


def seconds(work: str, num_processes: int) -> float:
    """How long the slowest process takes, when nothing is left to compile."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.processes", WORKER, work, str(port), str(num_processes)]
    workers = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True) for number in range(num_processes)
    ]
    said = [worker.communicate()[0] for worker in workers]
    return max(json.loads(text.splitlines()[-1]) for text in said)


def _worker(work: str, port: str, num_processes: int, number: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})
    import jax

    if num_processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", num_processes, number)
    run = _reductions() if work == "reduction" else _fit(work)
    run()
    began = time.perf_counter()
    run()
    print(json.dumps(time.perf_counter() - began))


def _fit(work: str) -> Any:
    import numpy as np

    import credo

    rng = np.random.default_rng(0)
    if work == "chains":
        x = rng.normal(size=(1000, 8))
        model = credo.models.regression(credo.networks.MLP([20], out=1, activation="tanh"), noise=0.1)
        data = credo.Data(x, np.sin(x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=len(x)))
        method: Any = credo.HMC(num_samples=100, num_warmup=100, num_chains=4, max_leapfrogs=16)
    else:
        size = int(work.split()[-1])
        model = credo.models.classification(credo.networks.MLP([400, 400], out=10, activation="relu"))
        data = credo.Data(rng.normal(size=(4096, 784)).astype(np.float32), rng.integers(0, 10, 4096))
        method = credo.MAP(num_steps=NUM_STEPS[size], batch_size=size)
    return lambda: credo.fit(model, data, method, mesh="auto", progress=False)


def _reductions() -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()), ("all",))
    by_device = NamedSharding(mesh, PartitionSpec("all"))
    numbers = jax.make_array_from_callback(
        (len(jax.devices()), 478_410), by_device, lambda _: np.ones((1, 478_410), np.float32)
    )
    total = jax.jit(lambda rows: jnp.sum(rows, 0), out_shardings=NamedSharding(mesh, PartitionSpec()))

    def run() -> None:
        for _ in range(NUM_REDUCTIONS):
            jax.block_until_ready(total(numbers))

    return run


if __name__ == "__main__":
    _worker(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
