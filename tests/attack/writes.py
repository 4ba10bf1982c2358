"""A kill at any write, simulated: the folder as it was at that moment, its last file cut at any byte.

What a fit, an overwriting, a resumption, a saving over or a simplification does to its folder is recorded once, each
change by itself. A case plays one moment back, and looks whether the folder is the old one, the new one, or can be gone
on with; some go on in fact, and must end with the same bits.
"""

import os
import pickle
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import credo
from credo.inference import fit as fitting
from credo.inference.engine import checkpoint
from credo.inference.registry import METHODS
from credo.runs import Config, Prepared, Run, simplified
from credo.runs import prepare as prepared_run
from tests.attack import corpus
from tests.attack.kinds import Case
from tests.attack.outcomes import KILLS, REFUSED, RIGHT, Outcome, Wrong, at_most, require_sentence
from tests.attack.saved import bits

# One in so many moments is gone on from in fact.
RESUMED = 50
# What writes, and how often it is chosen.
KINDS_OF_WRITES = {"fit": 0.4, "overwrite": 0.25, "resume": 0.15, "save": 0.15, "distill": 0.05}
# Methods of each sort, for what does not depend on the method.
FEW = ["map", "nuts", "laplace", "deep_ensemble"]
# Files by their paths, None for a folder.
State = dict[str, bytes | None]
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")


class Reached(Exception):
    """The fit would begin to compute now."""


# -- recording ---------------------------------------------------------------------------------------------


