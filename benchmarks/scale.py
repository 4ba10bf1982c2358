"""Growth of time and memory, rows in files beside rows in memory, and plans beside what fits took.

    python -m benchmarks scale                         growth against rows, weights, draws, chains, members: 3 minutes
    python -m benchmarks scale --plan                  predicted and measured seconds: 3 minutes
    python -m benchmarks scale --files 5000000         rows in files, beside memory; --alone: files only
    python -m benchmarks scale --page docs/figures     growth, as scale.json and a picture beside it

Each run is a process of its own, whose largest resident memory counts. Slopes are those of a line through the three
largest sizes, in logarithms: of the seconds, and of the memory beyond that of the least size.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.printing import console, new_table
from benchmarks.timing import in_new_process
from credo._text import size_in_words

SIZES: dict[str, tuple[int, ...]] = {
    "rows": (30_000, 300_000, 1_000_000, 3_000_000),
    "weights": (10_000, 100_000, 1_000_000, 10_000_000),
    "draws": (1_000, 30_000, 100_000, 300_000),
    "chains": (4, 64, 128, 256),
    "members": (4, 64, 128, 256),
}
# Cases whose cost is predicted: a name, what `scale_run` does, and by how much of what the plan was for less.
PLANNED: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("SGLD, 3,000 weights", "sgld", {}),
    ("VI, 3,000 weights", "vi", {}),
    ("ensemble of MAP, all of 20,000 rows", "ensemble", {}),
    ("MCLMC from MAP", "mclmc", {}),
    ("NUTS, 41 weights", "nuts", {}),
    ("ensemble, planned at a tenth of the rows", "ensemble", {"rows": 10}),
    ("VI, planned at a fifth of the steps", "vi", {"draws": 5}),
)
NUM_COLUMNS = 20


def main(options: list[str] | None = None) -> None:
    options = options or []
    if "--files" in options:
        files(int(options[options.index("--files") + 1]), beside_memory="--alone" not in options)
    elif "--plan" in options:
        plans()
    else:
        page = Path(options[options.index("--page") + 1]) if "--page" in options else None
        growth(page)


def growth(page: Path | None = None) -> None:
    """Seconds and memory against each size."""
    table = new_table("Growth", "what grows", "size", "seconds", "memory", "slope of seconds", "slope of memory")
    found: dict[str, Any] = {}
    for what, sizes in SIZES.items():
        runs = [_run(kind="growth", what=what, size=size) for size in sizes]
        seconds, peaks = ([one[name] for one in runs] for name in ("seconds", "peak"))
        beyond = [max(one - peaks[0], 1) for one in peaks]
        slopes = [_slope(sizes, values) for values in (seconds, beyond)]
        found[what] = {"sizes": sizes, "seconds": seconds, "peaks": peaks, "slopes": slopes}
        for place, size in enumerate(sizes):
            last = place == len(sizes) - 1
            shown = [f"{slope:.2f}" if last else "" for slope in slopes]
            console.print(what, size, seconds[place], peaks[place])
            table.add_row(what, f"{size:,}", f"{seconds[place]:.2f}", size_in_words(peaks[place]), *shown)
        if page is not None:
            text = json.dumps({"command": "python -m benchmarks scale", "growth": found}, indent=1)
            (page / "scale.json").write_text(f"{text}\n", encoding="utf-8")
            _drawn(found, page / "scale.png")
    console.print(table)


def plans() -> None:
    """What `credo.plan` says, beside what the fit took in a process of its own, compiling included in both."""
    table = new_table("Plans", "what", "predicted", "measured", "ratio", "the plan took")
    fits: dict[str, float] = {}
    for name, case, factors in PLANNED:
        planned = _run(kind="plan", case=case, factors=factors)
        taken = fits[case] = fits.get(case) or _run(kind="fit", case=case)["seconds"]
        ratio = planned["seconds"] / taken
        cells = (f"{planned['seconds']:.1f} s", f"{taken:.1f} s", f"{ratio:.2f}", f"{planned['taken']:.1f} s")
        table.add_row(name, *cells)
        console.print(name, *cells)
    console.print(table)


def files(num_rows: int, *, beside_memory: bool) -> None:
    """Rows in files, written to a temporary folder: memory, and steps a second beside those from memory.

    One process opens the files, fits all methods one after another, predicts all rows and judges some. In another both
    sides take turns.
    """
    folder = Path(tempfile.mkdtemp(prefix="credo-scale-"))
    try:
        _written(folder, num_rows)
        size = sum(path.stat().st_size for path in folder.iterdir())
        one = _run(kind="files", folder=str(folder))
        both = _run(kind="turns", folder=str(folder)) if beside_memory else None
    finally:
        shutil.rmtree(folder)
    title = f"{num_rows:,} × {NUM_COLUMNS} rows, {size_in_words(size)} on disk"
    table = new_table(title, "method", "steps/s from files", "from memory", "ratio")
    for method, rate in one["rates"].items():
        if both is None:
            table.add_row(method, f"{rate:,.0f}", "", "")
        else:
            rate, held = both[method]
            table.add_row(method, f"{rate:,.0f}", f"{held:,.0f}", f"{rate / held:.2f}")
    console.print(table)
    console.print(
        f"peak memory: {size_in_words(one['peak'])} (after the fits: {size_in_words(one['fitted'])}); opened "
        f"in {one['opened']:.1f} s; all rows predicted in {one['predicted']:.1f} s, rmse {one['rmse']:.4f}; "
        f"{one['judged_rows']:,} rows judged in {one['judged']:.1f} s, rmse {one['judged_rmse']:.4f}"
    )


def _written(folder: Path, num_rows: int, rows_at_once: int = 2**18) -> None:
    """x.npy and y.npy in single precision: y is a smooth function of a few columns, and noise of sd 0.1."""
    rng = np.random.default_rng(0)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (num_rows, NUM_COLUMNS))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float32, (num_rows,))
    for first in range(0, num_rows, rows_at_once):
        rows = rng.standard_normal((min(rows_at_once, num_rows - first), NUM_COLUMNS), np.float32)
        x[first : first + len(rows)] = 3 + 2 * rows
        noise = 0.1 * rng.standard_normal(len(rows), np.float32)
        y[first : first + len(rows)] = np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2] / 2 + noise
    del x, y


def _run(**settings: Any) -> Any:
    return in_new_process([sys.executable, "-m", "benchmarks.scale_run", json.dumps(settings)])


def _slope(sizes: Any, values: Any, last: int = 3) -> float:
    return float(np.polyfit(np.log(sizes[-last:]), np.log(values[-last:]), 1)[0])


def _drawn(found: dict[str, Any], path: Path) -> None:
    """Both, against each size as a multiple of the least."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for what, one in found.items():
        multiples = np.asarray(one["sizes"]) / one["sizes"][0]
        for axis, values, slope in zip(
            axes, (one["seconds"], np.asarray(one["peaks"]) / 1e9), one["slopes"], strict=True
        ):
            axis.loglog(multiples, values, marker="o", label=f"{what} ({slope:.2f})")
    for axis, label in zip(axes, ("seconds", "peak memory, GB"), strict=True):
        axis.set(xlabel="size, as a multiple of the least", ylabel=label)
        axis.legend(title="slope at the end", fontsize="small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
