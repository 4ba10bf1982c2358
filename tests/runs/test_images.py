"""A folder of images is fitted, predicted and judged as a table is."""

import json

import numpy as np
import pytest
from PIL import Image

from credo import runs
from credo.runs import Config, Run, prepare
from credo.tables import Encoding
from credo.tables.image_folder import ImageTable
from credo.tables.kinds import column_from_dict


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Bright and dark pictures of 8 × 8: those to learn from, and others with one of another size."""
    rng = np.random.default_rng(0)
    places = tmp_path_factory.mktemp("pictures")
    for part, num in (("train", 12), ("test", 3)):
        for label, brightness in (("bright", 130), ("dark", 20)):
            place = places / part / label
            place.mkdir(parents=True)
            for number in range(num):
                values = brightness + rng.integers(0, 100, (8, 8, 3))
                Image.fromarray(values.astype(np.uint8)).save(place / f"{number}.png")
    Image.fromarray(np.full((9, 12), 40, np.uint8)).save(places / "test" / "dark" / "wide.png")
    return places


SETTINGS = {"network": "resnet8", "method": "map", "settings": {"num_steps": 20}}


@pytest.fixture(scope="module")
def run(folders):
    return Run.fit(Config(data=str(folders / "train"), **SETTINGS), folders / "run", progress=False)


def test_a_run_of_images_predicts_and_is_judged(run, folders):
    assert run.posterior.model.rows.x_shape == (2, 8, 8, 3)
    (frame,) = run.predict(folders / "test", keep=["image"])
    assert frame.columns[:3] == ["image", "p_bright", "p_dark"]
    assert len(frame) == 7
    assert frame["outside"].to_list() == [0.0] * 7
    scores = run.evaluate(folders / "test").to_dict()
    assert "accuracy" in json.dumps(scores)


def test_it_is_there_again(run, folders):
    again = Run.load(folders / "run")
    (before,), (after,) = run.predict(folders / "test"), again.predict(folders / "test")
    assert before.equals(after)
    assert "images of 8 × 8, in colour" in dict(runs.describe(folders / "run")["columns"])["image"]


def test_pictures_without_a_class_are_predicted(run, folders, tmp_path):
    for number, path in enumerate(sorted((folders / "test").rglob("*.png"))):
        (tmp_path / f"{number}.png").write_bytes(path.read_bytes())
    (frame,) = run.predict(tmp_path)
    assert len(frame) == 7


def test_images_that_were_changed_are_noticed(folders, tmp_path):
    config = Config(data=str(folders / "train"), data_sha256="0" * 64, **SETTINGS)
    with pytest.raises(ValueError, match="checksum differs"):
        prepare(config)
    one = ImageTable.open(folders / "train").checksum
    assert one == ImageTable.open(folders / "train").checksum != ImageTable.open(folders / "test").checksum


def test_without_a_network_images_get_a_residual_one(folders):
    prepared = prepare(Config(data=str(folders / "train"), method="map"))
    assert prepared.config.network == "resnet20"
    assert prepared.config.target == "class"


def test_a_column_of_images_that_no_memory_holds_is_refused(folders):
    column = Encoding.learn(folders / "train", None).columns[0].to_dict()
    assert column_from_dict(column).shape == (8, 8, 3)
    with pytest.raises(ValueError, match="too large"):
        column_from_dict(column | {"height": 10**9})
