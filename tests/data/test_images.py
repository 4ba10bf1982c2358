"""Pictures in folders, and the files of CIFAR."""

import numpy as np
import pytest
from PIL import Image

from credo import Data, datasets
from credo.data.images import image_files, pixels, usual_shape

RNG = np.random.default_rng(0)


def picture(height, width, *channels):
    return Image.fromarray(RNG.integers(0, 256, (height, width, *channels), dtype=np.uint8))


@pytest.fixture
def folder(tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / label / "deeper").mkdir(parents=True)
        for number in range(3):
            picture(8, 6, 3).save(tmp_path / label / f"{number}.png")
    picture(8, 6).save(tmp_path / "dog" / "deeper" / "grey.PNG")
    picture(20, 20, 3).save(tmp_path / "cat" / "large.jpg")
    picture(8, 6, 3).save(tmp_path / "whose.png")
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def test_folders_are_classes(folder):
    data = datasets.images(folder)
    assert data.x.shape == (9, 8, 6, 3)
    assert data.classes == ("cat", "dog")
    assert data.y[data.labelled].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert data.labelled.tolist() == [False, *[True] * 8]
    assert 0 <= data.x.min() < data.x.max() <= 1
    expected = np.asarray(Image.open(folder / "cat" / "0.png")) / np.float32(255)
    np.testing.assert_array_equal(data.x[1], expected)


def test_sizes_are_chosen(folder):
    assert datasets.images(folder, size=(4, 4)).x.shape == (9, 4, 4, 3)


def test_pictures_in_grey_have_one_channel(tmp_path):
    for label in "ab":
        (tmp_path / label).mkdir()
        picture(8, 8).save(tmp_path / label / "one.png")
    Image.fromarray(np.full((8, 8), 65535, np.uint16)).save(tmp_path / "b" / "sixteen_bits.png")
    data = datasets.images(tmp_path)
    assert data.x.shape == (3, 8, 8, 1)
    assert data.x[2].min() == 1.0


def test_a_cache_holds_what_is_not_in_memory(folder, tmp_path):
    cached = datasets.images(folder, cache=tmp_path / "pixels.npy")
    whole = datasets.images(folder)
    np.testing.assert_array_equal(cached.x, whole.x)
    assert not cached.x.flags.writeable
    assert cached.select(cached.labelled).size == 8


def test_mapped_numbers_reach_the_device_without_a_copy(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, RNG.normal(size=(64, 8)).astype(np.float32))
    mapped = np.load(path, mmap_mode="r")
    data = Data(mapped, np.zeros(64))
    assert data.batch().x.unsafe_buffer_pointer() == mapped.ctypes.data
    # What its owner may write to is copied.
    own = Data(np.array(mapped), np.zeros(64))
    assert not np.shares_memory(own.scaling.inputs(own.x), own.x)


def test_what_is_no_picture_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no folder"):
        datasets.images(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds no images"):
        datasets.images(tmp_path)
    picture(8, 8, 3).save(tmp_path / "one.png")
    with pytest.raises(ValueError, match="no folders of them"):
        datasets.images(tmp_path)
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "broken.png").write_bytes(b"\x89PNG nothing")
    with pytest.raises(ValueError, match=r"broken.png is no image that can be read"):
        datasets.images(tmp_path)


def test_a_picture_cut_short_is_refused(folder):
    path = folder / "cat" / "0.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"0.png is no image that can be read"):
        pixels(path, usual_shape(image_files(folder)))


def write_cifar(folder, names, num_labels):
    folder.mkdir()
    for name in names:
        rows = RNG.integers(0, 256, (4, num_labels + 3072), dtype=np.uint8)
        rows[:, :num_labels] = np.arange(4)[:, None] + np.arange(num_labels)
        rows[0, num_labels : num_labels + 1024] = 255  # the first is red, as far as it is all of one number
        rows[0, num_labels + 1024 :] = 0
        rows.tofile(folder / f"{name}.bin")


def test_cifar_is_parsed(tmp_path):
    write_cifar(tmp_path / "cifar-10-batches-bin", [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"], 1)
    write_cifar(tmp_path / "cifar-100-binary", ["train", "test"], 2)
    for classes, num_train, first in ((10, 20, 0), (100, 4, 1)):
        train, test = datasets.cifar(tmp_path, classes=classes)
        assert (train.x.shape, test.x.shape) == ((num_train, 32, 32, 3), (4, 32, 32, 3))
        assert train.y[:4].tolist() == [first, first + 1, first + 2, first + 3]
        np.testing.assert_array_equal(train.x[0], np.broadcast_to([1.0, 0.0, 0.0], (32, 32, 3)))
    standardised, test = datasets.cifar(tmp_path, standardise=True)
    np.testing.assert_allclose(standardised.batch().x.mean((0, 1, 2)), 0, atol=1e-5)
    assert test.scaling is standardised.scaling


def test_cifar_that_is_not_there_or_not_whole_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data_batch_1.bin does not exist.*binary version of CIFAR"):
        datasets.cifar(tmp_path)
    write_cifar(tmp_path / "cifar-100-binary", ["train", "test"], 2)
    (tmp_path / "cifar-100-binary" / "test.bin").write_bytes(b"123")
    with pytest.raises(ValueError, match="not a binary file of CIFAR-100"):
        datasets.cifar(tmp_path, classes=100)
    with pytest.raises(ValueError, match="classes must be"):
        datasets.cifar(tmp_path, classes=20)
