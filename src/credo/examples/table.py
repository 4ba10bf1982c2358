"""A table to try the command line on: words, dates, empty cells, a name per row, and a constant column."""

import datetime
from pathlib import Path

import numpy as np

from credo._files import write_text

HEADER = "id,city,sold,size,garden,currency,price\n"
CITIES = {"Bern": 60_000.0, "Rome": 20_000.0, "Ulm": 0.0}


def main(out: Path, *, num_train: int = 300, num_test: int = 100, seed: int = 0) -> list[Path]:
    """Write train.csv and test.csv into a folder: houses, and the prices they were sold at."""
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    rows = [_house(rng, number) for number in range(num_train + num_test)]
    files = {out / "train.csv": rows[:num_train], out / "test.csv": rows[num_train:]}
    for path, lines in files.items():
        write_text(path, HEADER + "".join(lines))
    return list(files)


def _house(rng: np.random.Generator, number: int) -> str:
    """One in ten sizes and one in three gardens are unknown. Prices of large houses vary more."""
    city, size = str(rng.choice(list(CITIES))), rng.uniform(20, 150)
    days, has_garden = int(rng.integers(900)), rng.uniform() < 0.5
    price = 2_000 * size + CITIES[city] + 40 * days + 15_000 * has_garden + 100 * size * rng.normal()
    sold = datetime.date(2020, 1, 1) + datetime.timedelta(days=days)
    shown = "" if rng.uniform() < 0.1 else f"{size:.1f}"
    garden = "" if rng.uniform() < 1 / 3 else "yes" if has_garden else "no"
    return f"house {number},{city},{sold},{shown},{garden},EUR,{price:.0f}\n"
