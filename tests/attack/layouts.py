"""Arrays of any dtype, memory layout and container: `Data` and `predict` see the same numbers, or refuse them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st

import credo
from tests.attack.examples import hold
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, Wrong, refused, require_sentence, right

EXAMPLES = 25
# Rows and columns: always the same, so that the programs are.
SHAPE = (6, 2)
NAMES = ["a", "b"]

DTYPES = (
    "f2",
    "f4",
    "f8",
    ">f4",
    ">f8",
    "g",
    "i1",
    "i2",
    "i4",
    "i8",
    ">i8",
    "u1",
    "u8",
    "?",
    "O",
    "U8",
    "S8",
    "c8",
    "M8[D]",
)


def strided(x: np.ndarray) -> np.ndarray:
    wide = np.zeros((2 * SHAPE[0], 3 * SHAPE[1]), x.dtype)
    wide[::2, ::3] = x
    return wide[::2, ::3]


def read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "strided": strided,
    "read-only": read_only,
}
CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda x: x,
    "list": lambda x: x.tolist(),
    "masked": np.ma.masked_array,
    "pandas": lambda x: pd.DataFrame(x, columns=NAMES),
    "pandas, reordered": lambda x: pd.DataFrame(x, columns=NAMES)[NAMES[::-1]],
    "pandas, nullable": lambda x: pd.DataFrame(x, columns=NAMES).convert_dtypes(),
    "pandas, indexed": lambda x: pd.DataFrame(x, columns=NAMES, index=range(9, 9 - len(x), -1)),
    "polars": lambda x: pl.DataFrame(x.tolist(), schema=NAMES, orient="row"),
    "polars, reordered": lambda x: pl.DataFrame(x.tolist(), schema=NAMES, orient="row").select(NAMES[::-1]),
}


def prepare(folder: Path) -> Case:
    model = credo.models.regression(credo.networks.MLP([3], 1))
    x = np.arange(12.0).reshape(SHAPE) % 5
    data = credo.Data(pd.DataFrame(x, columns=NAMES), x[:, 0] + 1, standardise=True)
    posterior = credo.fit(model, data, credo.MAP(num_steps=5))

    def case(rng: np.random.Generator) -> Outcome:
        return by_property(int(rng.integers(2**31)), posterior)

    return case


def by_property(number: int, posterior: Any, examples: int = EXAMPLES) -> Outcome:
    found: Outcome = Counter()
    cells = st.one_of(st.integers(0, 3), st.sampled_from([0.5, -1.0, 100.0, np.nan, np.inf, 1e30]))

    def claim(example: tuple[list[float], str, str, str]) -> None:
        values, dtype, layout, container = example
        with np.errstate(all="ignore"):
            try:
                array = np.array(values, dtype).reshape(SHAPE)
                x, plain = CONTAINERS[container](LAYOUTS[layout](array)), array.astype("f8")
            except (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError):
                return  # there is no such array
        found.update(judged(posterior, x, plain, is_data=values[0] == values[1]))

    hold(
        number,
        examples,
        claim,
        st.tuples(
            st.lists(cells, min_size=12, max_size=12),
            st.sampled_from(DTYPES),
            st.sampled_from(sorted(LAYOUTS)),
            st.sampled_from(sorted(CONTAINERS)),
        ),
    )
    return found


def judged(posterior: Any, x: Any, plain: np.ndarray, *, is_data: bool) -> Outcome:
    """What is answered for an array is what is answered for the same numbers, plain."""
    try:
        if is_data:
            found = np.asarray(credo.Data(x, np.arange(SHAPE[0])).x, np.float64)
            expected = plain[:, ::-1] if list(getattr(x, "columns", NAMES)) != NAMES else plain
            if not np.array_equal(found.reshape(SHAPE), expected):
                raise Wrong("Data holds other numbers than it was given", f"{found} for {expected}")
            return right
        prediction = posterior.predict(x)
    except ValueError as error:
        require_sentence(error)
        return refused
    if not np.isfinite(plain).all():
        raise Wrong("a prediction for numbers that are not finite", plain)
    if prediction.mean.tobytes() != posterior.predict(plain).mean.tobytes():
        raise Wrong("a prediction depends on how the numbers are held", plain)
    return right
