"""How simple can a posterior be? Every way side by side, and `credo predict` in a shell with each of them.

    python -m benchmarks simplify [--rows 1000000] [--markdown] [--pictures docs/images]

`credo.simplify` at its defaults on embedded data sets, judged on rows that no posterior was fitted to; then `credo
fit`, `credo distill`, `credo compress` and `credo predict` as commands of their own, from start to end.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

import credo
from benchmarks.printing import console, new_table, show

NUM_COLUMNS = 8
NUTS = credo.NUTS(num_samples=250, num_warmup=500, max_depth=8)
SGLD = credo.SGLD(
    num_samples=250, num_warmup=2000, thin=20, num_chains=4, batch_size=256, start=credo.MAP(num_steps=500)
)
# The shell's default network; 1,000 draws.
FIT = ("--method", "nuts", "--set", "num_samples=250", "--set", "num_warmup=250", "--set", "max_depth=6")


def main(arguments: Sequence[str] = ()) -> None:
    """All tables."""
    options = _options(arguments)
    trade_offs(markdown=options.markdown, pictures=options.pictures)
    command_line(options.rows, markdown=options.markdown)


def trade_offs(*, markdown: bool = False, pictures: Path | None = None) -> None:
    """`credo.simplify` of two posteriors of 1,000 draws."""
    regression = credo.models.regression(credo.networks.MLP([20], out=1))
    classification = credo.models.classification(credo.networks.MLP([30], out=10), prior=credo.priors.normal(0.3))
    problems = {
        "diabetes, 10-20-1, NUTS": ("diabetes", regression, NUTS),
        "digits, 64-30-10, SGLD": ("digits", classification, SGLD),
    }
    for title, (name, model, method) in problems.items():
        train, test = credo.datasets.load(name).split(0.25, seed=1)
        found = credo.simplify(credo.fit(model, train, method, seed=1), train, test=test, seed=1)
        headings, rows = found.cells()
        table = new_table(title, "what", *headings[1:])
        for row in rows:
            table.add_row(*row)
        show(table, markdown=markdown)
        console.print(found.recommendation)
        if pictures is not None:
            credo.plot.save(credo.plot.trade_off(found), pictures / f"trade-off-{name}.png")


def command_line(num_rows: int, *, markdown: bool = False) -> None:
    """`credo predict` as a user calls it, on many rows: the full run, its student, and a fiftieth of its bytes."""
    table = new_table(f"credo predict, {num_rows:,} rows of {NUM_COLUMNS} columns", "what", "seconds", "files, kB")
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        _write_tables(here, num_rows)
        _credo(here, "fit", "train.csv", "--target", "y", "--out", "full", *FIT)
        _credo(here, "distill", "full", "--out", "student")
        _credo(here, "compress", "full", "--to", "2%", "--out", "compressed")
        for run in ("full", "student", "compressed"):
            began = time.perf_counter()
            _credo(here, "predict", run, "many.parquet", "-o", f"{run}.parquet")
            seconds = time.perf_counter() - began
            size = sum(path.stat().st_size for path in (here / run).rglob("*") if path.is_file())
            table.add_row(run, f"{seconds:.1f}", f"{size / 1000:,.0f}")
    show(table, markdown=markdown)


def _write_tables(folder: Path, num_rows: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, NUM_COLUMNS))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + x[:, 2] + 0.1 * rng.standard_normal(500)
    _frame(x).with_columns(y=y).write_csv(folder / "train.csv")
    _frame(rng.standard_normal((num_rows, NUM_COLUMNS))).write_parquet(folder / "many.parquet")


def _frame(x: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({f"x{column}": x[:, column] for column in range(x.shape[1])})


def _credo(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "credo.cli", *words, "--quiet"], cwd=folder, check=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks simplify")
    parser.add_argument("--rows", type=int, default=1_000_000, help="for credo predict")
    parser.add_argument("--pictures", type=Path, help="a folder for the pictures of the trade-offs")
    parser.add_argument("--markdown", action="store_true", help="tables to put into a document")
    return parser.parse_args(arguments)
