"""One labelling: who is asked what, what stands, and what becomes of it in the table of labels."""

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from credo.labelling.answers import Answers
from credo.labelling.hands import SECONDS_IN_HAND
from credo.labelling.kept import log_of
from credo.labelling.opening import opened
from credo.labelling.pools import read_pool
from credo.labelling.session import CHANCE_EVERY, NUM_RECENT, Labelling
from credo.labelling.view import View
from tests.labelling.serving import CLASSES, lines


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def labelling(tmp_path: Path, clock: Clock) -> Iterator[Labelling]:
    with Labelling(read_pool(lines(tmp_path, 30)), CLASSES, Answers(tmp_path / "log.jsonl"), clock=clock) as found:
        yield found


def items(labelling: Labelling, labeller: str, num: int = 1, **options: object) -> list[str]:
    return [card.item for card in labelling.next(labeller, num, **options)]


# -- asking ------------------------------------------------------------------------------------------------


def test_what_is_in_hand_comes_again_and_to_nobody_else(labelling: Labelling) -> None:
    assert items(labelling, "ana", 2) == items(labelling, "ana", 2) == ["1", "2"]
    assert items(labelling, "bo", 2) == ["3", "4"]
    assert items(labelling, "ana", 2, window="other") == ["5", "6"]


def test_who_has_gone_gives_items_back(labelling: Labelling, clock: Clock) -> None:
    assert items(labelling, "ana") == ["1"]
    clock.now = SECONDS_IN_HAND + 1
    assert items(labelling, "bo") == ["1"]


def test_each_item_is_asked_once_until_all_is_done(labelling: Labelling) -> None:
    asked = []
    for who in ("ana", "bo") * 15:
        asked += items(labelling, who)
        labelling.answer(who, asked[-1], "label", "even")
    assert sorted(asked, key=int) == [str(number) for number in range(1, 31)]
    assert labelling.next("ana") == []
    assert labelling.progress().num_done == 30


def test_skipped_items_go_to_others_and_flagged_ones_to_nobody(labelling: Labelling) -> None:
    labelling.answer("ana", "1", "skip")
    labelling.answer("ana", "2", "flag")
    labelling.answer("ana", "3", "none")
    assert items(labelling, "ana") == ["4"]
    assert items(labelling, "bo", 2) == ["1", "5"]


def test_several_people_are_asked_about_each_item(tmp_path: Path) -> None:
    with opened(lines(tmp_path, 3), tmp_path / "labels.csv", classes=CLASSES, per_item=2) as labelling:
        for who, label in (("ana", "even"), ("bo", "odd")):
            for item in items(labelling, who, 3):
                labelling.answer(who, item, "label", label if item == "1" else "even")
        assert items(labelling, "cleo", 3) == []
        assert labelling.progress().disagreements == ("1",)
        places, votes = labelling.votes()
    assert places.tolist() == [0, 1, 2]
    assert votes.tolist() == [[0, 1], [0, 0], [0, 0]]
    table = pl.read_csv(tmp_path / "labels.csv")
    assert table["disagreement"].to_list() == [0.5, 0.0, 0.0]
    assert table["labellers"].to_list() == ["ana; bo"] * 3


def test_one_question_in_five_is_drawn_by_chance_without_the_belief(labelling: Labelling) -> None:
    labelling.publish(View(np.arange(10), np.full((4, 30, 2), 0.5, np.float32), 1))
    cards = labelling.next("ana", 2 * CHANCE_EVERY)
    hidden = [number for number, card in enumerate(cards) if card.belief is None]
    assert hidden == [CHANCE_EVERY - 1, 2 * CHANCE_EVERY - 1]
    assert all("by chance" in cards[number].reason for number in hidden)
    for card in cards:
        labelling.answer("ana", card.item, "label", "even")
    assert [answer.by_chance for answer in reversed(labelling.recent("ana"))] == [card.belief is None for card in cards]


# -- answering ---------------------------------------------------------------------------------------------


def test_the_same_token_counts_once(labelling: Labelling) -> None:
    first = labelling.answer("ana", "1", "label", "even", "t")
    assert labelling.answer("ana", "1", "label", "even", "t") is first
    with pytest.raises(ValueError, match="token 't' is that of another answer"):
        labelling.answer("ana", "1", "label", "odd", "t")
    assert labelling.progress().num_labels == 1


def test_undo_takes_back_the_last_and_asks_it_again_first(labelling: Labelling) -> None:
    for item in items(labelling, "ana", 2):
        labelling.answer("ana", item, "label", "odd")
    assert labelling.undo("ana", "u").item == "2"
    assert labelling.undo("ana", "u").item == "2"  # the same token
    assert items(labelling, "ana", 2) == ["2", "3"]
    assert labelling.undo("ana").item == "1"
    assert labelling.undo("ana") is None
    assert labelling.progress().num_labels == 0


def test_the_last_ten_stay_editable(labelling: Labelling) -> None:
    for number in range(1, 14):
        labelling.answer("ana", str(number), "label", "even")
    assert [answer.item for answer in labelling.recent("ana")] == [str(13 - place) for place in range(NUM_RECENT)]
    labelling.answer("ana", "5", "label", "odd")
    assert labelling.recent("ana")[0].label == "odd"
    assert labelling.progress().by_class == {"even": 12, "odd": 1}


