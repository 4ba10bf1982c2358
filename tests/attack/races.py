"""Several processes on one folder: what it holds in the end, and what readers see meanwhile, is wholly of one."""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import credo
from tests.attack import corpus, forks
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, Wrong, require_one_line, require_sentence, right
from tests.attack.saved import require_same

LOADS = 30


def prepare(folder: Path) -> Case:
    forks.import_everything()
    library = forks.Library(folder)

    def case(rng: np.random.Generator) -> Outcome:
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            races = (several_fits, several_fits, overwritten_while_read, saved_while_loaded)
            return races[rng.integers(len(races))](rng, library, place)
        finally:
            shutil.rmtree(place)

    return case


def several_fits(rng: np.random.Generator, library: forks.Library, place: Path) -> Outcome:
    """Fits of different tables and seeds, on one new folder: one wins, and the others are told so."""
    configs = [library.config("map", other=bool(number % 2), seed=number // 2) for number in range(4)]
    configs = [configs[number] for number in rng.permutation(4)[: rng.integers(2, 5)]]
    references = [library.run(config) for config in configs]
    children = []
    for number, config in enumerate(configs):
        command = ("fit", "--config", config, "--out", place / "run", "--quiet")
        children.append(forks.credo(*command, words=place / f"words{number}"))
        time.sleep(rng.choice([0.0, 0.05]) * rng.random())
    codes = [child.wait() for child in children]
    for child, code in zip(children, codes, strict=True):
        require_one_line(code, child.stderr)
    if 0 not in codes:
        raise Wrong("of several fits on one folder none has won", [child.stderr for child in children])
    require_same(place / "run", *[one for one, code in zip(references, codes, strict=True) if code == 0])
    return right


def overwritten_while_read(rng: np.random.Generator, library: forks.Library, place: Path) -> Outcome:
    """Predictions while a run is replaced are those of the old one, of the new one, or refused."""
    configs = [library.config("map"), library.config("map", seed=1)]
    runs = [library.run(config) for config in configs]
    expected = [answer(library, run, place) for run in runs]
    shutil.copytree(runs[0], place / "run")
    command = ("fit", "--config", configs[1], "--out", place / "run", "--overwrite", "--quiet")
    writer = forks.credo(*command, words=place / "writer")
    time.sleep(rng.uniform(0, library.duration(configs[1])))
    reader = forks.credo("predict", place / "run", library.tables / "test.csv", words=place / "reader")
    require_one_line(reader.wait(), reader.stderr)
    if reader.code == 0 and reader.stdout not in expected:
        raise Wrong("a reader saw a mixture of two runs", reader.stdout)
    require_one_line(writer.wait(), writer.stderr, allowed=(0,))
    require_same(place / "run", runs[1])
    return right


def answer(library: forks.Library, run: Path, place: Path) -> str:
    stored = run.with_name(f"{run.name}.csv")
    if not stored.exists():
        child = forks.credo("predict", run, library.tables / "test.csv", words=place / "asked")
        require_one_line(child.wait(), child.stderr, allowed=(0,))
        stored.write_text(child.stdout)
    return stored.read_text()


def saved_while_loaded(rng: np.random.Generator, library: forks.Library, place: Path) -> Outcome:
    """A reader of a folder that is saved to over and over sees one posterior or the other."""
    sources = [path for path in corpus.entries(library.folder.parent) if not corpus.is_run(path)]
    pair = [sources[number] for number in rng.choice(len(sources), 2, replace=False)]

    def write() -> None:
        posteriors = [credo.load(source) for source in pair]
        while not (place / "stop").exists():
            for posterior in posteriors:
                posterior.save(place / "it")

    def read() -> None:
        expected = [credo.testing.pack(credo.load(source))[1] for source in pair]
        for _ in range(LOADS):
            try:
                found = credo.testing.pack(credo.load(place / "it"))[1]
            except credo.LoadError as error:
                require_sentence(error)
                continue
            if not any(same(found, one) for one in expected):
                raise Wrong("a reader saw a mixture of two posteriors")

    shutil.copytree(pair[0], place / "it")
    writer, reader = forks.start(write, place / "writer"), forks.start(read, place / "reader")
    reader.wait()
    (place / "stop").touch()
    writer.wait()
    for child in (writer, reader):
        require_one_line(child.wait(), child.stderr, allowed=(0,))
    return right


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)
