"""Damaged folders: `credo.load` and `Run.load` give exactly the right answer, or refuse with one sentence.

Where the checksums were made anew, whoever did it meant it, and the answer may be another one: then it is finite, and
nothing but a refusal can happen on the way.
"""

import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import credo
from credo.runs import Run
from credo.testing import same_bits
from tests.attack import corpus, damage
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, Wrong, at_most, refused, require_sentence, right

# What a load may take beyond what the process has; the largest posterior of the corpus has some kilobytes.
ROOM = 4 * 2**30
# One in so many folders that load is asked for a prediction: that takes fifty times as long as loading it.
ASKED = 6


@dataclass(eq=False)
class Entry:
    """A folder of the corpus, with what it holds and says."""

    folder: Path
    tables: Path

    @cached_property
    def files(self) -> damage.Files:
        return damage.read(self.folder)

    @cached_property
    def loaded(self) -> Any:
        return self.load(self.folder)

    @cached_property
    def answer(self) -> np.ndarray:
        return self.ask(self.loaded)

    def load(self, folder: Path) -> Any:
        return Run.load(folder) if corpus.is_run(self.folder) else credo.load(folder)

    def ask(self, loaded: Any) -> np.ndarray:
        """Some numbers that depend on all of it."""
        if isinstance(loaded, Run):
            (frame,) = loaded.predict(self.tables / "test.csv", unknown="missing")
            return frame.select(frame.columns[:2]).to_numpy()
        prediction = loaded.predict(corpus.PLACES)
        return np.stack([prediction.mean, prediction.variance])

    def same(self, loaded: Any) -> bool:
        """Whether two have the same parts, from which the same answers follow."""
        if isinstance(loaded, Run):
            mine = self.loaded
            return (mine.config, mine.encoding) == (loaded.config, loaded.encoding) and _same(
                mine.posterior, loaded.posterior
            )
        return _same(self.loaded, loaded)


def _same(one: Any, other: Any) -> bool:
    scalings = [posterior.scaling.to_dict() for posterior in (one, other)]
    return (
        same_bits(one, other)
        and [model.config for model in one.models] == [model.config for model in other.models]
        and all(np.array_equal(scalings[0][name], scalings[1][name]) for name in scalings[0] | scalings[1])
    )


def prepare(folder: Path) -> Case:
    known = [Entry(entry, folder / "tables") for entry in corpus.entries(folder)]

    def case(rng: np.random.Generator) -> Outcome:
        entry = known[rng.integers(len(known))]
        others = [other.files for other in known if other is not entry]
        is_signed = rng.random() < 0.5
        files = (damage.resigned if is_signed else damage.damaged)(rng, entry.files, others)
        place = Path(tempfile.mkdtemp(dir=folder)) / "it"
        try:
            place.mkdir()
            damage.write(files, place)
            with at_most(60), bounded_memory():
                # With the manifest of another, and all that it names, a folder is that other one.
                manifest = files.get("manifest.json")
                owner = next((one for one in known if one.files["manifest.json"] == manifest), entry)
                return judged(owner, place, is_signed=is_signed, is_asked=rng.integers(ASKED) == 0)
        finally:
            damage.remove(place.parent)

    return case


def judged(entry: Entry, place: Path, *, is_signed: bool, is_asked: bool) -> Outcome:
    try:
        loaded = entry.load(place)
    except credo.LoadError as error:
        require_sentence(error)
        return refused
    if not is_signed and not entry.same(loaded):
        raise Wrong("a damaged folder loads as something else", sorted(path.name for path in place.iterdir()))
    if is_asked:
        try:
            answer = entry.ask(loaded)
        except ValueError as error:
            if not (is_signed and isinstance(loaded, Run)):
                raise
            # Columns of other names or kinds are another table's, which this one does not fit.
            require_sentence(error)
            return refused
        if not np.isfinite(answer).all():
            raise Wrong("an answer that is not finite", answer)
        if not is_signed and answer.tobytes() != entry.answer.tobytes():
            raise Wrong("a damaged folder gives another answer", answer)
    return right


@contextmanager
def bounded_memory() -> Iterator[None]:
    """What is allocated for sizes that a file only claims shows as a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
