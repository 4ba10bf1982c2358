"""What a simpler model thinks of the rows without targets: noisy labels with a known rate of errors.

Paper, "Degree of supervision": pseudo-labels ỹ of a simpler model. Those of the network itself are not offered: its
own predictions, uncertainty included, are what the labelled rows imply already, so that they say nothing new; without
their uncertainty they count a guess as data, and the posterior becomes sure of it.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo._precision import working_precision
from credo.data import Data
from credo.models.conditions.columns import in_sds
from credo.models.conditions.condition import PREFERRED, Function, Labelled, checked_points
from credo.models.conditions.outputs import logits
from credo.typing import Array

# A tree or a single neighbour is always sure: no simple model is taken to be right more often than this.
MAX_CONFIDENCE = 0.99
# A regression's pseudo-target is no surer than this, in standard deviations of the known targets.
LEAST_SCALE = 0.1
# Neighbours along whose graph labels are carried by default. The labels so found were right for 99.6% of 300 moons with
# 4 labels (80.4 with 5 neighbours; 20 sets), and for 90.9% of digits with 50 labels (89.5; 4 sets).
NUM_NEIGHBOURS = 10
UNKNOWN = -1


@dataclass(frozen=True)
class PseudoLabels(Labelled):
    """−log(c p_ỹ + (1 − c)/(K − 1) (1 − p_ỹ)), or ‖f − ỹ‖²/2s². See `pseudo_labels`.

    >>> from credo import conditions
    >>> conditions.pseudo_labels().name
    'pseudo_labels'
    """

    name = "pseudo_labels"
    strength = PREFERRED
    assumes = "a simpler model is right about rows without targets as often as it says"
    simple: Any = None

    def prepare_data(self, data: Data) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        points = checked_points(self.name, data.x)
        x = in_sds(points).reshape(data.size, -1)
        told = _numbers if data.y.dtype.kind == "f" else _classes
        constants = told(self.simple, x, data.y, data.labelled)
        unlabelled = points[~data.labelled]
        return np.arange(len(unlabelled), dtype=np.int32), {"points": unlabelled, **constants}

    def __call__(self, function: Function, rows: Array, **constants: Array) -> Array:
        known = {name: jnp.asarray(value)[rows] for name, value in constants.items()}
        if "targets" in known:
            away = function(known["points"]) - known["targets"]
            return 0.5 * jnp.sum(known["precision"] * away**2, axis=-1)
        log_p = jax.nn.log_softmax(logits(self.name, function, known["points"]))
        p = jnp.exp(jnp.take_along_axis(log_p, known["labels"][:, None], axis=1)[:, 0])
        # One that is less sure than a guess says nothing, and not that its label is wrong.
        num_classes = log_p.shape[-1]
        right = jnp.maximum(known["confidence"], 1 / num_classes)
        return -jnp.log(right * p + (1 - right) / (num_classes - 1) * (1 - p))

    def to_config(self) -> dict[str, Any]:
        return {"name": self.name, "simple": None if self.simple is None else {"code": _called(self.simple)}}


def pseudo_labels(simple: Any = None) -> PseudoLabels:
    """Rows without targets have those that a simpler model gives them, with its confidence as their noise.

        C(theta, u) = −log(c p_ỹ(u) + (1 − c)/(K − 1) · (1 − p_ỹ(u)))     classes: ỹ is right with probability c
        C(theta, u) = ‖f(u) − ỹ‖²/2s²                                    numbers: ỹ ± s, in the user's units

    The simple model is fitted when the network's model is bound to data, on inputs in units of their standard
    deviations, flattened. Its errors come together, which a sum over rows does not know: impose it with a strength
    below one per point (`credo.models.semi_supervised` takes a half).

    Arguments:
        simple: an object with `fit(x, y)` and `predict_proba(x)`, or for numbers `predict(x, return_std=True)`: any
            classifier, and the Gaussian processes, of scikit-learn. It sees the rows with targets; one of
            `sklearn.semi_supervised` sees the others too, labelled −1. By default `LabelPropagation` along a graph of
            ten neighbours, and for numbers a Gaussian process.

    >>> data = Data([[0.0], [0.1], [5.0], [5.1]], [0, None, 1, None])
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> rows, constants = pseudo_labels(KNeighborsClassifier(1)).prepare_data(data)
    >>> print(constants["labels"], constants["confidence"])
    [0 1] [0.99 0.99]

    Reference: Zhu, Ghahramani, 2002, Learning from labeled and unlabeled data with label propagation.
    """
    if isinstance(simple, type):
        raise ValueError(f"simple is the class {simple.__name__}; pass an object, {simple.__name__}(…)")
    if simple is not None and not callable(getattr(simple, "fit", None)):
        raise ValueError(
            f"simple is {_called(simple)}, which has no fit(x, y); pass a classifier of scikit-learn, or anything with "
            "fit and predict_proba"
        )
    return PseudoLabels(simple)


def _classes(simple: Any, x: np.ndarray, y: np.ndarray, labelled: np.ndarray) -> dict[str, np.ndarray]:
    """The likeliest class of each row without a label, and how likely it is."""
    fitted = _fitted(_propagation(len(x)) if simple is None else simple, "predict_proba", x, y, labelled)
    probs = np.asarray(fitted.predict_proba(x[~labelled]))
    # Where nothing reaches a row scikit-learn divides zero by zero; it knows nothing of it.
    probs = np.where(np.isfinite(probs), probs, 0.0)
    labels = np.asarray(fitted.classes_)[probs.argmax(axis=1)]
    confidence = np.minimum(probs.max(axis=1), MAX_CONFIDENCE)
    return {"labels": labels.astype(np.int32), "confidence": confidence.astype(working_precision())}


def _numbers(simple: Any, x: np.ndarray, y: np.ndarray, labelled: np.ndarray) -> dict[str, np.ndarray]:
    """The target of each row without one, (rows, outputs), and 1/s²."""
    whole = np.isfinite(y).reshape(len(y), -1).all(axis=1)
    if not whole.any():
        raise ValueError("pseudo_labels: no row has all of its targets, and the simple model needs some that do")
    fitted = _fitted(_process() if simple is None else simple, "predict", x, y, whole)
    try:
        targets, scales = fitted.predict(x[~labelled], return_std=True)
    except TypeError as error:
        raise ValueError(
            f"simple: {_called(simple)} does not tell how sure it is of a number, predict(x, return_std=True); pass "
            "one that does, such as sklearn.gaussian_process.GaussianProcessRegressor"
        ) from error
    targets, scales = (np.asarray(value, working_precision()).reshape(len(value), -1) for value in (targets, scales))
    least = LEAST_SCALE * np.std(y[whole], axis=0)
    return {"targets": targets, "precision": (1 / np.maximum(scales, least) ** 2).astype(working_precision())}


def _fitted(simple: Any, asks: str, x: np.ndarray, y: np.ndarray, labelled: np.ndarray) -> Any:
    """A copy of the simple model, fitted: the user's stays as it is."""
    from sklearn.base import clone

    if not callable(getattr(simple, asks, None)):
        raise ValueError(
            f"simple: {_called(simple)} has no {asks}(x), which tells how sure it is; pass one that has, such as "
            "sklearn.neighbors.KNeighborsClassifier()"
        )
    model = clone(simple, safe=False)
    if type(simple).__module__.startswith("sklearn.semi_supervised"):
        return model.fit(x, np.where(labelled, y, UNKNOWN))
    model.fit(x[labelled], y[labelled])
    return model


def _propagation(num_rows: int) -> Any:
    from sklearn.semi_supervised import LabelPropagation

    return LabelPropagation(kernel="knn", n_neighbors=min(NUM_NEIGHBOURS, num_rows - 1), max_iter=5000)


def _process() -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    return GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), normalize_y=True, random_state=0)


def _called(simple: Any) -> str:
    return type(simple).__name__
