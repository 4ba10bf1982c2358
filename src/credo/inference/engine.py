"""The driver: runs every method as compiled chunks and owns the loop around them.

Inside a chunk everything is on the device: steps, minibatches, the draws that are kept. Between chunks, on the
host: progress, health checks, early stop, Ctrl-C. The key of a step depends on the seed, the chain and the step
number only, so the draws are the same bits whatever the chunk size and however many chains run at once.

Chains do not wait for each other: lock-step chains would all pay for the longest trajectory. Each runs a program
of its own in a pool of threads (compiled code does not hold the interpreter's lock), with a worker per core, or
per device where there are several.
"""

import os
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo import random
from credo.inference.method import Method, Plan
from credo.inference.minibatch import minibatch
from credo.inference.progress import Progress
from credo.models.program import Model
from credo.typing import Array, Batch, Key, Theta, Tree

# A chunk is long enough to hide the host's work (under a millisecond), and short enough for a live progress bar
# and a prompt answer to Ctrl-C.
SECONDS_PER_CHUNK = 0.25
# The draws of a chunk wait in a buffer on the device: at most this many, and at most this many bytes, because every
# chunk begins by clearing it.
RECORDS_PER_CHUNK = 4096
BYTES_PER_CHUNK = 2**22


class NonFiniteError(ArithmeticError):
    """A run went non-finite: at which step, what to do, and a posterior from the last good state if there is one."""

    def __init__(self, message: str, step: int, posterior: Any = None) -> None:
        super().__init__(message)
        self.step = step
        self.posterior = posterior


@dataclass(frozen=True, eq=False)
class Run:
    """What the engine brings home.

    Leaves of `draws` and `infos` have axes (chains, kept draws, …), those of `warmup_infos` (chains, steps),
    those of `states`, the last ones, (chains, …).
    """

    states: Tree
    draws: Tree
    infos: Any
    warmup_infos: Any
    seconds: float
    seed: int
    interrupted: bool = False


@dataclass(eq=False)
class Chain:
    """One chain on its way: where it stands, and the pieces it has brought home."""

    key: Key
    state: Tree
    data: Batch
    step: int = 0
    num_kept: int = 0
    records_per_chunk: int = 1
    draws: list[Tree] = field(default_factory=list)
    infos: list[Any] = field(default_factory=list)
    warmup_infos: list[Any] = field(default_factory=list)
    failed_at: int | None = None
    finished: bool = False


