"""One labelling: who is asked what, what was answered, and how far the work has come."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from credo._checks import require_at_least, require_one_of
from credo._text import in_one_line, nearest
from credo.data.missing import MISSING_LABEL
from credo.labelling.answers import KINDS, Answer, Answers, Kind
from credo.labelling.cards import Card, Progress
from credo.labelling.forecast import Check, curve, still_needed
from credo.labelling.hands import Hands, Holder
from credo.labelling.pool import Pool
from credo.labelling.tally import Tally
from credo.labelling.view import View

# The last decisions that are shown, and stay editable.
NUM_RECENT = 10
# One question in so many is drawn by chance. The others are the hardest there are, and tell nothing of the accuracy.
CHANCE_EVERY = 5
MAX_NAME = 100
SAID = tuple(kind for kind in KINDS if kind != "undo")

BY_CHANCE = (
    "drawn by chance, to measure how well the model does; what it believes is kept back, so as not to influence you"
)


class Learner(Protocol):
    """Who learns from the answers in the background."""

    learning: bool
    # What keeps it from learning, in words.
    problem: str

    def start(self, labelling: "Labelling") -> None:
        """Begin, and publish views from now on."""

    def notify(self) -> None:
        """There is something new to learn."""

    def stop(self) -> None:
        """End, after the round that is under way."""


class Labelling:
    """A pool, its classes, and the answers of any number of people; safe to use from several threads.

    Arguments:
        pool: the items.
        classes: names of the classes.
        answers: the log, which this object closes.
        learner: learns in the background, and says what to ask next; without, items come in their order.
        per_item: how many people are asked about each item.
        seed: of the items that are drawn by chance.
        clock: seconds, for how long an item may stay in someone's hands.

    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from credo.labelling.pools import read_pool
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "reviews.txt"
    ...     _ = path.write_text("a fine film\\ntoo long\\n")
    ...     with Labelling(read_pool(path), ["good", "bad"], Answers(Path(folder) / "log.jsonl")) as labelling:
    ...         [card] = labelling.next("ana")
    ...         _ = labelling.answer("ana", card.item, "label", "good")
    ...         labelling.progress().by_class
    {'good': 1, 'bad': 0}
    """

    def __init__(
        self,
        pool: Pool,
        classes: Sequence[str],
        answers: Answers,
        learner: Learner | None = None,
        per_item: int = 1,
        *,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require_at_least(1, per_item=per_item)
        self.pool, self.classes, self.per_item = pool, checked_classes(classes), per_item
        self._answers, self._learner, self._seed = answers, learner, seed
        for item, label in pool.given.items():
            self._require_label(label, f"{pool.path} gives item {item!r} the label")
        for answer in answers.all:
            self._require_fitting(answer)
        self._tally = Tally(answers.all)
        self._tokens = {answer.token: answer for answer in answers.all}
        # How an item first came to a person stays true, however often the answer is edited.
        self._first = {(answer.labeller, answer.item): answer for answer in reversed(answers.all)}
        self._hands, self._num_asked = Hands(clock), 0
        self._view = View(np.arange(len(pool)) if learner is None else np.array([], int))
        self._lock, self._listeners = threading.RLock(), list[Callable[[], None]]()
        if learner is not None:
            learner.start(self)

    # -- asking --------------------------------------------------------------------------------------------

    def next(self, labeller: str, count: int = 1, *, window: str = "", holding: Sequence[str] = ()) -> list[Card]:
        """The next questions for a person, the most informative first; nobody else is asked them meanwhile.

        Those that were handed out before and are not answered come again, so that nothing is lost by a reload. None
        come where all is done, or where the rest is in the hands of others.

        Arguments:
            labeller: the name of the person.
            count: at most so many.
            window: tells windows of one person apart, which then have items of their own.
            holding: items that the window has, which come first; those that this session does not know of, as after
                a restart, are the window's again if nobody else has them by now.
        """
        require_at_least(1, count=count)
        holder = Holder(checked_labeller(labeller), window)
        with self._lock:
            self._hands.renew(holder)
            for item in holding:
                if item in self.pool.places and self._is_open(holder, item):
                    self._hands.take(holder, item)
            while len(self._hands.of(holder)) < count and self._hand_out(holder):
                pass
            held = self._hands.of(holder)
            order = dict.fromkeys([*(item for item in holding if item in held), *held])
            return [self._card(item, held[item].by_chance) for item in list(order)[:count]]

    def card(self, item: str) -> Card:
        """The card of an item that was answered, for someone who looks at it again."""
        with self._lock:
            return self._card(item, by_chance=False)

    def _hand_out(self, holder: Holder) -> bool:
        by_chance = self._view.probs is not None and self._num_asked % CHANCE_EVERY == CHANCE_EVERY - 1
        everything = np.random.default_rng([self._seed, self._num_asked]).permutation(len(self.pool))
        order = everything if by_chance else np.concatenate([self._view.order, everything])
        item = next((self.pool.ids[place] for place in order if self._is_open(holder, self.pool.ids[place])), None)
        if item is None:
            return False
        self._num_asked += 1
        self._hands.take(holder, item, by_chance=by_chance)
        return True

    def _is_open(self, holder: Holder, item: str) -> bool:
        """Whether to ask this person about this item."""
        if item in self._hands.of(holder) or self._tally.of(holder.labeller, item) or self._is_done(item):
            return False
        others = [other.labeller for other in self._hands.others(holder, item)]
        return holder.labeller not in others and self._tally.num_decided(item) + len(others) < self.per_item

    def _is_done(self, item: str) -> bool:
        tally = self._tally
        return item in self.pool.given or tally.is_flagged(item) or tally.num_decided(item) >= self.per_item

    def _card(self, item: str, by_chance: bool) -> Card:
        pool, place = self.pool, self.pool.place(item)
        reason = BY_CHANCE if by_chance else self._view.reason(place, self.classes)
        belief = None if by_chance else self._view.belief(place, self.classes)
        return Card(item, pool.kind, reason, pool.fields(item), pool.text(item), belief)

    # -- answering -----------------------------------------------------------------------------------------

    def answer(
        self, labeller: str, item: str, kind: Kind, label: str | None = None, token: str | None = None
    ) -> Answer:
        """Take an answer: it is on disk when this returns. A second one of the same person replaces the first.

        Arguments:
            labeller: the name of the person.
            item: that was asked about, or any other of the pool.
            kind: "label", "none", "flag" or "skip", as of an `Answer`.
            label: one of the classes, for the kind "label".
            token: anything that no other answer has: sent again with the same token, an answer counts once.
        """
        require_one_of(SAID, kind=kind)
        if kind == "label":
            self._require_label(label, "label is")
        elif label is not None:
            raise ValueError(f"label is {label!r}, and the kind is {kind!r}; only the kind 'label' has one")
        return self._keep(checked_labeller(labeller), item, kind, label, token)

    def undo(
        self, labeller: str, token: str | None = None, *, item: str | None = None, window: str = ""
    ) -> Answer | None:
        """Take back what a person answered last, or of an item, and ask it again first; None if there is nothing."""
        name = checked_labeller(labeller)
        with self._lock:
            if token is not None and token in self._tokens:
                return self._tokens[token]
            last = next((answer for answer in self._tally.by(name) if item in (None, answer.item)), None)
            if last is None:
                return None
            taken_back = self._keep(name, last.item, "undo", None, token)
            self._hands.take(Holder(name, window), last.item, by_chance=last.by_chance, first=True)
            return taken_back

    def recent(self, labeller: str) -> list[Answer]:
        """The last answers of a person that stand, the last first: an answer to one of them replaces it."""
        with self._lock:
            return list(self._tally.by(checked_labeller(labeller))[:NUM_RECENT])

    def _keep(self, labeller: str, item: str, kind: Kind, label: str | None, token: str | None) -> Answer:
        place = self.pool.place(item)
        with self._lock:
            known = self._tokens.get(token or "")
            if known is not None:
                if (known.labeller, known.item, known.kind, known.label) != (labeller, item, kind, label):
                    raise ValueError(f"token {token!r} is that of another answer; send a new one with each answer")
                return known
            answer = Answer(
                item, kind, label, labeller, token or uuid.uuid4().hex, time.time(), self.pool.digests[place]
            )
            answer = self._with_prediction(answer, place)
            self._answers.append(answer)
            self._tokens[answer.token] = answer
            self._first.setdefault((labeller, item), answer)
            self._tally.take(answer)
            self._hands.drop(labeller, item)
        if self._learner is not None:
            self._learner.notify()
        self._tell()
        return answer

    def _with_prediction(self, answer: Answer, place: int) -> Answer:
        """The answer with what the model took the item for when it had not learned it yet."""
        first = self._first.get((answer.labeller, answer.item))
        if first is not None:
            return replace(answer, predicted=first.predicted, by_chance=first.by_chance)
        held = [self._hands.of(holder).get(answer.item) for holder in self._hands.holders(answer.labeller)]
        predicted = None if self._tally.votes(answer.item) else self._view.predicted(place)
        return replace(
            answer,
            predicted=None if predicted is None else self.classes[predicted],
            by_chance=any(one.by_chance for one in held if one is not None),
        )

    def said(self) -> dict[str, tuple[Answer, ...]]:
        """What stands on each item of which anything was said, in their order; labels of the pool are of nobody."""
        given = {
            item: Answer(item, "label", label, "", "", 0.0, self.pool.digests[self.pool.place(item)])
            for item, label in self.pool.given.items()
        }
        with self._lock:
            found = {item: self._tally.about(item) for item in self._tally.items}
        for item, answer in given.items():
            found[item] = (answer, *found.get(item, ()))
        return {item: found[item] for item in sorted(found, key=self.pool.place)}

    # -- learning ------------------------------------------------------------------------------------------

    def publish(self, view: View) -> None:
        """What the model thinks from now on."""
        with self._lock:
            self._view = view
        self._tell()

    @property
    def view(self) -> View:
        """What the model thinks."""
        return self._view

    def votes(self) -> tuple[np.ndarray, np.ndarray]:
        """The labels so far: places of the items (rows,), and what each person says, (rows, people).

        `MISSING_LABEL` where someone said nothing. Labels that the pool brought along are those of one more person.
        """
        found = {item: [one for one in said if one.label is not None] for item, said in self.said().items()}
        labelled = {item: said for item, said in found.items() if said}
        people = sorted({answer.labeller for said in labelled.values() for answer in said})
        votes = np.full((len(labelled), len(people)), MISSING_LABEL, np.int32)
        for row, said in enumerate(labelled.values()):
            for answer in said:
                votes[row, people.index(answer.labeller)] = self.classes.index(answer.label)
        return np.array([self.pool.place(item) for item in labelled], int), votes

    def open_places(self) -> np.ndarray:
        """Places of the items that somebody may still be asked about."""
        with self._lock:
            return np.array([place for place, item in enumerate(self.pool.ids) if not self._is_done(item)], int)

    # -- progress ------------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """How far the work has come."""
        with self._lock:
            standing, view = list(self._tally), self._view
            votes = {item: self._tally.votes(item) for item in self._tally.items}
            num_done = len(self.pool.given) + sum(self._is_done(item) for item in self._tally.items)
        given = Counter(self.pool.given.values())
        labels = [answer for answer in standing if answer.label is not None]
        by_class = given + Counter(answer.label for answer in labels)
        disputed = [item for item, said in votes.items() if len(said) > 1]
        checks = self._checks(labels)
        return Progress(
            num_items=len(self.pool),
            num_labels=sum(bool(said) for said in votes.values()) + len(self.pool.given),
            num_done=num_done,
            by_class={name: by_class[name] for name in self.classes},
            by_labeller=dict(Counter(answer.labeller for answer in labels)),
            disagreements=tuple(sorted(disputed, key=lambda item: -disagreement(votes[item]))),
            curve=curve(checks),
            still_needed=still_needed(checks, len(labels) + len(self.pool.given), num_left=len(self.pool) - num_done),
            learning=self._learner is not None and self._learner.learning,
            problem="" if self._learner is None else self._learner.problem,
            round=view.round,
        )

    def _checks(self, labels: Sequence[Answer]) -> list[Check]:
        """The model's answers to questions that were drawn by chance, in order."""
        return [
            Check(number, answer.predicted == answer.label)
            for number, answer in enumerate(labels, start=len(self.pool.given))
            if answer.by_chance and answer.predicted is not None
        ]

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have a function called, in any thread, whenever the progress changes; returns how to end that."""
        with self._lock:
            self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def _tell(self) -> None:
        for callback in tuple(self._listeners):
            callback()

    def close(self) -> None:
        """End the learner, and let others label into the log."""
        if self._learner is not None:
            self._learner.stop()
        self._answers.close()

    def __enter__(self) -> "Labelling":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- checks --------------------------------------------------------------------------------------------

    def _require_label(self, label: str | None, what: str) -> None:
        if label not in self.classes:
            hint = nearest(str(label), self.classes)
            raise ValueError(f"{what} {label!r}, and the classes are {', '.join(self.classes)}{hint}")

    def _require_fitting(self, answer: Answer) -> None:
        """Refuse the log of another pool, or of other classes."""
        log, place = self._answers.path, self.pool.places.get(answer.item)
        if place is None or self.pool.digests[place] != answer.digest:
            what = "is not in it" if place is None else "holds something else there"
            raise ValueError(
                f"{log} holds labels of another pool than {self.pool.path}: item {answer.item!r} {what}; choose "
                "another out=…"
            )
        if answer.kind == "label":
            self._require_label(answer.label, f"{log} gives item {answer.item!r} the label")


def disagreement(votes: Counter[str]) -> float:
    """The share of people who gave an item another label than most did.

    >>> disagreement(Counter(cat=3, dog=1))
    0.25
    """
    return 1 - max(votes.values()) / votes.total()


def checked_classes(classes: Sequence[str]) -> tuple[str, ...]:
    """Names of at least two classes, each there once."""
    names = tuple(classes)
    if isinstance(classes, str) or any(not isinstance(name, str) or not name.strip() for name in names):
        raise ValueError(f"classes is {classes!r}; pass a list of names, such as ['cat', 'dog']")
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise ValueError(f"classes is {list(names)}; pass at least two names, each of them once")
    return names


def checked_labeller(labeller: str) -> str:
    """The name of a person, which is not empty."""
    if not isinstance(labeller, str) or not labeller.strip() or len(labeller) > MAX_NAME:
        raise ValueError(f"labeller is {labeller!r}; pass a name of 1 to {MAX_NAME} characters")
    return in_one_line(labeller, MAX_NAME)
