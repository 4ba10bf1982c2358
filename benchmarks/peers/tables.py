"""A peer on one table: fits the training part, predicts the test part; prints its seconds as JSON.

    python tables.py METHOD DATA.npz ANSWER.npz SETTINGS LIMIT

DATA holds x, y and test_x. The answer holds, of numbers, the `mean` and `std` of normal distributions that are
averaged, (components, rows), in the units of y; of classes 0, 1, …, their `probs`, (rows, classes). After LIMIT
seconds of the processors the system ends the program.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

# One thread: what is compared is what a fit costs, on a machine that does other things besides.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
# But a device per core, before JAX is loaded: the only way in which bde uses them.
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={len(os.sched_getaffinity(0))}"

import numpy as np

Answer = dict[str, np.ndarray]


def main() -> None:
    method, data_path, answer_path, text, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), resource.getrlimit(resource.RLIMIT_CPU)[1]))
    settings = json.loads(text)
    data = np.load(data_path)
    x, y, test_x = (data[name] for name in ("x", "y", "test_x"))
    x, test_x, y = x.astype(float), test_x.astype(float), y.astype(float if y.dtype.kind == "f" else int)
    fit, modules = PEERS[method]
    for name in modules:  # what is loaded now takes no time of the fit
        import_module(name)
    began, spent = time.perf_counter(), time.process_time()
    answer = fit(x, y, test_x, **settings)
    seconds = {"seconds": time.perf_counter() - began, "processor": time.process_time() - spent}
    np.savez(answer_path, **answer)
    print(json.dumps(seconds))


# -- numbers -------------------------------------------------------------------------------------------------------


def gaussian_process(x: Any, y: Any, test_x: Any, *, seed: int, restarts: int, tuned_on: int, most: int) -> Answer:
    """A squared exponential with a length for each input, and white noise, chosen by the evidence.

    Of many rows, `most` at random are conditioned on, and the evidence is that of the first `tuned_on` of these.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    x, test_x = _standardised(x, test_x)
    target = (y - y.mean()) / y.std()
    # Wide bounds: an input without relevance gets a length of thousands, a target without noise almost none.
    lengths = RBF(np.ones(x.shape[1]), (1e-2, 1e4))
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * lengths + WhiteKernel(0.1, (1e-6, 1e1))
    rows = np.random.default_rng(seed).permutation(len(x))[:most]
    few = rows[:tuned_on]
    tuned = GaussianProcessRegressor(kernel, n_restarts_optimizer=restarts, random_state=seed).fit(x[few], target[few])
    whole = GaussianProcessRegressor(tuned.kernel_, optimizer=None).fit(x[rows], target[rows])
    mean, std = whole.predict(test_x, return_std=True)
    return _normal(y.mean() + y.std() * mean, y.std() * std)


def ngboost(x: Any, y: Any, test_x: Any, *, seed: int, trees: int, folds: int = 0) -> Answer:
    """Natural gradient boosting of a normal distribution; with `folds`, by as many trees as predict these best."""
    from ngboost import NGBRegressor

    def boosted(num: int, **stopping: Any) -> Any:
        return NGBRegressor(n_estimators=num, random_state=seed, verbose=False, **stopping)

    def best(train: np.ndarray, held_out: np.ndarray) -> int:
        tried = boosted(trees, early_stopping_rounds=PATIENCE).fit(x[train], y[train], x[held_out], y[held_out])
        return 1 + tried.best_val_loss_itr

    found = boosted(_mean_best(best, len(x), folds, seed) or trees).fit(x, y).pred_dist(test_x)
    return _normal(found.params["loc"], found.params["scale"])


def catboost(x: Any, y: Any, test_x: Any, *, seed: int, trees: int, folds: int = 0) -> Answer:
    """Gradient boosting of a normal distribution; with `folds`, by as many trees as predict these best."""
    from catboost import CatBoostRegressor

    def boosted(num: int) -> Any:
        return CatBoostRegressor(loss_function="RMSEWithUncertainty", iterations=num, random_seed=seed, **QUIETLY)

    mean, variance = _catboost(boosted, x, y, seed, trees, folds).predict(test_x).T
    return _normal(mean, np.sqrt(variance))


def bde(x: Any, y: Any, test_x: Any, *, seed: int, **settings: Any) -> Answer:
    """An ensemble whose members start chains of microcanonical Langevin dynamics."""
    from bde import BdeRegressor
    from bde.loss import GaussianNLL

    x, test_x = _standardised(x, test_x)
    regressor = BdeRegressor(seed=seed, loss=GaussianNLL(), **settings)
    regressor.fit(x=x, y=((y - y.mean()) / y.std())[:, None])
    # (members, draws, rows, 2), of which the last is the scale before its softplus, as bde's own predictions have it.
    mean, scale = np.moveaxis(np.asarray(regressor.predict(test_x, raw=True)).reshape(-1, len(test_x), 2), 2, 0)
    return {"mean": y.mean() + y.std() * mean, "std": y.std() * (np.logaddexp(0, scale) + 1e-6)}