class Driver:
    """Runs a method on a model: compiles its chunk once, and keeps all chains moving."""

    def __init__(self, method: Method, model: Model, plan: Plan, records_per_chunk: int) -> None:
        self.method, self.model, self.plan = method, model, plan
        self.max_records = records_per_chunk
        self.devices = jax.local_devices()

    def start(self, index: int, seed: int, theta: Theta | None, data: Batch, held_out: Batch | None) -> Chain:
        """A chain at step 0, on its device, with keys of its own."""
        if len(self.devices) > 1:
            device = self.devices[index % len(self.devices)]
            theta, data, held_out = jax.device_put((theta, data, held_out), device)
        key, state = _begin(self.method, self.model, random.key(seed), index, theta, data, held_out)
        return Chain(key, state, data)

    def compile(self, chains: list[Chain]) -> None:
        """Compile before the threads start, by running a chunk of no steps on each device."""
        draw = jax.eval_shape(partial(self.method.draw, self.model), chains[0].state)
        bytes_per_draw = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(draw))
        self.max_records = max(1, min(self.max_records, BYTES_PER_CHUNK // max(bytes_per_draw, 1)))
        for chain in chains[: len(self.devices)]:
            jax.block_until_ready(self.chunk(chain, num_records=0, thin=1))

    def chunk(self, chain: Chain, *, num_records: int, thin: int) -> tuple[Tree, Tree, Any]:
        static = (self.method, self.model, self.plan.batch_size, self.max_records)
        return _chunk(*static, chain.key, chain.state, chain.data, np.array([chain.step, num_records, thin], np.int32))

    def drive(self, chains: list[Chain], bar: Progress) -> bool:
        """Keep all workers busy until every chain has finished; True if Ctrl-C came first."""
        num_workers = len(self.devices) if len(self.devices) > 1 else available_cores()
        with bar, ThreadPoolExecutor(min(num_workers, len(chains))) as pool:
            # A chain goes to the back of the queue after each chunk, so that all of them advance together.
            running: dict[Future[None], Chain] = {pool.submit(self.advance, chain): chain for chain in chains}
            try:
                while running:
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        chain = running.pop(future)
                        future.result()
                        bar.update(chains)
                        if not chain.finished:
                            running[pool.submit(self.advance, chain)] = chain
            except KeyboardInterrupt:
                for future in running:
                    future.cancel()
                return True
        return False

    def advance(self, chain: Chain) -> None:
        """Bring one chain forward by one chunk, and look after its health."""
        plan, warmup_left = self.plan, self.plan.warmup_left(chain.step)
        warming_up = warmup_left > 0
        left = warmup_left if warming_up else plan.num_kept - chain.num_kept % plan.num_kept
        thin = 1 if warming_up else plan.thin
        num_records = min(chain.records_per_chunk, left, self.max_records)
        began = time.perf_counter()
        state, draws, infos = jax.block_until_ready(self.chunk(chain, num_records=num_records, thin=thin))
        seconds = time.perf_counter() - began

        infos = _head(infos, num_records)
        finite = np.append(np.isfinite(infos.log_joint), bool(self.method.healthy(state)))
        if not np.all(finite):
            # The chain keeps the state in which the chunk began: the last one known to be good.
            chain.failed_at = chain.step + thin * int(np.argmin(finite))
            chain.finished = True
            return
        chain.state, chain.step = state, chain.step + thin * num_records
        if warming_up:
            chain.warmup_infos.append(infos)
        else:
            chain.infos.append(infos)
            chain.draws.append(_head(draws, num_records))
            chain.num_kept += num_records
        chain.finished = chain.step == plan.num_steps or bool(self.method.finished(state))
        # At most four times longer than the last: one quick step does not promise that the next are quick too.
        affordable = int(num_records * SECONDS_PER_CHUNK / max(seconds, 1e-9))
        chain.records_per_chunk = max(1, min(affordable, 4 * num_records))


def run(
    method: Method,
    model: Model,
    data: Batch,
    *,
    seed: int = 0,
    plan: Plan | None = None,
    starts: Theta | None = None,
    held_out: Batch | None = None,
    progress: bool | None = None,
    records_per_chunk: int = RECORDS_PER_CHUNK,
) -> Run:
    """Run all chains of a method to their end, or to Ctrl-C.

    Arguments:
        plan: in place of the method's own (more members, for instance).
        starts: theta with a leading axis of chains; by default each starts where the method says.
        held_out: data to stop early by.
        progress: a live bar on stderr; by default where stderr is a terminal.
        records_per_chunk: the longest chunk; the result does not depend on it.
    """
    plan = plan or method.plan()
    began = time.perf_counter()
    driver = Driver(method, model, plan, records_per_chunk)
    thetas = [_row(starts, index) if starts is not None else None for index in range(plan.num_chains)]
    chains = [driver.start(index, seed, theta, data, held_out) for index, theta in enumerate(thetas)]
    driver.compile(chains)
    interrupted = driver.drive(chains, Progress(method, plan, show=progress))
    result = _collect(chains, time.perf_counter() - began, seed, interrupted)
    if interrupted:
        _tell_interrupted(chains, plan)
    failed = [chain.failed_at for chain in chains if chain.failed_at is not None]
    if failed:
        raise _failure(method, model, min(failed), result)
    return result


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Run once, so the compiler need not try hard.
@partial(jax.jit, static_argnums=(0, 1), compiler_options={"xla_backend_optimization_level": 0})
def _begin(
    method: Method,
    model: Model,
    key: Key,
    index: Array,
    theta: Theta | None,
    data: Batch,
    held_out: Batch | None,
) -> tuple[Key, Tree]:
    """The key and the first state of chain number `index`."""
    start_key, init_key, step_key = jax.random.split(jax.random.fold_in(key, index), 3)
    if theta is None and method.start == "network":
        theta = model.initial_theta(start_key)
    elif theta is None:
        theta = _row(model.sample_prior(start_key, 1), 0)
    state = method.init(init_key, model, theta, data, held_out)
    # Weakly typed leaves would make the first chunk a program of its own.
    return step_key, jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), state)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _chunk(
    method: Method,
    model: Model,
    batch_size: int | None,
    max_records: int,
    key: Key,
    state: Tree,
    data: Batch,
    span: Array,
) -> tuple[Tree, Tree, Any]:
    """`num_records` times: `thin` steps, then a record of the state. Counts are traced: one program serves all.

    Steps are numbered from the start of the chain, and each takes its key and its batch from its number.
    """
    first, num_records, thin = span
    batch_key, step_key = jax.random.split(key)

    def step(number: Array, state: Tree) -> tuple[Tree, Any]:
        batch = data if batch_size is None else minibatch(batch_key, number, data, batch_size)
        return method.step(jax.random.fold_in(step_key, number), model, state, batch)

    def record(index: Array, carry: tuple[Tree, Tree, Any]) -> tuple[Tree, Tree, Any]:
        state, draws, infos = carry
        begin = first + index * thin

        def repeat(offset: Array, carry: tuple[Tree, Any]) -> tuple[Tree, Any]:
            state, info = step(begin + offset, carry[0])
            return state, jax.tree.map(_newest, carry[1], info)

        state, info = jax.lax.fori_loop(0, thin, repeat, (state, _zeros(info_shape)))
        return state, _store(draws, index, method.draw(model, state)), _store(infos, index, info)

    info_shape = jax.eval_shape(step, first, state)[1]
    draw_shape = jax.eval_shape(partial(method.draw, model), state)
    carry = (state, _zeros(draw_shape, max_records), _zeros(info_shape, max_records))
    return jax.lax.fori_loop(0, num_records, record, carry)


