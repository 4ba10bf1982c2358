"""scikit-learn estimators: a Bayesian neural network wherever a regressor or a classifier is expected.

They pass scikit-learn's `check_estimator` but for `EXPECTED_FAILED_CHECKS`, so pipelines, grid searches and
cross-validation work as usual. `predict` gives a summary; `predictive(X)` is the whole marginal p(y | X, D).

X may be a data frame with text, categories, dates and missing cells, or a sparse matrix: columns become numbers as they
do at the command line (`credo.tables`), and `features_.says` tells how.

`partial_fit` learns row after row of a stream, with `credo.online`: what is known is the prior of the next rows. It is
there for methods that leave a distribution over the weights to go on from.

`sample_weight` is how often each row was seen, `fit(X, y, precisions=w)` how precisely it was measured: `counts` and
`precisions` of `credo.Data`.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from credo import models, networks, random
from credo.data import Data
from credo.inference.auto import choose
from credo.inference.closed_form.closed_form import ClosedForm
from credo.inference.fit import fit
from credo.inference.laplace.laplace import Laplace
from credo.inference.registry import as_method
from credo.learning.online import online, require_distribution
from credo.models import conditions, priors
from credo.models.by_text import model_of
from credo.models.likelihoods import as_noise
from credo.models.program import Model
from credo.predictive import Predictive
from credo.tables.features import Features
from credo.tables.frames import is_frame

LARGEST_SEED = 2**31 - 1
NETWORK_OF_NOISY_LABELS = "mlp:50,50"
# What `check_estimator(…, expected_failed_checks=EXPECTED_FAILED_CHECKS)` is to excuse, and why.
_DIGITS = "asks for seven equal digits of sums in another order; they are there under `with jax.enable_x64(True)`"
EXPECTED_FAILED_CHECKS = {f"check_sample_weight_equivalence_on_{kind}_data": _DIGITS for kind in ("dense", "sparse")}


def _goes_on(estimator: Any) -> bool:
    """Whether the method leaves a distribution that can be the prior of the next rows; an AttributeError if not."""
    try:
        if estimator.method != "auto":
            require_distribution(as_method(estimator.method))
    except ValueError as error:
        raise AttributeError(f"{type(estimator).__name__} has no partial_fit: {error}") from error
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class _Estimator(BaseEstimator):
    """What the two estimators share: parameters, validation, the fit, and the prediction."""

    method: Any = "auto"
    network: Any = "table"
    prior: Any = None
    monotone: Any = None
    standardise: bool = True
    random_state: Any = None
    progress: bool | None = False
    budget: float | None = None
    unknown: str = "error"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _fit_posterior(self, x: Any, y: np.ndarray, sample_weight: Any, **of_rows: Any) -> Self:
        self.__dict__.pop("learner_", None)
        data = self._first_data(x, y, **of_rows)
        if sample_weight is not None:
            data = replace(data, counts=_check_sample_weight(sample_weight, y, ensure_non_negative=True))
        self.posterior_ = fit(
            self._model(data),
            data,
            self.method,
            seed=_seed_of(self.random_state),
            progress=self.progress,
            budget=self.budget,
        )
        return self

    def _go_on(self, x: Any, y: np.ndarray) -> Self:
        """Learn more rows: from the prior, from what was fitted, or from what the rows before have left."""
        data = self._data(self._numbers(x), y) if self._is_fitted else self._first_data(x, y)
        if not hasattr(self, "learner_"):
            start = self.posterior_ if self._is_fitted else self._model(data)
            method = self._method_to_go_on(data) if self.method == "auto" else self.method
            self.learner_ = online(start, method, seed=_seed_of(self.random_state))
        self.posterior_ = self.learner_.update(data, progress=self.progress)
        return self

    def _method_to_go_on(self, data: Data) -> Any:
        """For "auto": a formula where there is one, else Laplace, whose Gaussians are handed on as they are."""
        chosen = choose(self._model(data), data).method
        return chosen if isinstance(chosen, ClosedForm) else Laplace()

    def _first_data(self, x: Any, y: np.ndarray, **more: Any) -> Data:
        """The rows that say what the columns are."""
        self.features_, numbers = Features.learn(x).fitted(x, y, self._class_names or ())
        return self._data(numbers, y, **more)

    def _data(self, x: np.ndarray, y: np.ndarray, **more: Any) -> Data:
        if hasattr(self, "feature_names_in_") or not self.features_.are_plain:
            more["names"] = self.features_.names
        return Data(x, y, standardise=self.standardise, classes=self._class_names, **more)

    @property
    def _class_names(self) -> list[str] | None:
        known = getattr(self, "classes_", None)
        return None if known is None else [str(one) for one in known]

    def _rows(self, X: Any, *, reset: bool = False) -> Any:
        """X, checked: a data frame as it is, anything else as an array."""
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        found = validate_data(self, X, reset=reset, accept_sparse=True, dtype=None, ensure_all_finite="allow-nan")
        return found.toarray() if issparse(found) else found

    def _pairs(self, X: Any, y: Any, *, reset: bool = False, **how: Any) -> tuple[Any, np.ndarray]:
        """X and y, checked."""
        rows = self._rows(X, reset=reset)
        return rows, check_X_y(np.zeros((len(rows), 1)), y, estimator=self, **how)[1]

    def _numbers(self, x: Any) -> np.ndarray:
        """Checked rows as the network takes them."""
        return self.features_.rows(x, self.unknown)

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "posterior_")

    def predictive(self, X: Any) -> Predictive:
        """The marginal p(y | X, D): mean, parts of the variance, intervals, log densities, samples.

        Classes are numbered there as in `classes_`.
        """
        check_is_fitted(self, "posterior_")
        return self.posterior_.predict(self._numbers(self._rows(X)))

    def _samples(self, X: Any, num: int, random_state: Any) -> np.ndarray:
        """Draws of y as scikit-learn has them: rows first, draws last."""
        key = random.key(_seed_of(random_state))
        return np.moveaxis(self.predictive(X).samples(key, num), 0, -1)

    def _prior(self, num_outputs: int, label: int | None = None) -> Any:
        """The prior, and the columns with which the only output rises or falls; of a table, made of its own."""
        if self.monotone is None:
            return self.prior
        if num_outputs > 1:
            raise ValueError(
                f"monotone is about one target or two classes, and there are {num_outputs}; pass prior="
                "credo.priors.consistent(prior, credo.conditions.monotone(…)) with output=… or label=… to say which"
            )
        signs = self.features_.signs(self.monotone)
        if not signs:
            return self.prior
        rising = conditions.monotone(signs, label=label)
        if self.prior is None and self._is_table:
            return lambda own: priors.consistent(own, rising)
        return priors.consistent(self.prior, rising)

    @property
    def _is_table(self) -> bool:
        """Whether the model is that of `credo.models.table`."""
        return networks.is_table(self.network)

    def _model(self, data: Data) -> Model:
        raise TypeError(f"{type(self).__name__} has no model")


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianRegressor(RegressorMixin, _Estimator):
    """A neural network for numbers with a posterior over its weights: theta ~ p(theta), y ~ N(f_theta(x), noise²).

    Arguments:
        method: the name of an inference method, or an object such as `credo.NUTS(num_samples=500)`; "auto" chooses by
            the size of model and data. `credo methods` lists them all.
        network: "table", the default model for tables (`credo.models.table`), or "table:50" with other layers; a text
            such as "linear" or "mlp:50,50,relu", or any network that `credo.networks.functional` takes, with one output
            per target (two for heteroscedastic noise).
        prior: of the weights, as for `credo.models.regression`; by default that of the model.
        monotone: columns of X with which the prediction rises or falls: 1 or "+", −1 or "-" for names or numbers of
            columns, or one of 1, 0 and −1 for each, as `monotonic_cst` in scikit-learn. A prior belief, which data may
            outweigh: see `credo.priors.consistent`.
        noise: around the network's outputs, as for `credo.models.regression`.
        likelihood: of the network "table", as for `credo.models.table`: "counts", "positive", "shares", or "auto" for
            what is found from y.
        standardise: whether to give columns and targets mean 0 and standard deviation 1 for the network. Predictions
            are in the units of y either way.
        random_state: an int gives the same bits at each fit, those of `credo.fit(seed=…)`.
        progress: a live bar on stderr.
        budget: seconds on the clock that a fit by "auto" may take.
        unknown: what a category that was not there at fit is in a prediction: "error", or "missing".

    After `fit`: `posterior_`, `features_`, `n_features_in_`, `feature_names_in_` where X is a data frame, `n_outputs_`;
    after `partial_fit` also `learner_`, whose `drift` says whether the world has changed.

    >>> import credo
    >>> data = credo.datasets.gap()
    >>> regressor = BayesianRegressor(method=credo.MAP(num_steps=50), network="mlp:10", random_state=0)
    >>> mean, std = regressor.fit(data.x, data.y).predict(data.x[:5], return_std=True)
    >>> std.shape
    (5,)
    """

    noise: Any = None
    likelihood: str | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, censored: Any = None, precisions: Any = None) -> Self:
        """Infer the posterior from rows X, (rows, columns), and targets y, (rows,) or (rows, targets).

        Arguments:
            sample_weight: how often each row was seen, (rows,), 2 is the row twice.
            censored: booleans, (rows,), True where y is only a lower bound of the target.
            precisions: w of each row, (rows,): noise of variance σ²/w. `predict` is of w = 1; see `with_precisions`.
        """
        rows = self._checked(X, y, reset=True)
        return self._fit_posterior(*rows, sample_weight, censored=censored, precisions=precisions)

    @available_if(_goes_on)
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn more rows, without those before: the first ones fix how columns and targets are scaled."""
        return self._go_on(*self._checked(X, y, reset=not self._is_fitted))

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        x, targets = self._pairs(X, y, multi_output=True, y_numeric=True, reset=reset)
        # Integers would be class labels to `Data`.
        targets = targets.astype(np.result_type(targets.dtype, np.float32))
        if reset:
            self.n_outputs_ = 1 if targets.ndim == 1 else targets.shape[1]
        return x, targets

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean of the marginal; with `return_std` also its standard deviation, noise included."""
        predictive = self.predictive(X)
        return (predictive.mean, predictive.std) if return_std else predictive.mean

    def predict_quantiles(self, X: Any, q: ArrayLike) -> np.ndarray:
        """Quantiles of the marginal of each target, (rows,) for one level q, (rows, levels) for several."""
        return np.moveaxis(self.predictive(X).quantile(q), range(np.ndim(q)), range(-np.ndim(q), 0))

    def sample_y(self, X: Any, n_samples: int = 1, *, random_state: Any = 0) -> np.ndarray:
        """Draws of y, (rows, n_samples): each is one function evaluated on all rows, plus noise."""
        return self._samples(X, n_samples, random_state)

    def _model(self, data: Data) -> Model:
        prior = self._prior(self.n_outputs_)
        if self._is_table:
            return models.table(data, self.network, prior=prior, noise=self.noise, likelihood=self.likelihood)
        if self.likelihood is not None:
            raise ValueError(f"likelihood is {self.likelihood!r}, which the network 'table' has; leave one of them out")
        outputs = as_noise(self.noise).num_outputs(self.n_outputs_)
        return model_of("regression", self.network, outputs, prior=prior, noise=self.noise)


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianClassifier(ClassifierMixin, _Estimator):
    """A neural network for classes with a posterior over its weights: theta ~ p(theta), y ~ Cat(softmax(f_theta(x))).

    Arguments:
        network: "table", the default model for tables (`credo.models.table`), or "table:50" with other layers; a text
            such as "linear" or "mlp:50,50,relu", or any network that `credo.networks.functional` takes, with one output
            per class (for two classes a single one is enough).
        monotone: as for `BayesianRegressor`, of the probability of the second of two classes.
        noise: None where all labels are right; "ncar", "nar" or "nnar" where some are not, see
            `credo.models.noisy_labels`. The predictions are about the true class, and `label_errors` finds the others.
        method, prior, standardise, random_state, progress, budget, unknown: as for `BayesianRegressor`.

    After `fit`: `posterior_`, `classes_`, `n_features_in_`, `feature_names_in_` where X is a data frame; after
    `partial_fit` also `learner_`.

    >>> BayesianClassifier(method="laplace", network="mlp:50").get_params()["network"]
    'mlp:50'
    """

    noise: str | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Infer the posterior from rows X, (rows, columns), and their classes y, numbers or texts.

        Arguments:
            sample_weight: how often each row was seen, (rows,).
        """
        x, targets = self._pairs(X, y, reset=True)
        check_classification_targets(targets)
        self.classes_, labels = np.unique(targets, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, '{self.classes_[0]}'; a classifier needs two or more")
        return self._fit_posterior(x, labels.astype(np.int32), sample_weight)

    @available_if(_goes_on)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn more rows, without those before: the first ones fix how columns are scaled.

        Arguments:
            classes: all classes that there will be, at the first call; those of y by default. Others that come later
                are new ones, at the end of `classes_`.
        """
        first = not self._is_fitted
        x, targets = self._pairs(X, y, reset=first)
        check_classification_targets(targets)
        known = np.unique(targets if classes is None else classes) if first else self.classes_
        if len(known) < 2:
            raise ValueError(f"y has one class only, '{known[0]}'; name all classes at the first call: classes=…")
        if classes is not None and not first and set(np.unique(classes)) - set(known):
            raise ValueError(f"classes is {np.unique(classes)}, and at the first call there were {known}; leave it out")
        new = np.setdiff1d(targets, known)
        if first and len(new):
            raise ValueError(f"y has the class '{new[0]}', which is not in classes={known}; name all of them")
        self.classes_, before = np.concatenate([known, new]), known
        try:
            return self._go_on(x, self._labels(targets))
        except Exception:
            self.classes_ = before
            raise

    def _labels(self, targets: np.ndarray) -> np.ndarray:
        """The places of targets in `classes_`, which are in order but for those that came on the way."""
        order = np.argsort(self.classes_)
        found = order[np.searchsorted(self.classes_, targets, sorter=order).clip(max=len(order) - 1)]
        unknown = self.classes_[found] != targets
        if unknown.any():
            raise ValueError(
                f"y has the class '{targets[unknown][0]}', and the classifier was fitted to {self.classes_}"
            )
        return found.astype(np.int32)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        label = self.predictive(X).label
        return self.classes_[label]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of the classes, in the order of `classes_`, averaged over the draws."""
        probs = self.predictive(X).probs.astype(np.float64)
        # scikit-learn's metrics want a sum of one in double precision.
        return probs / probs.sum(axis=1, keepdims=True)

    def sample_y(self, X: Any, n_samples: int = 1, *, random_state: Any = 0) -> np.ndarray:
        """Draws of the class, (rows, n_samples): each comes from one function evaluated on all rows."""
        drawn = self._samples(X, n_samples, random_state)
        return self.classes_[drawn.astype(int)]

    def label_errors(self, X: Any, y: Any) -> np.ndarray:
        """The probability that each label of y is wrong, (rows,), for a classifier with `noise`."""
        check_is_fitted(self, "posterior_")
        x, targets = self._pairs(X, y)
        return self.posterior_.label_errors((self._numbers(x), self._labels(targets)))

    def _model(self, data: Data) -> Model:
        num = len(self.classes_)
        outputs = 1 if num == 2 else num
        prior = self._prior(outputs, label=1)
        if self._is_table:
            return models.table(data, self.network, prior=prior)
        if self.noise is None:
            return model_of("classification", self.network, outputs, prior=prior)
        network = NETWORK_OF_NOISY_LABELS if networks.is_table(self.network) else self.network
        return model_of("noisy_labels", network, outputs, kind=self.noise, prior=prior)

    @property
    def _is_table(self) -> bool:
        return self.noise is None and super()._is_table


def _seed_of(random_state: Any) -> int:
    """The int itself, or a seed drawn from a generator; for None a new one each time."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(LARGEST_SEED))
