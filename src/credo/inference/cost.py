"""`credo.plan`: what a fit will cost before it starts, in memory, gradients and seconds, here and at other sizes.

The fit itself is begun: its step is compiled and run for about a second, on as many chains as run at once. At other
sizes a step of g gradients of W weights at R rows takes

    g · (overhead + work · W · R)

where the overhead is this machine's, measured once in a process, and the work is what is left of the measured step;
that of this machine where the step is too small to tell.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from credo import models, networks
from credo._compilation_cache import keep_programs
from credo._html import InNotebook
from credo._machine import memory_limit
from credo._precision import for_threads
from credo._text import size_in_words
from credo.data import FileData
from credo.inference.auto import Choice, choose
from credo.inference.engine.driver import RECORDS_PER_CHUNK, Driver
from credo.inference.engine.feed import Feed, require_by_batch
from credo.inference.fitting_memory import refuse_if_too_large
from credo.inference.method import Method
from credo.inference.needs import Needs, bytes_allowed
from credo.inference.plan import Plan
from credo.inference.point.map import MAP
from credo.inference.registry import as_method
from credo.models.program import Model

# A step is measured for so long, and the rounds that count are those of the later half: the first ones are short.
SECONDS_MEASURED, SHARE_COUNTED = 1.0, 0.5
# A step tells what its work costs only if that is most of it.
TELLING = 2.0
# What is shown beside the size that was asked for.
FACTORS = (10, 100)


class Measured(NamedTuple):
    """Of a run that was begun: seconds to compile, seconds and gradients of a step of a chain, chains at once.

    `keeps_draws` says whether something is stored of each record.
    """

    compiling: float
    per_step: float
    gradients: float
    at_once: int
    keeps_draws: bool


class Size(NamedTuple):
    """What a fit of another size takes: bytes of memory, seconds, and whether it fits into the memory there is."""

    num_bytes: float
    seconds: float
    fits: bool

    def __str__(self) -> str:
        return f"{size_in_words(self.num_bytes)}, {time_in_words(self.seconds)}{'' if self.fits else ': does not fit'}"


@dataclass(frozen=True)
class Cost(InNotebook):
    """What a fit will cost.

    Arguments:
        why: this method, where the user left it open.
        needs: of memory.
        rows, rows_per_step: in all, and of one gradient.
        runs: steps of a chain, chains, and what was measured, of each run of the engine: one, or two where the first
            finds where to start.
    """

    method: str
    why: str
    needs: Needs
    rows: int
    rows_per_step: int
    runs: tuple[tuple[int, int, Measured], ...]

    @property
    def num_gradients(self) -> int:
        """Of all chains."""
        return round(sum(steps * chains * one.gradients for steps, chains, one in self.runs))

    @property
    def seconds(self) -> float:
        """On this machine, compiling included."""
        return self.at().seconds

    def at(self, *, rows: float = 1.0, weights: float = 1.0, draws: float = 1.0, chains: float = 1.0) -> Size:
        """The same with so many times the rows, the weights of the network, the draws (or steps), the chains."""
        needs = self.needs
        grown = rows if self.rows_per_step == self.rows else 1.0
        seconds = 0.0
        for steps, num_chains, one in self.runs:
            # Exact at the size that was measured.
            more = weights * grown - 1
            per_step = one.per_step + (more * self._work_of_step(one) if more else 0.0)
            rounds = np.ceil(round(num_chains * chains) / one.at_once)
            seconds += one.compiling + rounds * steps * draws * per_step
        kept = draws * chains if self.runs[-1][2].keeps_draws else chains
        stored = needs.num_bytes * weights * kept
        passing = needs.data_bytes * rows + needs.activation_bytes * grown * np.sqrt(weights)
        return Size(stored + passing, seconds, stored + passing <= bytes_allowed())

    def _work_of_step(self, one: Measured) -> float:
        """The seconds of a step that grow with weights and rows."""
        overhead, work = machine()
        if one.per_step > TELLING * overhead * one.gradients:
            return one.per_step - overhead * one.gradients
        return one.gradients * work * self.needs.num_parameters * self.rows_per_step

    def others(self) -> Iterator[tuple[str, Size]]:
        """Other sizes in words, and what they take."""
        for name in ("rows", "weights", "draws", "chains"):
            for factor in FACTORS:
                yield f"{factor} × the {name}", self.at(**{name: factor})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "method": self.method,
            "why": self.why,
            "num_parameters": self.needs.num_parameters,
            "rows": self.rows,
            "rows_per_gradient": self.rows_per_step,
            "gradients": self.num_gradients,
            "bytes": self.needs.total_bytes,
            "bytes_allowed": bytes_allowed(),
            "seconds": self.seconds,
            "others": {name: size._asdict() for name, size in self.others()},
        }

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        compiling = sum(one.compiling for _, _, one in self.runs)
        here = self.at()
        return "\n".join(
            [
                f"{self.method}{why}",
                f"memory: {size_in_words(here.num_bytes)}; there may be {size_in_words(bytes_allowed())}, half of "
                f"{memory_limit()}",
                f"  {self.needs}",
                f"work: {self.num_gradients:,} gradients of {self.rows_per_step:,} of {self.rows:,} rows",
                f"time: {time_in_words(here.seconds)} on this machine, {time_in_words(compiling)} of it to compile",
                *(f"{name}: {size}" for name, size in self.others()),
            ]
        )


def plan(model: Model, data: Any, method: Method | Choice | str = "auto", *, seed: int = 0) -> Cost:
    """What `credo.fit(model, data, method)` will cost, at the price of compiling it and of a second.

    What would not fit into memory is refused, with settings that would. Warm-up and sampling are taken to cost alike,
    and trajectories (NUTS, HMC) to stay as long as they were in that second; what comes after the steps, such as the
    curvature of Laplace, is not counted.

    Arguments:
        model, data, method, seed: as for `credo.fit`.

    >>> from credo import SGLD, datasets, models, networks
    >>> cost = plan(models.regression(networks.MLP([10], out=1)), datasets.gap(), SGLD(num_samples=10, num_warmup=90))
    >>> cost.num_gradients, bool(cost.seconds < cost.at(draws=1000).seconds)
    (760, True)
    """
    keep_programs()
    everything = data if isinstance(data, FileData) else model.suited(data)
    if method == "auto":
        method = choose(model, everything)
    choice = method if isinstance(method, Choice) else Choice(as_method(method))
    bound, chosen = model.bind(everything), choice.method
    refuse_if_too_large([(chosen, bound)], everything)
    own = chosen.plan()
    stages = [(chosen, own)]
    if isinstance(own.start, Method):
        stages.insert(0, (own.start, replace(own.start.plan(), num_chains=own.num_chains)))
    runs = tuple((one.num_steps, one.num_chains, measured(way, one, bound, everything, seed)) for way, one in stages)
    num_rows = everything.num_labelled
    rows_per_step = min(own.batch_size or num_rows, num_rows)
    return Cost(type(chosen).__name__, choice.why, chosen.describe(bound, everything), num_rows, rows_per_step, runs)


def measured(method: Method, plan: Plan, model: Model, data: Any, seed: int = 0) -> Measured:
    """Begin a run, on as many chains as run at once."""
    files = data if isinstance(data, FileData) else None
    if files is not None:
        require_by_batch(type(method).__name__, plan)
    with nullcontext() if files is None else Feed(files, plan, seed) as feed:
        driver = Driver(method, model, plan, RECORDS_PER_CHUNK, feed=feed)
        size = driver.group_size()
        at_once = min(plan.num_chains, driver.num_workers * size)
        began = time.perf_counter()
        driver.plan = replace(plan, num_chains=at_once)
        _, units = driver.start_all(seed, None, model.with_inputs(data.batch()), None)
        driver.plan = plan
        driver.compile(units)
        compiling = time.perf_counter() - began
        rounds: list[tuple[float, int, float]] = []
        with ThreadPoolExecutor(len(units)) as pool:
            began = time.perf_counter()
            while time.perf_counter() - began < SECONDS_MEASURED:
                rounds.append(_round(pool, driver, units))
                if any(chain.finished for unit in units for chain in getattr(unit, "chains", [unit])):
                    break
    # The latest rounds, of at least half of the time; when a chain has ended, all.
    seconds, counted = sum(one[0] for one in rounds), list[tuple[float, int, float]]()
    for one in reversed(rounds):
        counted.append(one)
        if sum(part[0] for part in counted) >= SHARE_COUNTED * seconds:
            break
    taken, steps, gradients = (sum(part) for part in zip(*counted, strict=True))
    draw = jax.eval_shape(partial(method.draw, model), getattr(units[0], "chains", units)[0].state)
    beside = method.networks_per_step
    return Measured(compiling, taken / steps, gradients / steps * beside, at_once, bool(jax.tree.leaves(draw)))


def _round(pool: ThreadPoolExecutor, driver: Driver, units: Any) -> tuple[float, int, float]:
    """Seconds, steps of a chain, and gradients of a chain in a chunk of each unit."""
    first = getattr(units[0], "chains", units)[0]
    before, began = first.step, time.perf_counter()
    list(pool.map(for_threads(driver.advance), units))
    seconds, steps = time.perf_counter() - began, first.step - before
    infos = (first.infos or first.warmup_infos)[-1]
    per_step = float(np.mean(infos.num_leapfrogs)) if hasattr(infos, "num_leapfrogs") else 1.0
    return seconds, steps, steps * per_step


@lru_cache(maxsize=1)
def machine() -> tuple[float, float]:
    """Seconds that a gradient takes on this machine beside its work, and for each weight and row."""
    rng = np.random.default_rng(0)
    found = []
    for width, num_rows in ((2, 16), (50, 1024)):
        data = rng.normal(size=(num_rows, 8)), rng.normal(size=num_rows)
        model = models.regression(networks.MLP([width, width], out=1)).bind(data)
        way = MAP()
        per_step = measured(way, way.plan(), model, model.suited(data)).per_step
        found.append((per_step, model.num_parameters * num_rows))
    (small, few), (large, many) = found
    work = max(large - small, 0.0) / (many - few)
    return small, work


def time_in_words(seconds: float) -> str:
    """A time that people read.

    >>> time_in_words(0.23), time_in_words(75.0), time_in_words(7200.0)
    ('0.2 s', '1.2 min', '2.0 h')
    """
    for unit, length in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