def _newest(old: Array, new: Array) -> Array:
    """Infos of the steps between two records: flags add up, figures are those of the last step."""
    return old | new if new.dtype == jnp.bool_ else new


def _store(rows: Tree, index: Array, row: Tree) -> Tree:
    """Write one record into its buffer: a slice update, which is done in place (a scatter is not)."""
    return jax.tree.map(lambda rows, row: jax.lax.dynamic_update_index_in_dim(rows, row, index, 0), rows, row)


def _zeros(shapes: Tree, *leading: int) -> Tree:
    return jax.tree.map(lambda leaf: jnp.zeros((*leading, *leaf.shape), leaf.dtype), shapes)


def _head(tree: Tree, num: int) -> Tree:
    """The records that were written. Copied: a view would keep the whole buffer of every chunk in memory."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:num].copy(), tree)


def _row(tree: Tree, index: int) -> Tree:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _collect(chains: list[Chain], seconds: float, seed: int, interrupted: bool) -> Run:
    """Chains side by side, cut to the shortest: an interrupted run must stay a rectangle."""

    def join(pieces: list[list[Tree]]) -> Tree:
        if not all(pieces):
            return None
        whole = [jax.tree.map(lambda *parts: np.concatenate(parts), *piece) for piece in pieces]
        shortest = min(len(jax.tree.leaves(tree)[0]) for tree in whole) if jax.tree.leaves(whole[0]) else 0
        return jax.tree.map(lambda *leaves: np.stack([leaf[:shortest] for leaf in leaves]), *whole)

    states = jax.tree.map(lambda *leaves: np.stack(jax.device_get(leaves)), *[chain.state for chain in chains])
    draws = join([chain.draws for chain in chains])
    infos = join([chain.infos for chain in chains])
    warmup = join([chain.warmup_infos for chain in chains])
    return Run(states, draws, infos, warmup, seconds, seed, interrupted)


def _tell_interrupted(chains: list[Chain], plan: Plan) -> None:
    kept = min(chain.num_kept for chain in chains)
    if kept == 0:
        raise KeyboardInterrupt("interrupted during warm-up: nothing has been drawn yet")
    warnings.warn(
        f"interrupted: the result holds the {kept} of {plan.num_draws} records per chain that were done",
        stacklevel=4,
    )


def _failure(method: Method, model: Model, step: int, result: Run) -> NonFiniteError:
    posterior = method.posterior(model, result) if result.infos is not None else None
    kept = "error.posterior holds the last good state. " if posterior is not None else ""
    return NonFiniteError(
        f"{type(method).__name__} went non-finite at step {step}. {kept}To mend it: {method.advice}.",
        step,
        posterior,
    )