class Recorder:
    """Every state of a folder while something happens to it: one before each change that Python makes."""

    active: "Recorder | None" = None

    def __init__(self, root: Path) -> None:
        self.root, self.states, self.lock = root, list[State](), threading.RLock()

    def note(self) -> None:
        with self.lock:
            found = state_of(self.root)
            if not self.states or found != self.states[-1]:
                self.states.append(found)

    @classmethod
    def hear(cls, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook, which cannot be taken away again."""
        if cls.active is None:
            return
        opened_to_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in CHANGES or opened_to_write:
            cls.active.note()


def state_of(root: Path) -> State:
    found: State = {}
    for path in sorted(root.rglob("*")):
        try:
            found[str(path.relative_to(root))] = None if path.is_dir() else path.read_bytes()
        except FileNotFoundError:  # by another thread, which is noted in its own turn
            continue
    return found


@contextmanager
def recorded(root: Path) -> Iterator[Recorder]:
    recorder = Recorder(root)
    Recorder.active = recorder
    try:
        yield recorder
    finally:
        Recorder.active = None
        recorder.note()


# -- what is recorded ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Scenario:
    """What happened to a folder: its states, what it may hold as bits, and how to go on with it."""

    name: str
    states: list[State]
    held: list[dict[str, bytes]]
    config: Config | None = None

    @cached_property
    def again(self) -> Prepared:
        assert self.config is not None
        return prepared_run(self.config)

    @cached_property
    def bound(self) -> Any:
        """Its model and data, put together: most of the time of a fit that does not compute."""
        return self.again.model.bind(self.again.data)

    @property
    def is_fit(self) -> bool:
        return self.config is not None

    def load(self, folder: Path) -> Any:
        return credo.load(folder) if self.name.startswith("save") else Run.load(folder)


class Scenarios:
    """Each recorded when it is first asked for, and kept for the processes that come after."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tables, self.kept = folder, folder / "tables", folder / "scenarios"
        self.kept.mkdir(exist_ok=True)
        self.known: dict[str, Scenario] = {}
        self.saved = sorted(path.name for path in (folder / "posteriors").iterdir())

    def chosen(self, rng: np.random.Generator) -> Scenario:
        kind = str(rng.choice(list(KINDS_OF_WRITES), p=list(KINDS_OF_WRITES.values())))
        names = {"fit": sorted(METHODS), "save": self.saved, "distill": [""]}.get(kind, FEW)
        return self.scenario(kind, names[rng.integers(len(names))])

    def scenario(self, kind: str, name: str) -> Scenario:
        path = self.kept / f"{kind}-{name}"
        if path.name not in self.known and path.exists():
            self.known[path.name] = pickle.loads(path.read_bytes())
        if path.name not in self.known:
            with tempfile.TemporaryDirectory(dir=self.folder) as root:
                self.known[path.name] = getattr(self, f"_{kind}")(name, Path(root))
            fresh = path.with_name(f"{path.name}-{os.getpid()}")
            fresh.write_bytes(pickle.dumps(replace(self.known[path.name])))
            fresh.rename(path)
        return self.known[path.name]

    def _config(self, method: str, seed: int = 0) -> Config:
        return corpus.config_of(method, self.tables / "train.csv", seed=seed)

    def _fit(self, method: str, root: Path) -> Scenario:
        config = self._config(method)
        with recorded(root) as recorder:
            Run.fit(config, root / "run", progress=False)
        return Scenario(f"fit {method}", recorder.states, [bits(root / "run")], config)

    def _overwrite(self, method: str, root: Path) -> Scenario:
        shutil.copytree(self.folder / "runs" / "map", root / "run")
        old, config = bits(root / "run"), self._config(method, seed=1)
        with recorded(root) as recorder:
            Run.fit(config, root / "run", overwrite=True, progress=False)
        return Scenario(f"overwrite {method}", recorder.states, [old, bits(root / "run")], config)

    def _resume(self, method: str, root: Path) -> Scenario:
        first = self.scenario("fit", method)
        play(first.states, len(first.states) // 2, None, root)
        with recorded(root) as recorder:
            first.again.fit(root / "run", resume=True, progress=False)
        return Scenario(f"resume {method}", recorder.states, first.held, first.config)

    def _save(self, name: str, root: Path) -> Scenario:
        shutil.copytree(self.folder / "posteriors" / "draws", root / "run")
        old, posterior = bits(root / "run"), credo.load(self.folder / "posteriors" / name)
        with recorded(root) as recorder:
            posterior.save(root / "run")
        return Scenario(f"save {name}", recorder.states, [old, bits(root / "run")])

    def _distill(self, _: str, root: Path) -> Scenario:
        """A student in place of a run; that it was taught is not the point."""
        shutil.copytree(self.folder / "runs" / "map", root / "run")
        old, run = bits(root / "run"), Run.load(self.folder / "runs" / "nuts")
        student = credo.load(self.folder / "posteriors" / "student")
        with mock.patch.object(simplified, "distill", return_value=student), recorded(root) as recorder:
            simplified.distilled(run, root / "run", overwrite=True)
        return Scenario("distill", recorder.states, [old, bits(root / "run")])


# -- playing back ------------------------------------------------------------------------------------------


def play(states: list[State], number: int, share: float | None, root: Path) -> str:
    """Make the state of a moment again; with a share, what was written last is cut there. Returns what was done."""
    state = dict(states[number])
    cut = ""
    if share is not None and number:
        before = states[number - 1]
        # What was renamed was whole before, under another name.
        written = [name for name, content in state.items() if content and content not in before.values()]
        for name in written:
            content = state[name] or b""
            state[name] = content[: int(share * len(content))]
            cut = f", {name} cut at {share:.0%}"
    for name, content in state.items():
        path = root / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return f"at change {number} of {len(states)}{cut}: {sorted(state)}"


def prepare(folder: Path) -> Case:
    checkpoint.SECONDS_BETWEEN, checkpoint.SHARE_OF_TIME = 0.0, float("inf")
    sys.addaudithook(Recorder.hear)
    scenarios = Scenarios(folder)

    def case(rng: np.random.Generator) -> Outcome:
        scenario = scenarios.chosen(rng)
        number, share = int(rng.integers(len(scenario.states))), rng.random() if rng.random() < 0.5 else None
        with tempfile.TemporaryDirectory(dir=folder) as root, at_most(120):
            moment = play(scenario.states, number, share, Path(root))
            try:
                return judged(scenario, Path(root) / "run", go_on=rng.integers(RESUMED) == 0)
            except Wrong as error:
                raise Wrong(
                    f"{scenario.name.split()[0]}: {error.what}", f"{scenario.name}, {moment}\n{error}"
                ) from error

    return case


def judged(scenario: Scenario, run: Path, *, go_on: bool) -> Outcome:
    is_whole = run.exists() and loads(scenario, run)
    if is_whole and bits(run) not in scenario.held:
        raise Wrong("what loads after a kill is neither the old nor the new")
    if not scenario.is_fit and not is_whole:
        raise Wrong("what was there is lost")
    if scenario.is_fit and (go_on or not is_whole):
        resumed(scenario, run, in_fact=go_on, is_whole=is_whole)
    return Counter({RIGHT if is_whole else REFUSED: 1, KILLS: 1})


def loads(scenario: Scenario, run: Path) -> bool:
    try:
        scenario.load(run)
    except (ValueError, FileNotFoundError) as error:
        require_sentence(error)
        return False
    return True


def resumed(scenario: Scenario, run: Path, *, in_fact: bool, is_whole: bool) -> None:
    """Go on with the run, up to where it would compute or to its end; an old one can still be replaced."""
    options = {"overwrite": True} if is_whole and bits(run) != scenario.held[-1] else {"resume": run.exists()}
    try:
        if in_fact:
            scenario.again.fit(run, progress=False, **options)
        else:
            with (
                mock.patch.object(type(scenario.bound), "bind", return_value=scenario.bound),
                mock.patch.object(fitting.Job, "fit_chosen", side_effect=Reached),
            ):
                scenario.again.fit(run, progress=False, **options)
    except Reached:
        return
    except (ValueError, OSError) as error:
        raise Wrong("a run that was killed cannot be gone on with", f"{type(error).__name__}: {error}") from error
    if bits(run) != scenario.held[-1]:
        raise Wrong("a run that was killed ends with other bits")
