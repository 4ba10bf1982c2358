"""Real targets: how much the law that is found gains beside Gaussian noise, and beside noise with heavier tails.

    python -m benchmarks targets [--only absent,strikes]

A line in the inputs with each law, by NUTS; nats a row of log-likelihood, each row left out in turn (PSIS-LOO), with
the standard error of the difference. Where no law is found nothing changes. The tables are here or in scikit-learn.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn import datasets

import credo
from benchmarks.printing import console, new_table
from credo.evaluation.loo import loo
from credo.models.found import ANY, found

# Days that 146 children of Walgett were absent from school, by letters: Aboriginal or not, sex, four ages, slow
# or average learners. Quine (1975); Venables and Ripley, "Modern applied statistics with S" (2002), the table quine.
ABSENT = """
AM0S:2 11 14; AM0A:5 5 13 20 22; AM1S:6 6 15; AM1A:7 14; AM2S:6 32 53 57; AM2A:14 16 16 17 40 43 46; AM3A:8 23 23 28
34 36 38; AF0S:3; AF0A:5 11 24 45; AF1S:5 6 6 9 13 23 25 32 53 54; AF1A:5 5 11 17 19; AF2S:8 13 14 20 47 48 60 81;
AF2A:2; AF3A:0 2 3 5 10 14 21 36 40; NM0S:6 17 67; NM0A:0 0 2 7 11 12; NM1S:0 0 5 5 5 11 17; NM1A:3 4; NM2S:22 30
36; NM2A:8 0 1 5 7 16 27; NM3A:0 30 10 14 27 41 69; NF0S:25; NF0A:10 11 20 33; NF1S:5 7 0 1 5 5 5 5 7 11 15; NF1A:5
14 6 6 7 28; NF2S:0 5 14 2 2 3 8 10 12; NF2A:1; NF3A:1 9 22 3 3 5 15 18 22 37
"""
# Days that 62 strikes in manufacturing lasted, after how far production was above its trend. Kennan, "The duration of
# contract strikes in U.S. manufacturing" (1985).
PRODUCTION = """
0.01138 0.01138 0.01138 0.01138 0.01138 0.01138 0.01138 0.01138 0.02299 0.02299 0.02299 0.02299 0.02299 0.02299
-0.03957 -0.03957 -0.03957 -0.03957 -0.03957 -0.03957 -0.03957 -0.03957 -0.03957 -0.03957 -0.03957 -0.05467 -0.05467
-0.05467 0.00535 0.00535 0.00535 0.07427 0.07427 0.06450 0.06450 0.06450 0.06450 0.06450 0.06450 0.06450 0.06450
0.06450 0.06450 0.06450 0.06450 0.06450 0.06450 0.06450 0.06450 0.06450 0.06450 -0.10443 -0.10443 -0.00700 -0.00700
-0.00700 -0.00700 -0.00700 -0.00700 -0.00700 -0.00700 -0.00700
"""
STRIKES = """
7 9 13 14 26 29 52 130 9 37 41 49 52 119 3 17 19 28 72 99 104 114 152 153 216 15 61 98 2 25 85 3 10 1 2 2 3 3 4 8 11
22 23 27 32 33 35 43 43 44 100 5 49 2 12 12 21 21 27 38 42 117
"""
METHOD = credo.NUTS(num_samples=200, num_warmup=300, num_chains=2, max_depth=6)
Rows = tuple[np.ndarray, np.ndarray]


def absent() -> Rows:
    """Inputs of 0 and 1, and days."""
    groups = [group.split(":") for group in " ".join(ABSENT.split()).split("; ")]
    rows = [(key, float(day)) for key, days in groups for day in days.split()]
    x = [[*(letter in "NFS" for letter in key[:2] + key[3]), *(key[2] == age for age in "123")] for key, _ in rows]
    return np.array(x, float), np.array([day for _, day in rows])


def strikes() -> Rows:
    """One input, and days."""
    return np.array(PRODUCTION.split(), float)[:, None], np.array(STRIKES.split(), float)


def wine(target: str) -> Rows:
    """178 Italian wines: one of thirteen measurements from the others."""
    table = datasets.load_wine()
    place = list(table.feature_names).index(target)
    return np.delete(table.data, place, axis=1), table.data[:, place]


def tumours(target: str) -> Rows:
    """569 tumours: a size of their nuclei, from means that are no sizes."""
    table = datasets.load_breast_cancer()
    names = list(table.feature_names)
    return table.data[:, [1, *range(4, 10)]], table.data[:, names.index(target)]


def exercises(target: str) -> Rows:
    """Twenty men: how often they could, from weight, waist and pulse."""
    table = datasets.load_linnerud()
    return table.target, table.data[:, list(table.feature_names).index(target)]


def diabetes() -> Rows:
    """442 patients: how far the disease went in a year."""
    table = datasets.load_diabetes()
    return table.data, table.target


TABLES = {
    "absent": absent,
    "strikes": strikes,
    "proline": lambda: wine("proline"),
    "color_intensity": lambda: wine("color_intensity"),
    "malic_acid": lambda: wine("malic_acid"),
    "worst area": lambda: tumours("worst area"),
    "area error": lambda: tumours("area error"),
    "Situps": lambda: exercises("Situps"),
    "Jumps": lambda: exercises("Jumps"),
    "diabetes": diabetes,
}


def densities(data: credo.Data, **law: str) -> tuple[np.ndarray, float]:
    """log p(y | x) of each row, left out; and the least lower bound of the 95% intervals."""
    posterior = credo.fit(credo.models.table(data, "linear", **law), data, METHOD, seed=0)
    return loo(posterior, data).pointwise, float(posterior.predict(data.x).interval(0.95)[0].min())


def main(arguments: Sequence[str] = ()) -> None:
    """Print the gains of each table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks targets")
    parser.add_argument("--only", help="some of the tables, separated by commas")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",") if options.only else list(TABLES)
    table = new_table(
        "Nats a row that the law gains",
        "problem",
        "rows",
        "what",
        "over Gaussian",
        "over Student",
        "lower, Gaussian",
        "lower",
    )
    for name in chosen:
        x, y = TABLES[name]()
        data = credo.Data(x, y.astype(float), standardise=True)
        law = found(data).likelihood
        if law == ANY:
            table.add_row(name, str(len(y)), "any: nothing changes", "", "", "", "")
            continue
        own, lower = densities(data, likelihood=law)
        gaussian, below = densities(data, noise="learned")
        student, _ = densities(data)
        gains = [f"{gain.mean():+.2f} ± {gain.std() / np.sqrt(len(y)):.2f}" for gain in (own - gaussian, own - student)]
        table.add_row(name, str(len(y)), law, *gains, f"{below:.3g}", f"{lower:.3g}")
    console.print(table)