def constant(x: Any, y: Any, test_x: Any, *, seed: int) -> Answer:
    """The mean and the standard deviation of y, whatever the inputs are."""
    return _normal(np.full(len(test_x), y.mean()), np.full(len(test_x), y.std(ddof=1)))


def _normal(mean: Any, std: Any) -> Answer:
    """One normal distribution for each row."""
    return {"mean": np.asarray(mean)[None], "std": np.asarray(std)[None]}


# -- classes -------------------------------------------------------------------------------------------------------


def logistic(x: Any, y: Any, test_x: Any, *, seed: int, folds: int) -> Answer:
    """Logistic regression, whose ridge penalty is chosen by cross-validated log loss."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import StratifiedKFold

    x, test_x = _standardised(x, test_x)
    by = StratifiedKFold(folds, shuffle=True, random_state=seed)
    # A mean over folds and one penalty for all classes.
    settings = {"scoring": "neg_log_loss", "max_iter": 2_000, "use_legacy_attributes": False}
    return {"probs": LogisticRegressionCV(cv=by, **settings).fit(x, y).predict_proba(test_x)}


def hist_gradient_boosting(x: Any, y: Any, test_x: Any, *, seed: int, calibrated: int | None = None) -> Answer:
    """scikit-learn's histogram gradient boosting; or several, each calibrated by sigmoids on a fold it has not seen."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold

    classifier = HistGradientBoostingClassifier(random_state=seed)
    if calibrated is not None:
        by = StratifiedKFold(calibrated, shuffle=True, random_state=seed)
        classifier = CalibratedClassifierCV(classifier, cv=by)
    return {"probs": classifier.fit(x, y).predict_proba(test_x)}


def catboost_classes(x: Any, y: Any, test_x: Any, *, seed: int, trees: int, folds: int = 0) -> Answer:
    """Gradient boosting; with `folds`, by as many trees as predict these best."""
    from catboost import CatBoostClassifier

    def boosted(num: int) -> Any:
        return CatBoostClassifier(loss_function="MultiClass", iterations=num, random_seed=seed, **QUIETLY)

    return {"probs": _catboost(boosted, x, y, seed, trees, folds).predict_proba(test_x)}


def constant_classes(x: Any, y: Any, test_x: Any, *, seed: int) -> Answer:
    """How frequent the classes are, whatever the inputs are."""
    return {"probs": np.tile(np.bincount(y) / len(y), (len(test_x), 1))}


# -- what they share -----------------------------------------------------------------------------------------------

PATIENCE = 50
QUIETLY = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
# Above so many rows, what one fold says about the number of trees is enough.
LARGE = 2_000


def _catboost(boosted: Callable[[int], Any], x: Any, y: Any, seed: int, trees: int, folds: int) -> Any:
    """CatBoost fitted to all rows."""

    def best(train: np.ndarray, held_out: np.ndarray) -> int:
        unseen = (x[held_out], y[held_out])
        return boosted(trees).fit(x[train], y[train], eval_set=unseen, early_stopping_rounds=PATIENCE).tree_count_

    return boosted(_mean_best(best, len(x), folds, seed) or trees).fit(x, y)


def _mean_best(best: Callable[[np.ndarray, np.ndarray], int], num: int, folds: int, seed: int) -> int:
    """The number of trees that is best for rows held out, on average over the folds; 0 where there are none."""
    parts = np.array_split(np.random.default_rng(seed).permutation(num), max(folds, 1))
    rest = [np.setdiff1d(np.arange(num), part) for part in parts]
    tried = list(zip(rest, parts, strict=True))[: folds if num <= LARGE else min(folds, 1)]
    return round(float(np.mean([best(*rows) for rows in tried]))) if tried else 0


def _standardised(x: np.ndarray, test_x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of mean 0 and standard deviation 1, as the training part has them; those that are constant become 0."""
    spread = x.std(axis=0)
    mean, scale = x.mean(axis=0), np.where(spread > 0, spread, 1)
    return (x - mean) / scale, (test_x - mean) / scale


# Each with the modules that it loads.
PEERS: dict[str, tuple[Callable[..., Answer], tuple[str, ...]]] = {
    "gaussian_process": (gaussian_process, ("sklearn.gaussian_process",)),
    "ngboost": (ngboost, ("ngboost",)),
    "catboost": (catboost, ("catboost",)),
    "bde": (bde, ("bde",)),
    "constant": (constant, ()),
    "logistic": (logistic, ("sklearn.linear_model", "sklearn.model_selection")),
    "hist_gradient_boosting": (hist_gradient_boosting, ("sklearn.ensemble", "sklearn.calibration")),
    "catboost_classes": (catboost_classes, ("catboost",)),
    "constant_classes": (constant_classes, ()),
}

if __name__ == "__main__":
    main()
