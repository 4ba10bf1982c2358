"""One fit of a table, by credo or by a peer, in a process of its own; and what its predictions are worth.

    python -m benchmarks.table_fits DATA.npz ARGUMENTS LIMIT

fits one of credo's estimators with these arguments and prints its scores as JSON; after LIMIT seconds of the processors
the system ends it.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import peers
from benchmarks.table_problems import Parts
from benchmarks.timing import GivenUpError, in_new_process

LEVEL = 0.9
# A class that a peer rules out counts as this probability: a single such row would make the average infinite.
LEAST_PROBABILITY = 1e-15
Scores = dict[str, Any]


class Credo(NamedTuple):
    """`credo.sklearn.BayesianRegressor`, or `BayesianClassifier` where targets are classes, with these arguments."""

    arguments: dict[str, Any]


class Peer(NamedTuple):
    """A method of `peers/tables.py`, with these settings."""

    method: str
    settings: dict[str, Any]


def measure(method: Credo | Peer, parts: Parts, seed: int, limit: int) -> Scores:
    """Fit, predict and score; a fit that takes more than `limit` seconds of the processors is given up and says so."""
    with tempfile.TemporaryDirectory() as folder:
        data, answer = Path(folder) / "data.npz", Path(folder) / "answer.npz"
        np.savez(data, **parts._asdict())
        try:
            if isinstance(method, Credo):
                arguments = json.dumps(method.arguments | {"random_state": seed})
                program = [sys.executable, "-W", "ignore", "-m", "benchmarks.table_fits"]
                return in_new_process([*program, str(data), arguments, str(limit)])
            settings = json.dumps(method.settings | {"seed": seed})
            seconds = peers.measure("tables.py", method.method, str(data), str(answer), settings, str(limit))
        except GivenUpError:
            return {"given_up_after": limit}
        return scores(_prediction(np.load(answer)), parts.test_y) | seconds


def scores(prediction: Any, y: np.ndarray) -> Scores:
    """Averages over rows, in the units of y: nats, CRPS, error, the share inside the intervals; or those of classes."""
    from credo import evaluation

    nats = {"log_likelihood": evaluation.lpd(prediction, y)}
    if y.dtype.kind != "f":
        return nats | {"ece": evaluation.ece(prediction, y), "accuracy": evaluation.accuracy(prediction, y)}
    return nats | {
        "crps": evaluation.crps(prediction, y),
        "rmse": evaluation.rmse(prediction, y),
        "coverage": evaluation.coverage(prediction, y, LEVEL),
    }


def _prediction(answer: Any) -> Any:
    """A peer's answer as a prediction of credo, which all scores are computed from."""
    import credo

    if "probs" in answer:
        return credo.from_probs(np.clip(answer["probs"], LEAST_PROBABILITY, 1))
    return credo.from_normal(answer["mean"], answer["std"])


def main() -> None:
    data, arguments, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), resource.getrlimit(resource.RLIMIT_CPU)[1]))
    print(json.dumps(of_credo(Parts(**np.load(data)), json.loads(arguments))))


def of_credo(parts: Parts, arguments: dict[str, Any]) -> Scores:
    """The scores of one of credo's estimators, and the status that its verdict has."""
    import credo
    from credo.sklearn import BayesianClassifier, BayesianRegressor

    estimator = (BayesianRegressor if parts.y.dtype.kind == "f" else BayesianClassifier)(**arguments)
    began, spent = time.perf_counter(), time.process_time()
    prediction = estimator.fit(parts.x, parts.y).predictive(parts.test_x)
    # Predictions are made when they are asked for.
    prediction.log_prob(parts.test_y)
    seconds = {"seconds": time.perf_counter() - began, "processor": time.process_time() - spent}
    rows = parts.y if parts.y.dtype.kind == "f" else np.searchsorted(estimator.classes_, parts.y)
    status = credo.check(estimator.posterior_, (parts.x, rows)).status
    return scores(prediction, parts.test_y) | seconds | {"status": str(status)}


if __name__ == "__main__":
    main()
