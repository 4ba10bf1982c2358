"""One round of learning: from the labels so far to what to ask next."""

from dataclasses import dataclass, field

import numpy as np

from credo.data import Data, is_observed
from credo.inference.ensemble.deep_ensemble import DeepEnsemble
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.inference.point.map import MAP
from credo.labelling.pool import Pool
from credo.labelling.spread import spread
from credo.labelling.view import View
from credo.models import priors
from credo.models.classification import classification
from credo.models.noisy_labels import noisy_labels
from credo.models.program import Model
from credo.networks import from_text
from credo.posterior import Posterior

# What is compiled serves until there are twice as many labels.
MIN_CAPACITY = 32
# So many items come in order before the model has learned again; the others come by chance.
NUM_RANKED = 100


def default_method() -> Method:
    """Ten networks, each trained on labels drawn with replacement: quick, and they differ where labels are few."""
    return DeepEnsemble(MAP(num_steps=200, learning_rate=0.02), members=10, bagging=True)


@dataclass(frozen=True)
class Lesson:
    """How to learn from labels.

    Arguments:
        method: any method of credo; `default_method` says which by default.
        network: "linear" or "mlp:50,50", as for `credo.networks.from_text`; by default the one that suits the pool.
        seed: the same labels give the same view.
    """

    method: Method = field(default_factory=default_method)
    network: str | None = None
    seed: int = 0

    def learn(self, pool: Pool, classes: tuple[str, ...], votes: tuple[np.ndarray, np.ndarray]) -> Posterior | None:
        """The posterior after the labels of some items; None as long as fewer than two classes have one."""
        places, labels = votes
        known = labels[np.asarray(is_observed(labels))]
        if len(np.unique(known)) < 2:
            return None
        disputed = is_disputed(labels)
        model = self._model(pool, len(classes), labels.shape[1] if disputed else None)
        data = Data(pool.x[places], labels if disputed else first_label(labels))
        return fit(model, data.padded(capacity(len(places))), self.method, seed=self.seed, progress=False)

    def _model(self, pool: Pool, num_classes: int, annotators: int | None) -> Model:
        net = pool.network(num_classes) if self.network is None else from_text(self.network, num_classes)
        if annotators is None:
            return classification(net, prior=priors.normal(1.0))
        # One rate of errors for each person: from tens of labels no more can be told.
        return noisy_labels(net, "ncar", prior=priors.normal(1.0), annotators=annotators)

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
        probs = np.asarray(posterior.predict(pool.x).functions, np.float32)
        order = np.argsort(margin(probs[:, open_places].mean(axis=0)), kind="stable")
        return View(open_places[order], probs)


def margin(probs: np.ndarray) -> np.ndarray:
    """How much more probable the first class is than the second: (items,)."""
    ordered = np.sort(probs, axis=-1)
    return ordered[:, -1] - ordered[:, -2]


def capacity(num: int) -> int:
    """The power of two that holds so many labels.

    >>> capacity(3), capacity(33)
    (32, 64)
    """
    return max(MIN_CAPACITY, 1 << (num - 1).bit_length())


def is_disputed(labels: np.ndarray) -> bool:
    """Whether people gave any item different labels, (items, people)."""
    seen = np.asarray(is_observed(labels))
    first = first_label(labels)[:, None]
    return bool(np.any(seen & (labels != first)))


def first_label(labels: np.ndarray) -> np.ndarray:
    """A label of each item: the first that is there."""
    seen = np.asarray(is_observed(labels))
    return labels[np.arange(len(labels)), seen.argmax(axis=1)]
