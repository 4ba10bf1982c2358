"""The marginal of class labels: H[y] = I[y; theta] + E_theta(H[y | theta]), in nats."""

from functools import cached_property
from typing import Any

import numpy as np

from credo._blocks import each_row
from credo.predictive import first_rows, streaming
from credo.predictive.marginal import Predictive

# An average of probabilities above this has all the digits of float32; far below it they underflow to nothing.
SAFE_PROBABILITY = 1e-30


class ClassPredictive(Predictive):
    """The marginal of class labels. Uncertainties are in nats."""

    def _repr_html_(self) -> str:
        return first_rows.shown(self, first_rows.OF_CLASSES)

    @cached_property
    def _moments(self) -> streaming.Moments:
        return self.fold(streaming.CLASSES)

    @property
    def probs(self) -> np.ndarray:
        """p̂ = Σᵢ wᵢ p(y | x, thetaᵢ), (data, classes); two columns for a binary model."""
        return self._moments.mean

    @property
    def probs_std(self) -> np.ndarray:
        """Standard deviation of the class probabilities over the draws, (data, classes)."""
        return np.sqrt(self._moments.spread * self._unbiased)

    @property
    def label(self) -> np.ndarray:
        """ŷ = argmax p̂, (data,)."""
        return np.argmax(self.probs, axis=-1)

    def expected_costs(self, costs: Any) -> np.ndarray:
        """Σ_c p̂(c | x) costs[c, d]: what each decision d costs on average, (data, decisions).

        Arguments:
            costs: (classes, decisions), what decision d costs where the class is c.
        """
        given = np.asarray(costs, np.float64)
        if given.ndim != 2 or len(given) != self.probs.shape[1] or not np.isfinite(given).all():
            raise ValueError(
                f"costs has shape {given.shape}; pass a finite number for each of {self.probs.shape[1]} classes (rows) "
                "and each decision (columns)"
            )
        return self.probs @ given

    def decide(self, costs: Any) -> np.ndarray:
        """The decision of least expected cost, (data,): by default decisions are labels, and `costs` is square.

        >>> import credo
        >>> data = credo.datasets.load("iris", standardise=True)
        >>> posterior = credo.fit(credo.models.classification(credo.networks.from_text("linear", 3)), data, "map")
        >>> int(np.sum(posterior.predict(data.x).decide([[0, 1, 1], [1, 0, 1], [1, 99, 0]]) == 1)) < 50
        True
        """
        return np.argmin(self.expected_costs(costs), axis=1)

    @property
    def entropy(self) -> np.ndarray:
        """H[y] of the marginal: all uncertainty there is."""
        return each_row(lambda probs: np.asarray(streaming.class_entropy(probs)), self.probs)

    @property
    def aleatoric(self) -> np.ndarray:
        """E_theta(H[y | theta]): the classes overlap, whatever theta."""
        return self._moments.noise

    @property
    def mutual_information(self) -> np.ndarray:
        """I[y; theta] = H[y] − E_theta(H[y | theta]): the draws disagree. Never negative."""
        return np.maximum(self.entropy - self.aleatoric, 0.0)

    @property
    def epistemic(self) -> np.ndarray:
        """The mutual information."""
        return self.mutual_information

    @cached_property
    def functions(self) -> np.ndarray:
        """Class probabilities of every draw, (draws, data, classes)."""
        return super().functions

    def log_prob(self, y: Any) -> np.ndarray:
        """log p̂(y | x, D) of each row. Probabilities that are at hand are looked up; tiny ones go through logs."""
        labels = self.targets(y)
        chosen = np.take_along_axis(self.probs, labels[:, None], axis=1)[:, 0]
        return np.log(chosen) if np.min(chosen, initial=1.0) > SAFE_PROBABILITY else super().log_prob(labels)

    def targets(self, y: Any) -> np.ndarray:
        """y as an array of one class label for each row."""
        labels = super().targets(y)
        if labels.dtype.kind not in "iub":
            raise ValueError(f"y must hold integer class labels, got {labels.dtype}")
        num_classes = self.probs.shape[1]
        if labels.size and (labels.min() < 0 or labels.max() >= num_classes):
            raise ValueError(
                f"y holds labels from {labels.min()} to {labels.max()}, but there are {num_classes} classes"
            )
        return labels.astype(np.int32)
