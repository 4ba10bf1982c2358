"""One round of learning: from the labels so far to what to ask next."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from credo.data import Data, capacity_for, is_observed
from credo.inference.ensemble.deep_ensemble import DeepEnsemble
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.inference.point.map import MAP
from credo.labelling.pool import Pool
from credo.labelling.spread import spread
from credo.labelling.view import View
from credo.learning.acquisitions import as_acquisition
from credo.models import priors
from credo.models.classification import classification
from credo.models.noisy_labels import noisy_labels
from credo.models.program import Model
from credo.networks import from_text
from credo.posterior import Posterior

# What is compiled serves until there are twice as many labels.
MIN_CAPACITY = 32
# So many items are ranked: more than anyone answers before the model has learned again.
NUM_RANKED = 20
# Models of which the belief is shown, where a method leaves more than that.
NUM_DRAWS = 50


def default_method() -> Method:
    """Ten networks, each trained on labels drawn with replacement: quick, and they differ where labels are few."""
    return DeepEnsemble(MAP(num_steps=200, learning_rate=0.02), members=10, bagging=True)


@dataclass(frozen=True)
class Lesson:
    """How to learn from labels.

    Arguments:
        method: any method of credo; `default_method` says which by default.
        network: "linear" or "mlp:50,50", as for `credo.networks.from_text`; by default the one that suits the pool.
        acquisition: what makes an item worth asking about, as for `credo.active`. By default the smallest margin
            between the two most probable classes, which asks where they meet; the disagreement of networks on labels
            drawn with replacement alone ("bald") asks for outliers first.
        seed: the same labels give the same view.

    >>> import credo
    >>> lesson = credo.labelling.Lesson(network="linear", acquisition="entropy")
    >>> lesson.network, lesson.acquisition
    ('linear', 'entropy')
    """

    method: Method = field(default_factory=default_method)
    network: str | None = None
    acquisition: Any = "margin"
    seed: int = 0

    def __post_init__(self) -> None:
        as_acquisition(self.acquisition)
        if self.network is not None:
            from_text(self.network, 2)

    def learn(self, pool: Pool, classes: tuple[str, ...], votes: tuple[np.ndarray, np.ndarray]) -> Posterior | None:
        """The posterior after the labels of some items; None as long as fewer than two classes have one."""
        places, labels = votes
        known = labels[np.asarray(is_observed(labels))]
        if len(np.unique(known)) < 2:
            return None
        disputed = is_disputed(labels)
        model = model_of(self.network or pool.network, len(classes), labels.shape[1] if disputed else None)
        data = Data(pool.x[places], labels if disputed else first_label(labels))
        return fit(model, data.padded(capacity(len(places))), self.method, seed=self.seed, progress=False)

    def view(
        self, pool: Pool, classes: tuple[str, ...], votes: tuple[np.ndarray, np.ndarray], open_places: np.ndarray
    ) -> View:
        """What to ask next of the items that are open, and what the model believes of all of them.

        As long as there is no model, what is unlike all that was asked.
        """
        posterior = self.learn(pool, classes, votes)
        if posterior is None:
            chosen = spread(pool.x, NUM_RANKED, seed=self.seed, seen=votes[0])
            return View(chosen[np.isin(chosen, open_places)])
        probs = np.asarray(posterior.predict(pool.x, num_draws=NUM_DRAWS).functions, np.float32)
        allowed = np.isin(np.arange(len(pool)), open_places)
        rng = np.random.default_rng(self.seed)
        found = as_acquisition(self.acquisition).choose(posterior, pool.x, NUM_RANKED, allowed=allowed, rng=rng)
        return View(found.rows, probs)


# One model for all rounds: what is compiled belongs to it.
@lru_cache(maxsize=8)
def model_of(network: str, num_classes: int, annotators: int | None) -> Model:
    """Classes by a network; of several people who do not agree, each errs at a rate of their own.

    From tens of labels no more than a rate can be told of a person.
    """
    net, prior = from_text(network, num_classes), priors.normal(1.0)
    if annotators is None:
        return classification(net, prior=prior)
    return noisy_labels(net, "ncar", prior=prior, annotators=annotators)


def capacity(num: int) -> int:
    """The power of two that holds so many labels.

    >>> capacity(3), capacity(33)
    (32, 64)
    """
    return capacity_for(num, MIN_CAPACITY)


def is_disputed(labels: np.ndarray) -> bool:
    """Whether people gave any item different labels, (items, people)."""
    seen = np.asarray(is_observed(labels))
    first = first_label(labels)[:, None]
    return bool(np.any(seen & (labels != first)))


def first_label(labels: np.ndarray) -> np.ndarray:
    """A label of each item: the first that is there."""
    seen = np.asarray(is_observed(labels))
    return labels[np.arange(len(labels)), seen.argmax(axis=1)]
