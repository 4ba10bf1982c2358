"""Tables that memory has no room for: fitted from a file by themselves, or refused in words."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import credo
from credo.runs import Config, Run, prepare
from credo.tables import streamed
from credo.tables.encoding import Encoding

RNG = np.random.default_rng(0)
SIZE, CITY = RNG.normal(5, 2, 400), RNG.choice(["Bern", "Rome"], 400)
TABLE = pl.DataFrame({"size": SIZE, "city": CITY, "price": SIZE + 3.0 * (CITY == "Rome") + 0.1 * RNG.normal(size=400)})
SETTINGS = {"num_steps": 200, "batch_size": 32}


@pytest.fixture(autouse=True)
def _small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "SHARE_IN_MEMORY", 0.0)


def config(tmp_path: Path, table: pl.DataFrame = TABLE, **options: Any) -> Config:
    table.write_parquet(tmp_path / "table.parquet")
    return Config(str(tmp_path / "table.parquet"), "price", **options)


def test_a_table_in_a_file_is_encoded_as_in_memory(tmp_path: Path) -> None:
    encoding = Encoding.learn(TABLE, "price")
    held, found = encoding.training_data(TABLE), streamed.file_data(encoding, TABLE)
    rows = found.read(0, 400)
    np.testing.assert_allclose(rows.x, held.x, rtol=1e-6)
    np.testing.assert_allclose(rows.y, held.y, rtol=1e-6)
    assert (found.names, found.target) == (held.names, "price")
    np.testing.assert_allclose(found.scaling.x_mean, held.scaling.x_mean, rtol=1e-6)


def test_a_fit_takes_it_by_itself_and_its_run_predicts(tmp_path: Path) -> None:
    run = Run.fit(config(tmp_path, method="map", settings=SETTINGS, network="mlp:5"), tmp_path / "run", progress=False)
    (found,) = list(run.predict(tmp_path / "table.parquet"))
    assert np.sqrt(np.mean((found["mean"].to_numpy() - TABLE["price"].to_numpy()) ** 2)) < 1.0
    assert run.posterior.provenance.num_data == 400
    assert run.verdict is not None
    assert run.evaluate(tmp_path / "table.parquet")["rmse"].value < 1.0


def test_auto_takes_minibatches_and_says_so(tmp_path: Path) -> None:
    prepared = prepare(config(tmp_path))
    assert isinstance(prepared.data, credo.data.FileData)
    assert "400 rows in files" in prepared.choice.why
    assert prepared.config.network == "table:100"


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda table: table, {"smooth": True}, "conditions at the training rows"),
        (lambda table: table.with_columns(n=pl.lit(2)), {"counts": "n"}, "a column of groups, times or counts"),
        (
            lambda table: table.with_columns(price=pl.when(pl.col("size") > 2).then(pl.col("price"))),
            {},
            "rows without a target",
        ),
    ],
    ids=["conditions", "counts", "targets"],
)
def test_what_needs_all_rows_is_refused_in_words(tmp_path: Path, change: Any, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        prepare(config(tmp_path, change(TABLE), **options))


def test_a_folder_of_parquet_is_one_table_and_its_types_must_agree(tmp_path: Path) -> None:
    TABLE[:200].write_parquet(tmp_path / "0.parquet")
    TABLE[200:].write_parquet(tmp_path / "1.parquet")
    assert prepare(Config(str(tmp_path), "price")).data.size == 400
    TABLE[200:].with_columns(size=pl.col("size").cast(pl.String)).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet: column 'size' is String"):
        prepare(Config(str(tmp_path), "price"))
