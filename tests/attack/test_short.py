"""A slice of the attack, always the same cases; `make attack` goes on from there for as long as one likes."""

from pathlib import Path

import pytest

from credo.inference.registry import METHODS
from tests.attack import checkpoints, corpus, forks, harness, writes
from tests.attack.kinds import KINDS, prepare
from tests.attack.outcomes import KILLS, REFUSED, RIGHT, Fault
from tests.kills import write_at_every_chunk

SEED = 0
# Cases of each kind that run in this process.
CASES = {"folders": 250, "checkpoints": 12, "tables": 12, "layouts": 3, "writes": 80}
# Kinds that start processes of their own or take long, one case each.
OTHERS = sorted(KINDS.keys() - CASES.keys() - {"kills"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    made = tmp_path_factory.mktemp("attack")
    corpus.make(made, ["map", "other"])
    yield made
    harness.remove(made)


@pytest.fixture
def _few_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods are what takes time to compile."""
    write_at_every_chunk(monkeypatch)
    monkeypatch.setattr(writes, "METHODS", ["map"])
    monkeypatch.setattr(writes, "FEW", ["map"])
    monkeypatch.setattr(writes, "KINDS_OF_WRITES", {"fit": 0.4, "overwrite": 0.3, "resume": 0.1, "save": 0.2})
    monkeypatch.setattr(writes, "RESUMED", 20)
    monkeypatch.setattr(checkpoints, "METHODS", checkpoints.METHODS[:1])


def require_no_faults(results: harness.Results) -> None:
    assert not results.faults, "\n\n".join(
        f"{found.fault.name} ({found.times} times)\n{harness.replay(results, found)}\n{found.fault.text}"
        for found in results.faults.values()
    )


@pytest.mark.usefixtures("_few_fits")
@pytest.mark.parametrize("kind", CASES)
def test_nothing_is_silently_wrong(kind: str, folder: Path) -> None:
    case, results = prepare(kind, folder), harness.Results(SEED)
    for number in range(CASES[kind]):
        try:
            results.of(kind).outcomes.update(case(harness.generator(kind, SEED, number)))
        except Exception as error:
            results.failed(kind, number, Fault.of(error))
    require_no_faults(results)
    assert results.of(kind).num_cases >= CASES[kind]


def followed(kind: str, folder: Path, case: int = 0) -> harness.Results:
    """One case, in a process of its own."""
    results = harness.Results(SEED)
    harness.follow(harness.Piece(kind, SEED, case, 0.0, only_one=True), folder, results)
    require_no_faults(results)
    return results


def test_a_fit_survives_kills(folder: Path) -> None:
    # The first case that is one of a method that compiles quickly.
    names = sorted(METHODS)
    case = next(n for n in range(1_000) if forks.chosen(harness.generator("kills", SEED, n), names) == "map")
    assert followed("kills", folder, case).of("kills").outcomes[KILLS] >= 1


@pytest.mark.full
@pytest.mark.parametrize("kind", OTHERS)
def test_one_case_of_the_others(kind: str, folder: Path) -> None:
    found = followed(kind, folder).of(kind).outcomes
    assert found[RIGHT] + found[REFUSED] >= 1


# -- what the attack itself can see --------------------------------------------------------------------------


def test_a_case_is_told_by_its_seed_and_number() -> None:
    ones = [harness.generator("folders", seed, number).random() for seed in (0, 1) for number in (0, 1)]
    assert len(set(ones)) == 4
    assert harness.generator("folders", 0, 1).random() == ones[1]
    assert harness.generator("tables", 0, 1).random() != ones[1]


def test_the_time_is_split_by_shares() -> None:
    todo = list(harness.pieces(SEED, 60, KINDS, lanes=2))
    assert sum(piece.seconds for piece in todo) == pytest.approx(7200)
    assert len({(piece.kind, piece.first) for piece in todo}) == len(todo)


def test_what_dies_is_a_failure_that_can_be_repeated(tmp_path: Path) -> None:
    """There is no corpus, so that the process ends before its first case."""
    results = harness.Results(SEED)
    harness.follow(harness.Piece("folders", SEED, 7, 0.0, only_one=True), tmp_path, results)
    ((_, found),) = results.faults.items()
    assert found.fault.name == "the process died (1)"
    assert harness.replay(results, found) == "python -m tests.attack --only folders --seed 0 --case 7"
    assert "| folders | 1 | 0 | 0 | 0 | 1 |" in harness.markdown(results)
