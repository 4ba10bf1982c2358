"""What is attacked: small tables, saved posteriors of each kind, and runs; made once, in a folder.

python -m tests.attack.corpus folder
"""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

import credo
from credo.examples import table
from credo.inference.registry import METHODS
from credo.inference.settings import settings_of
from credo.runs import Config, Run
from tests.contract.test_methods import TINY

SAVED = Path(__file__).parents[1] / "posterior" / "saved"
# A method that takes only some networks.
NETWORKS = {"closed_form": "linear"}


# The runs of the corpus: method, table and target.
RUNS = {
    "map": ("map", "train.csv", "price"),
    "other": ("map", "other/train.csv", "price"),
    "nuts": ("nuts", "train.csv", "price"),
    "classes": ("map", "train.csv", "city"),
}


def make(folder: Path, runs: Iterable[str] = tuple(RUNS)) -> None:
    """Write the corpus into a folder, with some of its runs."""
    tables = folder / "tables"
    table.main(tables, num_train=20, num_test=3, seed=0)
    # The same columns, learned from other rows: what is known about one table is wrong about the other.
    table.main(tables / "other", num_train=24, num_test=3, seed=1)
    for name in ("train", "test"):
        pl.read_csv(tables / f"{name}.csv").write_parquet(tables / f"{name}.parquet")
    posteriors = folder / "posteriors"
    for saved in sorted(path for path in SAVED.iterdir() if path.is_dir()):
        shutil.copytree(saved, posteriors / f"old-{saved.name}")
        credo.load(saved).save(posteriors / saved.name)
    for name in runs:
        method, file, target = RUNS[name]
        Run.fit(config_of(method, tables / file, target=target), folder / "runs" / name)


def config_of(method: str, data: Path, *, target: str = "price", seed: int = 0) -> Config:
    """A fit of a small table by a method at settings that end at once."""
    settings = settings_of(METHODS[method](**TINY[method]))
    network = NETWORKS.get(method, "mlp:3")
    return Config(str(data), target, network=network, method=method, settings=settings, seed=seed)


def entries(folder: Path) -> list[Path]:
    """The folders of the corpus that load."""
    return sorted([*(folder / "posteriors").iterdir(), *(folder / "runs").iterdir()])


def is_run(entry: Path) -> bool:
    return entry.parent.name == "runs"


# Where posteriors of the corpus are asked.
PLACES = np.linspace(-2, 2, 5)

if __name__ == "__main__":
    make(Path(sys.argv[1]))
