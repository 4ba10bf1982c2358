"""Damaged checkpoints: an unfinished fit goes on to exactly the same bits, or is refused with one sentence.

Where the checksums were made anew, a changed number may lead elsewhere; then nothing but a refusal can happen.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import credo
from credo import testing
from credo.inference.engine import checkpoint
from tests.attack import damage
from tests.attack.folders import bounded_memory
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, Wrong, at_most, refused, require_sentence, right
from tests.attack.writes import Recorder, State, recorded

METHODS = (
    credo.MAP(num_steps=20, batch_size=7),
    credo.SGLD(num_samples=6, num_warmup=8, num_chains=2, thin=2, batch_size=7),
    credo.Laplace(training=credo.MAP(num_steps=20, batch_size=7)),
)


def prepare(folder: Path) -> Case:
    checkpoint.SECONDS_BETWEEN, checkpoint.SHARE_OF_TIME = 0.0, float("inf")
    sys.addaudithook(Recorder.hear)
    known = [begun(testing.Case(method), folder) for method in METHODS]

    def case(rng: np.random.Generator) -> Outcome:
        fitted, states = known[rng.integers(len(known))]
        files = states[rng.integers(len(states))]
        others = [found for _, all_states in known for found in all_states]
        is_signed = rng.random() < 0.6
        hurt = (damage.resigned if is_signed else damage.damaged)(rng, files, others)
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            damage.write(hurt, place)
            with at_most(120), bounded_memory():
                return judged(fitted, place, is_signed=is_signed)
        finally:
            damage.remove(place)

    return case


def begun(fitted: testing.Case, folder: Path) -> tuple[testing.Case, list[damage.Files]]:
    """The states of the folder of a fit in which something has been done, and not all."""
    with tempfile.TemporaryDirectory(dir=folder) as root, recorded(Path(root)) as recorder:
        fitted.fit(checkpoint=Path(root) / "run", progress=False)
    return fitted, [files for files in map(files_of, recorder.states) if any("checkpoint/" in name for name in files)]


def files_of(state: State) -> damage.Files:
    return {name.removeprefix("run/"): content for name, content in state.items() if content is not None}


def judged(fitted: testing.Case, place: Path, *, is_signed: bool) -> Outcome:
    go_on: Any = partial(fitted.fit, checkpoint=place, resume=True, progress=False)
    try:
        found = go_on()
    except (ValueError, ArithmeticError) as error:
        # What the fit is may be damaged too: then the folder holds something else.
        if not isinstance(error, credo.LoadError | ArithmeticError) and "choose another folder" not in str(error):
            raise
        require_sentence(error)
        return refused
    except OSError as error:
        # Where a folder stands in place of a file, or a link leads nowhere, it cannot be written to.
        require_sentence(error)
        return refused
    if not is_signed and not testing.same_bits(found, fitted.posterior):
        raise Wrong("a fit goes on from a damaged checkpoint to other bits")
    return right
