"""Learning in the background: what is asked first, what is believed, and that nothing is compiled twice."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from credo.data.missing import MISSING_LABEL
from credo.inference.ensemble.deep_ensemble import DeepEnsemble
from credo.inference.point.map import MAP
from credo.labelling.learner import BackgroundLearner
from credo.labelling.lesson import Lesson, capacity, is_disputed
from credo.labelling.opening import opened
from credo.labelling.pool import Pool
from credo.labelling.pools import read_pool
from credo.labelling.spread import spread
from tests.inference.engine.test_growing import compilations

CLASSES = ("left", "right")
QUICK = Lesson(DeepEnsemble(MAP(num_steps=60, learning_rate=0.05), members=4, bagging=True))


def table(folder: Path, num: int = 60, *, seed: int = 0) -> Path:
    """Two groups of rows, told apart by their first column."""
    rng = np.random.default_rng(seed)
    sides = np.arange(num) % 2
    rows = np.column_stack([rng.normal(6 * sides - 3.0, 1.0), rng.normal(size=num)])
    path = folder / "sides.csv"
    path.write_text("a,b\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in rows))
    return path


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return read_pool(table(tmp_path))


def votes(places: list[int], people: int = 1) -> tuple[np.ndarray, np.ndarray]:
    labels = np.array(places)[:, None] % 2 * np.ones(people, int)
    return np.array(places), labels.astype(np.int32)


EVERYTHING = np.arange(60)


@pytest.mark.parametrize("places", [[], [0], [0, 2, 4]])
def test_without_two_classes_what_is_unlike_the_rest_is_asked(pool: Pool, places: list[int]) -> None:
    """Of an empty pool of labels, or of labels of one class, no model is made."""
    found = votes(places) if places else (np.array([], int), np.zeros((0, 0), np.int32))
    view = QUICK.view(pool, CLASSES, found, np.setdiff1d(EVERYTHING, places))
    assert view.probs is None
    assert not set(view.order) & set(places)
    assert {int(place) % 2 for place in view.order[:6]} == {0, 1}
    assert "unlike those before" in view.reason(int(view.order[0]), CLASSES)


def test_a_few_labels_tell_groups_apart_and_doubt_comes_first(pool: Pool) -> None:
    seen = list(range(12))
    view = QUICK.view(pool, CLASSES, votes(seen), np.arange(12, 60))
    assert view.probs.shape == (4, 60, 2)
    means = view.probs.mean(axis=0)
    assert np.mean(means.argmax(axis=-1) == EVERYTHING % 2) > 0.9
    assert not set(view.order) & set(seen)
    margins = np.abs(means[:, 0] - means[:, 1])
    assert margins[view.order[0]] == margins[12:].min()
    assert "sampled models" in view.reason(int(view.order[0]), CLASSES)


def test_the_same_labels_give_the_same_view(pool: Pool) -> None:
    one, two = (QUICK.view(pool, CLASSES, votes([0, 1, 2, 3]), EVERYTHING) for _ in range(2))
    np.testing.assert_array_equal(one.probs, two.probs)
    np.testing.assert_array_equal(one.order, two.order)


def test_more_labels_are_learned_without_compiling(pool: Pool) -> None:
    QUICK.view(pool, CLASSES, votes(list(range(5))), EVERYTHING)
    with compilations() as names:
        for num in (6, 11, 31):
            QUICK.view(pool, CLASSES, votes(list(range(num))), EVERYTHING[num:])
    assert names == []
    with compilations() as names:
        QUICK.view(pool, CLASSES, votes(list(range(33))), EVERYTHING[33:])  # beyond what there is room for
    assert names


def test_people_who_disagree_are_learned_from_by_how_often_they_err(pool: Pool) -> None:
    """Two people are always right, and a third says the opposite: the model sides with the two."""
    places, labels = votes(list(range(24)), people=3)
    labels[:, 2] = 1 - labels[:, 2]
    labels[::3, 0] = MISSING_LABEL
    assert is_disputed(labels)
    view = QUICK.view(pool, CLASSES, (places, labels), EVERYTHING[24:])
    assert np.mean(view.probs.mean(axis=0).argmax(axis=-1) == EVERYTHING % 2) > 0.9


def test_room_is_made_by_powers_of_two() -> None:
    assert [capacity(num) for num in (1, 32, 33, 64, 65)] == [32, 32, 64, 64, 128]


def test_spread_takes_groups_in_turn_and_ends_where_all_are_equal() -> None:
    x = np.repeat([[0.0], [10.0], [20.0]], 5, axis=0)
    assert {place // 5 for place in spread(x, 3, seed=0, seen=np.array([], int))} == {0, 1, 2}
    assert len(spread(x, 9, seed=0, seen=np.array([], int))) == 3
    assert {place // 5 for place in spread(x, 2, seed=0, seen=np.array([7]))} == {0, 2}


def waited(labelling: object, condition: Callable[[], bool]) -> bool:
    """Whether it came to be, within a time that nothing takes."""
    changed = threading.Event()
    end = labelling.subscribe(changed.set)
    try:
        while not condition():
            changed.clear()
            if not condition() and not changed.wait(120):
                return False
        return True
    finally:
        end()


def test_it_learns_while_people_go_on(tmp_path: Path) -> None:
    with opened(table(tmp_path), tmp_path / "l.csv", classes=CLASSES, learner=BackgroundLearner(QUICK)) as labelling:
        for number in range(8):
            card = labelling.next("ana")[0]
            labelling.answer("ana", card.item, "label", CLASSES[(int(card.item) - 1) % 2], str(number))
        assert waited(labelling, lambda: labelling.view.probs is not None)
        card = labelling.card(str(1 + int(labelling.view.order[0])))
        assert set(card.belief) == set(CLASSES)
        assert sum(one.mean for one in card.belief.values()) == pytest.approx(1, abs=1e-5)
        assert labelling.progress().round >= 1


class Broken:
    """A lesson that fails once."""

    def __init__(self) -> None:
        self.calls = 0

    def view(self, *arguments: object) -> object:
        self.calls += 1
        if self.calls == 1:
            raise FloatingPointError("not\nfinite")
        return QUICK.view(*arguments)


def test_a_model_that_cannot_learn_is_told_and_tried_again(tmp_path: Path) -> None:
    with opened(table(tmp_path), tmp_path / "l.csv", classes=CLASSES, learner=BackgroundLearner(Broken())) as labelling:
        assert waited(labelling, lambda: bool(labelling.progress().problem))
        assert labelling.progress().problem == "the model could not learn: not finite"
        labelling.answer("ana", labelling.next("ana")[0].item, "label", "left")
        assert waited(labelling, lambda: not labelling.progress().problem)


@pytest.mark.parametrize("options", [{"acquisition": "bold"}, {"network": "mlq:3"}])
def test_lessons_that_are_none_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="did you mean"):
        Lesson(**options)
