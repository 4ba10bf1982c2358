"""Pools: what a model and a person see of rows, images, lines and arrays."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from credo.labelling.features import edges
from credo.labelling.pools import read_pool
from credo.tables import Source


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Five images in a folder and a folder in it, one of which does not decode."""
    folder = tmp_path / "pictures"
    (folder / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number, suffix in enumerate(("png", "jpg", "webp", "tif")):
        image = Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8))
        image.save(folder / ("more" if number % 2 else ".") / f"{number}.{suffix}")
    (folder / "broken.png").write_bytes(b"\x89PNG but no more")
    (folder / "notes.txt").write_text("no image")
    return folder


def test_images_that_do_not_decode_are_named_and_left_out(pictures: Path) -> None:
    with pytest.warns(UserWarning, match=r"left out: broken\.png$"):
        pool = read_pool(pictures)
    assert pool.ids == ("0.png", "2.webp", "more/1.jpg", "more/3.tif")
    assert len(pool.x) == 4
    assert np.isfinite(pool.x).all()
    kinds = {item: pool.image(item)[1] for item in pool.ids}
    assert kinds == {
        "0.png": "image/png",
        "2.webp": "image/webp",
        "more/1.jpg": "image/jpeg",
        "more/3.tif": "image/png",
    }
    for item in pool.ids:
        with Image.open(io.BytesIO(pool.image(item)[0])) as image:
            assert image.size == (60, 40)


def test_what_a_model_sees_of_images_does_not_depend_on_contrast() -> None:
    grey = np.random.default_rng(0).random((3, 32, 32))
    np.testing.assert_allclose(edges(grey), edges(50 * grey), atol=0.01)


@pytest.mark.parametrize("shape", [(5, 8, 8), (5, 8, 8, 1), (5, 8, 8, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_arrays_of_images(tmp_path: Path, shape: tuple[int, ...], dtype: type) -> None:
    x = (np.random.default_rng(0).random(shape) * 200).astype(dtype)
    np.savez(tmp_path / "x.npz", x=x, kind=np.array([1.0, np.nan, 2.0, np.nan, 1.0]))
    pool = read_pool(tmp_path / "x.npz", target="kind")
    assert dict(pool.given) == {"1": "1", "3": "2", "5": "1"}
    content, kind = pool.image("2")
    assert kind == "image/png"
    with Image.open(io.BytesIO(content)) as image:
        assert image.size == (64, 64)


def test_rows_of_a_table_are_seen_at_one_scale(tmp_path: Path) -> None:
    path = tmp_path / "rooms.csv"
    path.write_text("city,size,price,kind\nBern,3,100000,\nRome,,250000,flat\nOslo,9,90000,\n")
    pool = read_pool(path, target="kind")
    assert pool.fields("2") == (("city", "Rome"), ("size", ""), ("price", "250000"))
    assert dict(pool.given) == {"2": "flat"}
    np.testing.assert_allclose(pool.x.std(axis=0), 1.0, atol=1e-6)
    np.testing.assert_allclose(pool.x.mean(axis=0), 0.0, atol=1e-6)


def test_a_label_belongs_to_what_a_row_holds_without_its_target(tmp_path: Path) -> None:
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("size,kind\n3,\n4,flat\n")
    other.write_text("size,kind\n3,house\n5,\n")
    one, two = read_pool(path, target="kind"), read_pool(other, target="kind")
    assert one.digests[0] == two.digests[0]
    assert one.digests[1] != two.digests[1]


def test_lines_of_text_that_say_the_same_lie_together(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text(
        "\ufeffa very good film\n\na good film indeed\nthe train was late\nthe late train\n", encoding="utf-8"
    )
    pool = read_pool(path)
    assert pool.text("1") == "a very good film"
    likeness = pool.x @ pool.x.T
    assert likeness[0, 1] > likeness[0, 2]
    assert likeness[2, 3] > likeness[1, 3]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("empty.txt", b"\n \n", "holds nothing to label"),
        ("latin.txt", "sch\xf6n".encode("latin-1"), "not text in UTF-8"),
        ("empty.csv", b"size,kind\n", "holds nothing to label"),
        ("names.csv", b"kind\na\nb\n", "no column to learn from"),
        ("rooms.csv", b"size,knd\n1,a\n2,b\n", "no column 'kind'; did you mean 'knd'"),
        ("file.pdf", b"%PDF", "unknown suffix"),
    ],
)
def test_pools_that_are_none_are_refused(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=told):
        read_pool(tmp_path / name, target=None if name.endswith("txt") else "kind")


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds nothing to label; put images there that end in \.png"):
        read_pool(tmp_path)


def test_a_target_of_what_has_no_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no table with columns"):
        read_pool(tmp_path, target="kind")


@pytest.mark.parametrize("x", [np.zeros((3, 4, 4, 2)), np.full((3, 4, 4), np.nan), np.zeros((0, 4, 4))])
def test_arrays_that_are_no_images_are_refused(tmp_path: Path, x: np.ndarray) -> None:
    np.savez(tmp_path / "x.npz", x=x)
    with pytest.raises(ValueError, match=r"x\.npz holds"):
        read_pool(tmp_path / "x.npz")


def test_pools_that_are_no_tables_are_not_told_how_tables_are_written(tmp_path):
    (tmp_path / "t.txt").write_text("a line\nanother\n")
    with pytest.raises(ValueError, match=r"encoding is 'cp1252', and .* is no table with columns"):
        read_pool(Source(tmp_path / "t.txt", encoding="cp1252"))
