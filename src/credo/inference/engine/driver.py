"""The driver: runs every method as compiled chunks and owns the loop around them.

Inside a chunk everything is on the device: steps, minibatches, the draws that are kept. Between chunks, on the
host: progress, checkpoints, health checks, early stop, Ctrl-C. The key of a step depends on the seed, the chain and
the step number only, so the draws are the same bits whatever the chunk size.

Chains do not wait for each other: lock-step chains would all pay for the longest trajectory. Each runs a program
of its own in a pool of threads (compiled code does not hold the interpreter's lock), with a worker per core, or
per lane where there are several devices: those of a lane compute one chain together, each a share of the rows.
Where all steps cost the same and the network is small, there is nothing to wait for, and most of a step is
overhead: each worker then takes a `Group` of chains as one axis of one program.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from credo import random
from credo._machine import available_cores
from credo._mesh import Lane, lanes_of
from credo._precision import for_threads
from credo._processes import exchanged, is_first
from credo._progress import StepBar
from credo._stopping import STOP
from credo.data import FileData
from credo.inference.engine import compiled, meeting
from credo.inference.engine.chain import Chain, Group, Result
from credo.inference.engine.checkpoint import Stage
from credo.inference.engine.ending import collected, failure, tell_interrupted
from credo.inference.engine.feed import Feed
from credo.inference.engine.meeting import Meeting
from credo.inference.method import Method
from credo.inference.outcome import Outcome
from credo.inference.plan import Plan
from credo.models.program import Model
from credo.typing import Batch, Theta, Tree

# A chunk is long enough to hide the host's work (under a millisecond), and short enough for a live progress bar
# and a prompt answer to Ctrl-C.
SECONDS_PER_CHUNK = 0.25
# What a chunk records waits in buffers on the device: at most this many records, and of draws at most this many bytes,
# because every chunk begins by clearing them.
RECORDS_PER_CHUNK = 4096
BYTES_PER_CHUNK = 2**22


class Driver:
    """Runs a method on a model: compiles its chunk once, and keeps all chains moving."""

    def __init__(
        self,
        method: Method,
        model: Model,
        plan: Plan,
        records_per_chunk: int,
        mesh: Mesh | None = None,
        feed: Feed | None = None,
    ) -> None:
        self.method, self.model, self.plan, self.feed = method, model, plan, feed
        self.max_records = self.max_draws = records_per_chunk
        self.lanes = lanes_of(mesh, plan.num_chains)
        # Programs that run at once on one device share its cores; of several devices, each has one at a time, and all
        # that work together have the same one.
        is_alone = sum(max(1, len(lane.devices)) for lane in self.lanes) == 1
        self.workers_per_lane = available_cores() if is_alone else 1
        self.num_workers = self.workers_per_lane * len(self.lanes)
        # Of several processes, each has some of the lanes.
        self.is_together = mesh is not None and jax.process_count() > 1

    def group_size(self, held_out: Batch | None = None) -> int:
        """How many chains share a program: one, unless they can run in lock-step and it pays.

        Looking at held-out data is a branch that is rarely taken; chains in lock-step would take it at every step.
        """
        return 1 if held_out is not None else self.plan.group_size(self.model.num_parameters, self.num_workers)

    def lane(self, worker: int) -> Lane:
        """Where a worker computes."""
        return self.lanes[worker % len(self.lanes)]

    def placed(self, lane: Lane, data: Batch) -> Batch:
        """Data where a lane needs them: each device has a share of the rows, or all where steps choose some of them."""
        takes_all = self.plan.batch_size is None and self.plan.rows == "all"
        return lane.shared(data) if takes_all else lane.whole(data)

    def start(
        self, index: int, seed: int, theta: Theta | None, data: Batch, held_out: Batch | None, worker: int | None = None
    ) -> Chain:
        """A chain at step 0, in the lane of its worker, with keys of its own."""
        lane = self.lane(index if worker is None else worker)
        if not lane.is_mine:
            # Only its shapes: what it comes to is told by others.
            given = (self.method, self.model, random.key(seed), index, theta, data, held_out)
            return Chain(index, None, compiled.begin.eval_shape(*given)[1], data, None, lane)
        theta, data, held_out = lane.whole(theta), self.placed(lane, data), lane.whole(held_out)
        with lane.at_work():
            own = lane.whole(random.key(seed))
            key, state, rows = compiled.begin(self.method, self.model, own, index, theta, data, held_out)
        finished = bool(self.method.finished(jax.device_get(state) if lane.is_spread else state))
        return Chain(index, key, state, data, rows, lane, finished=finished)

    def start_all(
        self, seed: int, starts: Theta | None, data: Batch, held_out: Batch | None, stage: Stage | None = None
    ) -> tuple[list[Chain], list[Chain | Group]]:
        """All chains at step 0, or where they stood, and the same chains in the groups that advance together."""
        written = stage.load() if stage is not None and (is_first() or not self.is_together) else {}
        size = (stage.group_size if stage is not None else None) or self.group_size(held_out)
        size = exchanged(size)[0] if self.is_together else size
        thetas = [_row(starts, index) if starts is not None else None for index in range(self.plan.num_chains)]
        chains = [
            self.start(index, seed, theta, data, held_out, worker=index // size) for index, theta in enumerate(thetas)
        ]
        members = [chains[first : first + size] for first in range(0, len(chains), size)]
        for first, one in written.items():
            one.restore_states(members[first // size], self.plan)
        if stage is not None:
            stage.group_size = size
        if written:
            own = next(chain for chain in chains if chain.lane.is_mine)
            with own.lane.at_work():
                _, *records = jax.eval_shape(partial(compiled.chunk, *self._static(own)), *self._arrays(own, 0, 1))
            for first, one in written.items():
                one.restore_records(members[first // size], *records)
        self.meeting = Meeting(chains)
        if self.is_together:
            self.meeting.share(chains if written else [])
        units: list[Chain | Group] = list(chains)
        if size > 1:
            units = [Group.of(own, size) for own in members]
        return chains, units

    def compile(self, units: Sequence[Chain | Group]) -> None:
        """Compile before the threads start, by running a chunk of no steps in each lane."""
        draw = jax.eval_shape(partial(self.method.draw, self.model), _chains_of(units[0])[0].state)
        bytes_per_draw = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(draw))
        bytes_per_draw *= len(_chains_of(units[0]))
        self.max_draws = max(1, min(self.max_records, BYTES_PER_CHUNK // max(bytes_per_draw, 1)))
        # The first units are in lanes of their own.
        for unit in _unfinished(units)[: len(self.lanes)]:
            jax.block_until_ready(self.chunk(unit, num_records=0, thin=1))

    def chunk(self, unit: Chain | Group, *, num_records: int, thin: int) -> tuple[Tree, Tree, Any]:
        with unit.lane.at_work():
            return compiled.chunk(*self._static(unit), *self._arrays(unit, num_records, thin))

    def _static(self, unit: Chain | Group) -> tuple[Any, ...]:
        """What a chunk is compiled for."""
        return self.method, self.model, self.plan, (self.max_records, self.max_draws), isinstance(unit, Group)

    def _arrays(self, unit: Chain | Group, num_records: int, thin: int) -> tuple[Any, ...]:
        """What a chunk of so many records is computed from."""
        span = np.array([_step_of(unit), num_records, thin], np.int32)
        ahead = None if self.feed is None else unit.lane.whole(self.feed.ahead(unit, num_records * thin))
        return unit.key, unit.state, unit.data, unit.rows, span, ahead

    def drive(self, units: Sequence[Chain | Group], bar: StepBar, stage: Stage | None = None) -> bool:
        """Keep all workers busy until every chain has finished; True if Ctrl-C came first."""
        chains = [chain for unit in units for chain in _chains_of(unit)]
        interrupted = False
        waiting: dict[Lane, deque[Chain | Group]] = {lane: deque() for lane in self.lanes}
        for unit in _unfinished(units):
            waiting[unit.lane].append(unit)
        running: dict[Future[bool], Chain | Group] = {}
        with ThreadPoolExecutor(min(self.num_workers, len(units))) as pool:
            advance = for_threads(self.advance)

            def begin_next(lane: Lane) -> None:
                if waiting[lane]:
                    unit = waiting[lane].popleft()
                    running[pool.submit(advance, unit)] = unit

            try:
                for lane in self.lanes * self.workers_per_lane:
                    begin_next(lane)
                while running:
                    STOP.raise_if_asked()
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        unit = running.pop(future)
                        future.result()
                        self.show(bar, chains)
                        if stage is not None:
                            stage.note(_chains_of(unit))
                        if not _chains_of(unit)[0].finished:
                            # To the back of the queue, so that all chains advance together.
                            waiting[unit.lane].append(unit)
                        begin_next(unit.lane)
            except BaseException as error:
                for future in running:
                    future.cancel()
                if not isinstance(error, KeyboardInterrupt):
                    raise
                interrupted = True
        if interrupted and stage is not None:
            # No worker is at work any more: all chains stand between two chunks.
            for unit in units:
                stage.note(_chains_of(unit), at_once=True)
        return interrupted

    def drive_together(self, units: Sequence[Chain | Group], bar: StepBar, stage: Stage | None = None) -> bool:
        """The same with other processes, round by round, between which all meet."""
        interrupted = False
        own = [chain for unit in units if unit.lane.leads for chain in _chains_of(unit)]
        while not interrupted and _unfinished(units):
            asked = self._round(units, bar)
            interrupted = self.meeting.share(own, asked)
            if stage is not None and is_first():
                for unit in units:
                    stage.note(_chains_of(unit), at_once=interrupted)
        return interrupted

    def _round(self, units: Sequence[Chain | Group], bar: StepBar) -> bool:
        """Every lane of this process goes on for a while; True if Ctrl-C came."""
        asked, ends = threading.Event(), time.perf_counter() + meeting.SECONDS_PER_ROUND

        def is_over() -> bool:
            return asked.is_set() or STOP.signal is not None or time.perf_counter() > ends

        def go_on(lane: Lane) -> None:
            # The same order in all processes of a lane.
            queue = deque(sorted(_unfinished([unit for unit in units if unit.lane == lane]), key=_step_of))
            while queue and self.advance(queue[0], is_over=is_over):
                queue.rotate(-1)
                queue = deque(_unfinished(queue))

        chains = [chain for unit in units for chain in _chains_of(unit)]
        with ThreadPoolExecutor(len(self.lanes)) as pool:
            running = {pool.submit(for_threads(go_on), lane) for lane in self.lanes if lane.is_mine}
            while running:
                try:
                    done, running = wait(running, timeout=SECONDS_PER_CHUNK)
                    for future in done:
                        future.result()
                    self.show(bar, chains)
                except KeyboardInterrupt:
                    asked.set()
        return asked.is_set() or STOP.signal is not None

    def show(self, bar: StepBar, chains: Sequence[Chain]) -> None:
        """Show how far the chains are."""
        if bar.disable:
            return
        newest = [chain.infos[-1:] or chain.warmup_infos[-1:] for chain in chains]
        line = next((self.method.status_line(infos[0]) for infos in newest if infos), "")
        warming_up = any(self.plan.warmup_left(chain.step) > 0 for chain in chains)
        name = f"{type(self.method).__name__}{' warm-up' if warming_up else ''}"
        bar.move(name, sum(chain.step for chain in chains), line)

    def advance(self, unit: Chain | Group, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Bring a chain, or a group of them, forward by one chunk, and look after its health; False if it is over.

        Arguments:
            is_over: whether no further chunk is to begin; asked in each process of its lane, and over for all if for
                one.
        """
        plan, chains = self.plan, _chains_of(unit)
        first = chains[0]
        warmup_left = plan.warmup_left(first.step)
        warming_up = warmup_left > 0
        left = warmup_left if warming_up else plan.num_records - first.num_kept % plan.num_records
        thin = 1 if warming_up else plan.thin
        # The draws of a warm-up are not kept, and need no room.
        room = self.max_records if warming_up else self.max_draws
        room = room if self.feed is None else min(room, self.feed.num_steps // thin)
        num_records = unit.lane.agreed(0 if is_over() else min(first.records_per_chunk, left, room))
        if num_records == 0:
            return False
        began = time.perf_counter()
        state, draws, infos = jax.block_until_ready(self.chunk(unit, num_records=num_records, thin=thin))
        if unit.lane.is_spread:
            state = jax.device_get(state)
        seconds = time.perf_counter() - began

        kept = () if warming_up else _head(draws, num_records)
        results = _by_chain(unit, state, kept, _head(infos, num_records))
        for chain, result in zip(chains, results, strict=True):
            chain.failed_at = self._failed_at(result, chain.step, thin)
        if any(chain.failed_at is not None for chain in chains):
            # They keep the states in which the chunk began: the last ones known to be good.
            for chain in chains:
                chain.finished = True
            return True
        unit.state = state
        for chain, result in zip(chains, results, strict=True):
            chain.state, chain.step = result.state, chain.step + thin * num_records
            if warming_up:
                chain.warmup_infos.append(result.infos)
            else:
                chain.infos.append(result.infos)
                chain.draws.append(result.draws)
                chain.num_kept += num_records
        finished = first.step == plan.num_steps or all(bool(self.method.finished(chain.state)) for chain in chains)
        # At most four times longer than the last: one quick step does not promise that the next are quick too.
        affordable = int(num_records * SECONDS_PER_CHUNK / max(seconds, 1e-9))
        if warming_up and num_records == left:
            # What a warm-up takes, and one that rests takes nothing, tells little about the records that follow.
            affordable = 1
        for chain in chains:
            chain.finished = finished
            chain.records_per_chunk = max(1, min(affordable, 4 * num_records))
        return True

    def _failed_at(self, result: Result, step: int, thin: int) -> int | None:
        """The step at which a chain went non-finite, if it did."""
        finite = np.append(np.isfinite(result.infos.log_joint), bool(self.method.healthy(result.state)))
        return None if np.all(finite) else step + thin * int(np.argmin(finite))


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
    stage: Stage | None = None,
    mesh: Mesh | None = None,
    records_per_chunk: int = RECORDS_PER_CHUNK,
    files: FileData | None = None,
) -> Outcome:
    """Run all chains of a method to their end, or to Ctrl-C.

    Arguments:
        plan: in place of the method's own (more members, for instance).
        starts: theta with a leading axis of chains; by default each starts where the method says.
        held_out: data to stop early by.
        progress: a live bar on stderr; by default where stderr is a terminal.
        stage: where the run is written down as it goes, and may go on from.
        mesh: the devices: chains along one axis, rows of the data along the other.
        records_per_chunk: the longest chunk; the result does not depend on it.
        files: where the rows are, if `data` are but some of them.
    """
    plan, data = plan or method.plan(), model.with_inputs(data)
    began = time.perf_counter()
    with nullcontext() if files is None else Feed(files, plan, seed) as feed:
        driver = Driver(method, model, plan, records_per_chunk, mesh, feed)
        chains, units = driver.start_all(seed, starts, data, held_out, stage)
        driver.compile([unit for unit in units if unit.lane.is_mine])
        bar = StepBar(type(method).__name__, plan.num_chains * plan.num_steps, show=progress)
        drive = driver.drive_together if driver.is_together else driver.drive
        # Without a place to write them down there is nothing to save of the chains.
        with bar, STOP.heard() if stage is not None else nullcontext():
            interrupted = drive(units, bar, stage)
    before = stage.seconds_before if stage is not None else 0.0
    result = collected(chains, data, before + time.perf_counter() - began, seed, interrupted)
    if interrupted:
        tell_interrupted(chains, plan)
    failed = [chain.failed_at for chain in chains if chain.failed_at is not None]
    if failed:
        raise failure(method, model, min(failed), result)
    return result


def _head(tree: Tree, num: int) -> Tree:
    """The records that were written. Copied: a view would keep the whole buffer of every chunk in memory."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:num].copy(), tree)


def _row(tree: Tree, index: int) -> Tree:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _step_of(unit: Chain | Group) -> int:
    return _chains_of(unit)[0].step


def _unfinished(units: Iterable[Chain | Group]) -> list[Chain | Group]:
    return [unit for unit in units if not _chains_of(unit)[0].finished]


def _chains_of(unit: Chain | Group) -> list[Chain]:
    return unit.chains if isinstance(unit, Group) else [unit]


def _by_chain(unit: Chain | Group, state: Tree, draws: Tree, infos: Any) -> list[Result]:
    """The results of a chunk by chain: views of what a group computed together."""
    if isinstance(unit, Chain):
        return [Result(state, draws, infos)]
    state = jax.device_get(state)

    def of(index: int) -> Result:
        records = jax.tree.map(lambda leaf: leaf[:, index], (draws, infos))
        return Result(_row(state, index), *records)

    return [of(index) for index in range(len(unit.chains))]
