"""Rows in files: what opening them finds and refuses, and the law of their order."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import credo
from credo.data import shuffled
from credo.data.shuffled import Batches, Order

RNG = np.random.default_rng(0)
X = RNG.normal([5.0, -2.0, 1e3], [2.0, 0.1, 30.0], size=(1003, 3))
Y = X @ np.array([1.0, 2.0, 0.1]) + 7.0


def saved(folder: Path, x: np.ndarray = X, y: np.ndarray = Y) -> tuple[Path, Path]:
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    return folder / "x.npy", folder / "y.npy"


def frame(x: np.ndarray = X, y: np.ndarray = Y) -> pl.DataFrame:
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y})


def in_parquet(folder: Path) -> credo.data.FileData:
    frame().write_parquet(folder / "rows.parquet")
    return credo.Data.open(folder / "rows.parquet", target="y")


def in_parquet_folder(folder: Path) -> credo.data.FileData:
    (folder / "parts").mkdir()
    for number, part in enumerate((frame()[:400], frame()[400:])):
        part.write_parquet(folder / "parts" / f"{number}.parquet")
    return credo.Data.open(folder / "parts", target="y")


def in_arrow(folder: Path) -> credo.data.FileData:
    frame().write_ipc(folder / "rows.arrow")
    return credo.Data.open(folder / "rows.arrow", target="y")


def in_one_array(folder: Path) -> credo.data.FileData:
    np.save(folder / "rows.npy", np.column_stack([X, Y]))
    return credo.Data.open(folder / "rows.npy")


@pytest.mark.parametrize("make", [in_parquet, in_parquet_folder, in_arrow, in_one_array], ids=lambda one: one.__name__)
def test_it_holds_the_rows_and_their_scaling(tmp_path: Path, make: Callable[[Path], credo.data.FileData]) -> None:
    found, held = make(tmp_path), credo.Data(X, Y, standardise=True)
    blocks = list(found.blocks(100))
    assert [block.size for block in blocks] == [100] * 10 + [3]
    # Tables are unpacked in single precision.
    np.testing.assert_allclose(np.concatenate([block.x for block in blocks]), X, rtol=1e-6)
    np.testing.assert_allclose(np.concatenate([block.y for block in blocks]), Y, rtol=1e-6)
    for name, value in held.scaling.to_dict().items():
        np.testing.assert_allclose(getattr(found.scaling, name), value, rtol=1e-6)
    assert found.names == (None if make is in_one_array else ("a", "b", "c"))


def test_moments_by_blocks_are_those_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credo.data.moments, "BLOCK_NUMBERS", 3 * 17)
    x = np.column_stack([X + 1e6, np.full(len(X), 0.1)])  # far from zero, and a column that is constant
    found = credo.Data.open(saved(tmp_path, x)).scaling
    held = credo.Data(x, Y, standardise=True).scaling
    for name, value in held.to_dict().items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-10)


def test_labels_are_not_scaled_and_keep_their_range(tmp_path: Path) -> None:
    labels = np.zeros(len(X), int)
    labels[777] = 2  # which no few rows at equal distances would hold
    found = credo.Data.open(saved(tmp_path, y=labels), classes=["p", "q", "r"])
    assert found.sample.y.max() == 2
    assert found.read(777, 778).y.dtype == np.int32
    assert "labels 0 to 2" in repr(found)


def test_what_was_unpacked_goes_with_the_data(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    frame().write_parquet(tmp_path / "rows.parquet")
    found = credo.Data.open(tmp_path / "rows.parquet", target="y", scratch=tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir())
    del found
    assert not list((tmp_path / "scratch").iterdir())


# -- the law of the order ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "per_block", "per_window"), [(1003, 10, 7), (1003, 1003, 1), (7, 3, 50), (64, 8, 4)])
def test_each_row_comes_once_an_epoch(rows: int, per_block: int, per_window: int) -> None:
    order = Order(rows, per_block, per_window, (3, 1))
    epochs = [[order.rows(epoch, window) for window in range(order.num_windows)] for epoch in (0, 1)]
    for epoch, windows in enumerate(epochs):
        assert np.array_equal(np.sort(np.concatenate(windows)), np.arange(rows))
        assert order.begins(epoch).tolist() == np.cumsum([0, *map(len, windows)]).tolist()
    if rows > 7:
        assert not np.array_equal(*map(np.concatenate, epochs))


def batches(order: Order, size: int, first: int, num: int) -> np.ndarray:
    """The numbers of the rows of some batches, (batches, rows)."""
    numbers = np.arange(order.num_rows)
    with ThreadPoolExecutor(1) as pool:
        own = Batches(order, lambda low, high: (numbers[low:high, None], numbers[low:high]), size, pool)
        x, y = np.empty((num, size, 1), int), np.empty((num, size), int)
        own.fill(first, num, x, y)
    assert np.array_equal(x[..., 0], y)
    return y


def test_batches_of_an_epoch_are_disjoint_and_any_can_be_read_by_itself() -> None:
    order, size = Order(1003, 10, 7, (0, 0)), 50
    whole = batches(order, size, 0, 45)
    for epoch in (whole[:20], whole[20:40]):
        assert len(np.unique(epoch)) == 1000
    for first, num in ((0, 1), (13, 2), (19, 3), (38, 7)):
        assert np.array_equal(batches(order, size, first, num), whole[first : first + num])
    assert np.array_equal(batches(Order(1003, 10, 7, (0, 0)), size, 0, 45), whole)
    assert not np.array_equal(batches(Order(1003, 10, 7, (0, 1)), size, 0, 45), whole)


def test_every_row_comes_at_every_place_with_the_same_probability() -> None:
    # χ² of 30 rows at 5 places of an epoch (of 30), in 6,000 epochs: 29·5 degrees of freedom, sd √290 = 17.
    order, num = Order(30, 3, 4, (5,)), 6000
    places = np.array([np.concatenate([order.rows(epoch, window) for window in range(3)])[::7] for epoch in range(num)])
    counts = np.array([np.bincount(column, minlength=30) for column in places.T])
    expected = num / 30
    assert abs(np.sum((counts - expected) ** 2 / expected) - 145) < 6 * 17


def test_shares_are_all_rows_and_know_the_total(tmp_path: Path) -> None:
    paths = saved(tmp_path)
    shares = [credo.Data.open(paths, share=(index, 4)) for index in range(4)]
    rows = np.concatenate([block.x for one in shares for block in one.blocks()])
    assert np.array_equal(rows, X)
    assert {one.batch().total for one in shares} == {len(X)}
    assert all(np.array_equal(one.scaling.x_mean, shares[0].scaling.x_mean) for one in shares)


def test_parts_of_shuffled_rows_are_all_rows(tmp_path: Path) -> None:
    found = credo.Data.open(saved(tmp_path))
    parts = list(found.shuffled(200))
    assert len(parts) == 5
    assert np.array_equal(np.sort(np.concatenate([one.y for one in parts])), np.sort(Y))
    # Made of blocks from anywhere: the first part is not the first rows.
    assert not np.isin(parts[0].y, Y[: parts[0].size]).all()


# -- what is refused ---------------------------------------------------------------------------------------


def refused(words: str, source: Any, **options: Any) -> None:
    with pytest.raises((ValueError, OSError), match=words):
        credo.Data.open(source, **options)


def test_what_cannot_be_read_is_refused_in_words(tmp_path: Path) -> None:
    refused("does not exist", (tmp_path / "no.npy", tmp_path / "no.npy"))
    refused("does not exist", tmp_path / "no.parquet", target="y")
    refused(r"x\.npy has 1,003 rows .* 1,002", saved(tmp_path, y=Y[1:]))
    refused("Fortran", saved(tmp_path, x=np.asfortranarray(X)))
    refused("dtype complex", saved(tmp_path, x=X + 0j))
    refused("cannot be read by blocks", tmp_path / "rows.csv", target="y")
    refused("holds no files that end in", tmp_path, target="y")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but no more")
    refused("damaged", tmp_path / "bad.parquet", target="y")
    refused("share is", saved(tmp_path), share=(2, 2))
    with (tmp_path / "x.npy").open("r+b") as file:
        file.truncate(1000)
    refused("cut short", (tmp_path / "x.npy", tmp_path / "y.npy"))


def test_a_value_that_is_not_finite_is_named_by_row_and_column(tmp_path: Path) -> None:
    x = X.copy()
    x[321, 1] = np.nan
    refused("x of row 321, column 1 is nan", saved(tmp_path, x))
    frame(x).write_parquet(tmp_path / "rows.parquet")
    refused("x of row 321, column 'b' is nan", tmp_path / "rows.parquet", target="y")


def test_columns_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    table, path = frame().with_columns(city=pl.lit("Bern")), tmp_path / "rows.parquet"
    table.write_parquet(path)
    refused("column 'city' is String", path, target="y")
    refused("no column 'z'", path, target="z")
    refused("name the column", path)
    assert credo.Data.open(path, target="y", drop=["city"]).names == ("a", "b", "c")
    frame().with_columns(a=pl.when(pl.col("b") < -2).then(pl.col("a"))).write_parquet(path)
    refused("column 'a' misses", path, target="y")


def test_a_column_that_changes_its_type_half_way_is_named_with_its_file(tmp_path: Path) -> None:
    frame()[:400].write_parquet(tmp_path / "0.parquet")
    frame()[400:].with_columns(b=pl.col("b").cast(pl.String)).write_parquet(tmp_path / "1.parquet")
    refused(r"1\.parquet: column 'b' is String, and in 0\.parquet it is Float64", tmp_path, target="y")
    frame()[400:].drop("c").write_parquet(tmp_path / "1.parquet")
    refused(r"1\.parquet has no column 'c'", tmp_path, target="y")


def test_a_disk_without_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame().write_parquet(tmp_path / "rows.parquet")
    (tmp_path / "scratch").mkdir()
    usage = credo.data.unpacked.shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(credo.data.unpacked.shutil, "disk_usage", lambda _: usage)
    refused("take .* to unpack", tmp_path / "rows.parquet", target="y", scratch=tmp_path / "scratch")
    assert not list((tmp_path / "scratch").iterdir())


def test_windows_hold_many_blocks() -> None:
    assert shuffled.BYTES_PER_WINDOW >= 100 * shuffled.BYTES_PER_BLOCK
