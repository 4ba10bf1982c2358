"""Maps and sets in a file: what is read is what was written, or refused."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from credo import from_normal, from_probs
from credo._files import LoadError, checksum_of
from credo._manifest import Manifest
from credo.evaluation import IsotonicClasses, IsotonicQuantiles, Temperature, VectorScaling, conformal
from credo.runs.calibration import CALIBRATION, Calibration
from credo.tables.target import Target

RNG = np.random.default_rng(0)
NUMBERS, Y = from_normal(np.zeros(200), 0.5), RNG.normal(size=200)
CLASSES, LABELS = from_probs(RNG.dirichlet(np.ones(3), 200)), RNG.integers(0, 3, 200)


def read(folder: Path, content: bytes, posterior: Any = None) -> Any:
    (folder / CALIBRATION).write_bytes(content)
    return Calibration.read(folder, Manifest({CALIBRATION: checksum_of(content)}), posterior)


@pytest.mark.parametrize(
    ("kind", "prediction", "y"),
    [
        (IsotonicQuantiles, NUMBERS, Y),
        (IsotonicClasses, CLASSES, LABELS),
        (Temperature, CLASSES, LABELS),
        (VectorScaling, CLASSES, LABELS),
    ],
)
def test_a_map_does_the_same_when_it_is_read(kind: Any, prediction: Any, y: np.ndarray, tmp_path: Path) -> None:
    map = kind.fit(prediction, y)
    posterior = SimpleNamespace(predict=lambda x, num_draws: prediction)
    seen, found = read(tmp_path, Calibration(map).to_json(), posterior)
    assert found.sets is None
    np.testing.assert_array_equal(seen.predict(None).log_prob(y), map(prediction).log_prob(y))


def test_sets_are_the_same_when_they_are_read(tmp_path: Path) -> None:
    regression = SimpleNamespace(predict=lambda x: from_normal(x[:, 0], 0.5))
    classifier = SimpleNamespace(predict=lambda x: from_probs(np.tile([0.5, 0.3, 0.2], (len(x), 1))))
    x = RNG.normal(size=(50, 1))
    numbers = conformal(regression, (x, x[:, 0] + RNG.normal(size=50)), level=0.8)
    _, found = read(tmp_path, Calibration(sets=numbers).to_json(), regression)
    columns = found.columns(x, Target("y", "regression"))
    np.testing.assert_array_equal(columns["conformal_lower"], numbers.interval(x)[0])
    labels = conformal(classifier, (x, RNG.integers(0, 3, 50)), level=0.8)
    _, found = read(tmp_path, Calibration(sets=labels).to_json(), classifier)
    said = found.columns(x, Target("y", "multi-class", ("a", "b", "c")))["conformal_set"]
    assert said[0] == "|".join(np.array(["a", "b", "c"])[labels.labels(x)[0]])


def test_without_a_calibration_nothing_changes(tmp_path: Path) -> None:
    assert Calibration.read(tmp_path, Manifest(), "posterior") == ("posterior", None)
    assert Calibration().columns(np.zeros((2, 1)), Target("y", "regression")) == {}


@pytest.mark.parametrize(
    "stored",
    [
        {"recalibration": {"kind": "Rotation"}},
        {"recalibration": {"kind": "Temperature", "temperature": "hot"}},
        {"recalibration": 3},
        {"conformal": {"score": "scaled"}},
        {"conformal": {"score": "mine", "level": 0.9, "threshold": 1.0, "num_data": 9, "seed": 0}},
    ],
)
def test_what_does_not_fit_is_refused(stored: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"calibration\.json"):
        read(tmp_path, json.dumps(stored).encode())