def test_an_edit_keeps_what_the_model_said_before_it_learned(labelling: Labelling) -> None:
    sure = np.zeros((4, 30, 2), np.float32)
    sure[..., 1] = 1
    assert labelling.answer("ana", "1", "label", "even").predicted is None
    labelling.publish(View(np.arange(30), sure, 1))
    assert labelling.answer("ana", "2", "label", "even").predicted == "odd"
    labelling.publish(View(np.arange(30), 1 - sure, 2))
    assert labelling.answer("ana", "2", "label", "odd").predicted == "odd"
    assert labelling.answer("ana", "1", "label", "odd").predicted is None
    labelling.undo("ana")
    assert labelling.answer("ana", "1", "label", "odd").predicted is None


def test_many_threads_at_once_lose_nothing_and_ask_nothing_twice(tmp_path: Path) -> None:
    with opened(lines(tmp_path, 200), tmp_path / "labels.csv", classes=CLASSES) as labelling:
        heard = count()
        labelling.subscribe(lambda: next(heard))

        def work(name: str) -> None:
            while cards := labelling.next(name):
                labelling.answer(name, cards[0].item, "label", "even")
                labelling.progress()

        threads = [threading.Thread(target=work, args=(f"person {number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert next(heard) == 200
    log = log_of(tmp_path / "labels.csv").read_text().splitlines()[1:]
    assert len(log) == 200
    assert len(pl.read_csv(tmp_path / "labels.csv")) == 200


# -- again, and what is refused ----------------------------------------------------------------------------


def test_a_labelling_goes_on_where_it_ended(tmp_path: Path) -> None:
    pool, out = lines(tmp_path, 6), tmp_path / "labels.csv"
    with opened(pool, out, classes=CLASSES) as labelling:
        labelling.answer("ana", "1", "label", "odd", "t")
        labelling.answer("ana", "2", "flag")
    with opened(pool, out, classes=CLASSES) as labelling:
        assert items(labelling, "ana", 9) == ["3", "4", "5", "6"]
        labelling.answer("ana", "1", "label", "odd", "t")  # sent again after a restart
        assert len(labelling.recent("ana")) == 2
    assert pl.read_csv(out).rows() == [(1, "odd", "label", "ana", 0.0), (2, None, "flag", "ana", 0.0)]


def test_a_pool_that_has_grown_is_the_same_and_another_is_refused(tmp_path: Path) -> None:
    pool, out = lines(tmp_path, 3), tmp_path / "labels.csv"
    with opened(pool, out, classes=CLASSES) as labelling:
        labelling.answer("ana", "3", "label", "odd")
    pool.write_text(pool.read_text() + "number 4\n")
    with opened(pool, out, classes=CLASSES) as labelling:
        assert len(labelling.pool) == 4
    pool.write_text("something\nelse\nentirely\n")
    with (
        pytest.raises(ValueError, match=r"labels of another pool than .*: item '3' holds something else there"),
        opened(pool, out, classes=CLASSES),
    ):
        pass
    pool.write_text("short\n")
    with pytest.raises(ValueError, match="item '3' is not in it"), opened(pool, out, classes=CLASSES):
        pass


def test_labels_of_a_class_that_is_gone_are_refused(tmp_path: Path) -> None:
    pool, out = lines(tmp_path, 3), tmp_path / "labels.csv"
    with opened(pool, out, classes=CLASSES) as labelling:
        labelling.answer("ana", "1", "label", "odd")
    with (
        pytest.raises(ValueError, match="the label 'odd', and the classes are a, b"),
        opened(pool, out, classes=["a", "b"]),
    ):
        pass


def test_a_file_that_no_labelling_wrote_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("precious\n")
    with (
        pytest.raises(ValueError, match="no labelling wrote it"),
        opened(lines(tmp_path), tmp_path / "mine.csv", classes=CLASSES),
    ):
        pass
    assert (tmp_path / "mine.csv").read_text() == "precious\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ana", "1", "label", "evn"), "label is 'evn', and the classes are even, odd; did you mean 'even'"),
        (("ana", "1", "label"), "label is None"),
        (("ana", "1", "skip", "even"), "only the kind 'label' has one"),
        (("ana", "1", "guess"), "kind must be one of"),
        (("ana", "99", "skip"), "item '99' is not in"),
        ((" ", "1", "skip"), "labeller is ' '"),
    ],
)
def test_answers_that_make_no_sense_are_refused(labelling: Labelling, arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        labelling.answer(*arguments)
    assert labelling.recent("ana") == []


@pytest.mark.parametrize("classes", [[], ["one"], ["a", "a"], "ab", ["a", " "]])
def test_classes_that_are_none_are_refused(tmp_path: Path, classes: object) -> None:
    with pytest.raises(ValueError, match="classes is"), opened(lines(tmp_path), tmp_path / "l.csv", classes=classes):
        pass


def test_classes_must_be_named_where_nothing_tells_them(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name at least two classes"), opened(lines(tmp_path), tmp_path / "l.csv"):
        pass
