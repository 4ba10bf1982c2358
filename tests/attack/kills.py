"""SIGKILL at random moments of real fits of every method; resumed, also those are killed, until one ends: same bits."""

import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from credo.inference.registry import METHODS
from tests.attack import forks
from tests.attack.kinds import Case
from tests.attack.outcomes import KILLS, RIGHT, Outcome, Wrong, require_one_line
from tests.attack.saved import require_same

# Of one fit, before it is left in peace.
MAX_KILLS = 6


def prepare(folder: Path) -> Case:
    forks.import_everything()
    library = forks.Library(folder)

    def case(rng: np.random.Generator) -> Outcome:
        config = library.config(forks.chosen(rng, sorted(METHODS)))
        reference, seconds = library.run(config), library.duration(config)
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            return killed_and_resumed(rng, config, place / "run", seconds, reference)
        finally:
            shutil.rmtree(place)

    return case


def killed_and_resumed(rng: np.random.Generator, config: Path, run: Path, seconds: float, reference: Path) -> Outcome:
    num_kills = 0
    for attempt in range(MAX_KILLS + 1):
        options = ("--resume",) if run.exists() else ()
        child = forks.credo(
            *("fit", "--config", config, "--out", run, "--quiet", *options),
            words=run.with_name("words"),
            before=forks.write_at_every_chunk,
        )
        if attempt < MAX_KILLS and killed(rng, child, run.parent, seconds):
            num_kills += 1
            continue
        if child.wait() != 0:
            raise Wrong(f"a run that was killed is refused: {reason(child.stderr)}", child.stderr[-1_000:])
        require_one_line(0, child.stderr, allowed=(0,))
        break
    require_same(run, reference)
    return Counter({RIGHT: 1, KILLS: num_kills})


def killed(rng: np.random.Generator, child: forks.Child, folder: Path, seconds: float) -> bool:
    """Kill at any moment, or soon after something was written; False if it ended before."""
    if rng.random() < 0.4:
        time.sleep(rng.uniform(0, 1.1 * seconds))
    else:
        before = state(folder)
        child.wait_until(lambda: state(folder) != before)
        time.sleep(rng.choice([0.0, 0.002, 0.02, 0.2]) * rng.random())
    return child.send(signal.SIGKILL) and child.wait() == -signal.SIGKILL


def state(folder: Path) -> list[str]:
    """Every file there is, with the moment of its last change."""
    found = []
    for path in folder.rglob("*"):
        try:
            found.append(f"{path} {path.stat().st_mtime_ns}")
        except FileNotFoundError:
            found.append(f"{path} has just gone")
    return [line for line in found if "/words." not in line]


def reason(stderr: str) -> str:
    """The kind of a refusal: what it says, without the names in it."""
    return " ".join(word for word in stderr.split() if "/" not in word)[:120]
