"""Hostile tables, by a grammar of nasty pieces: read rightly, one row out for each row in, or refused in a sentence."""

import gzip
import io
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st
from typer.testing import CliRunner

from credo.cli import app
from credo.tables.encoding import Encoding
from tests.attack import damage
from tests.attack.examples import hold
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, Wrong, at_most, refused, require_one_line, require_sentence, right

# Tables for each case of the grammar; hypothesis takes its time to begin.
EXAMPLES = 40
# Every table that is predicted has as many rows: another number is another program to compile.
NUM_ROWS = 3

MISSING = ("", "NA", "?", "-", "nan", "NULL", " ")
NUMBERS = ("0", "1", "-1.5", "3e5", "1e400", "inf", "-0", "1_000", "1,5", "0x1f", "٣", "  7 ", "9" * 40, "1e-400", "+2")
WORDS = (
    "a", "b", "ä", "=1+2", "+a", "-b", "@x", "\t=1", "$\\frac{1}$", "\x1b[31m", "<b>", "\u202e", "x" * 300, "'",
    "2020-01-01", "2020-13-45", "true", "no", "yes", "🙂", "count", "a\nb", 'a"b', "a,b", "a;b",
)  # fmt: skip
NAMES = (
    "a", "b", "y", "count", "mean", "label", "index", "", " ", "a b", "$x_1^2$", "$\\frac{1}$", "\x07", "ä", "=cmd()",
    "x" * 500, "literal", "len", "0", "true", "a\nb", 'a"b', "y_pred", "<script>", "\u202eabc",
)  # fmt: skip
# Whole columns of one sort, so that many tables are learned from, and mixtures.
SORTS = (
    MISSING,
    NUMBERS,
    NUMBERS[:5],
    WORDS,
    WORDS[:3],
    (*MISSING, *NUMBERS[:4]),
    (*MISSING, *WORDS),
    ("5",),
    ("1", "0"),
)


@st.composite
def columns(draw: st.DrawFn) -> dict[str, list[str]]:
    """A table as text; the first column counts the rows, the last is the target."""
    num_rows = draw(st.integers(0, 12))
    names = draw(st.lists(st.sampled_from(NAMES), max_size=5, unique=draw(st.integers(0, 9)) > 0))
    table = {"row": [str(number) for number in range(num_rows)]} if draw(st.booleans()) else {}
    for name in names:
        cells = st.sampled_from(draw(st.sampled_from(SORTS)))
        table[name] = draw(st.lists(cells, min_size=num_rows, max_size=num_rows))
    table["target"] = draw(
        st.lists(st.sampled_from(draw(st.sampled_from(SORTS))), min_size=num_rows, max_size=num_rows)
    )
    return table


@st.composite
def csv_files(draw: st.DrawFn) -> tuple[str, bytes, int | None]:
    """A suffix, the bytes, and the number of rows where that is beyond doubt."""
    table = draw(columns())
    separator, end = draw(st.sampled_from([",", ";", "\t"])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    quoting = draw(st.sampled_from(["right", "right", "all", "none"]))

    def line(cells: list[str]) -> str:
        return separator.join(quoted(cell, separator, quoting) for cell in cells)

    lines = [line(list(table)), *(line(list(cells)) for cells in zip(*table.values(), strict=True))]
    is_clear = quoting != "none" and len(table) > 1
    if draw(st.integers(0, 5)) == 0:
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(["", " ", separator * 9, '"', "\0", "#"])))
        is_clear = False
    text = end.join(lines) + draw(st.sampled_from(["", end, end + end]))
    is_clear = is_clear and not text.endswith(end + end)
    content = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + text.encode(
        draw(st.sampled_from(["utf-8"] * 6 + ["utf-16", "latin-1"])), "replace"
    )
    suffix = draw(st.sampled_from([".csv", ".csv", ".tsv", ".csv.gz"]))
    if suffix.endswith(".gz"):
        content = gzip.compress(content)
        if draw(st.booleans()):
            content, is_clear = content[: draw(st.integers(0, len(content)))], False
    return suffix, content, len(lines) - 1 if is_clear else None


def quoted(cell: str, separator: str, quoting: str) -> str:
    needed = any(mark in cell for mark in (separator, '"', "\n", "\r"))
    if quoting == "all" or (quoting == "right" and needed):
        return '"' + cell.replace('"', '""') + '"'
    return cell


TYPED = (
    lambda n: pl.Series(range(n), dtype=pl.UInt64),
    lambda n: pl.Series([None] * n, dtype=pl.Null),
    lambda n: pl.Series([[1, 2]] * n, dtype=pl.List(pl.Int64)),
    lambda n: pl.Series([[1, 2]] * n, dtype=pl.Array(pl.Int64, 2)),
    lambda n: pl.Series([{"a": 1}] * n, dtype=pl.Struct({"a": pl.Int64})),
    lambda n: pl.Series([b"\xff"] * n, dtype=pl.Binary),
    lambda n: pl.Series(range(n)).cast(pl.Duration("us")),
    lambda n: pl.Series(range(n)).cast(pl.Datetime("ms", "Europe/Berlin")),
    lambda n: pl.Series(range(n)).cast(pl.Time),
    lambda n: pl.Series(range(n)).cast(pl.Date),
    lambda n: pl.Series(["1.5"] * n).cast(pl.Decimal(10, 2)),
    lambda n: pl.Series(["a", "b"] * n)[:n].cast(pl.Categorical),
    lambda n: pl.Series(["a", "b"] * n)[:n].cast(pl.Enum(["a", "b"])),
    lambda n: pl.Series([True, None] * n)[:n],
    lambda n: pl.Series([1.0, float("nan"), float("inf")] * n)[:n],
    lambda n: pl.Series([1.5, None, 2.5] * n)[:n],
    lambda n: pl.Series(["", None, "x"] * n)[:n],
)  # fmt: skip


@st.composite
def parquet_files(draw: st.DrawFn) -> tuple[str, bytes, int | None]:
    num_rows = draw(st.integers(0, 9))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    makers = [*draw(st.lists(st.sampled_from(TYPED), min_size=len(names), max_size=len(names)))]
    frame = {name: make(num_rows) for name, make in zip(names, makers, strict=True)}
    frame["target"] = draw(st.sampled_from(TYPED))(num_rows)
    file = io.BytesIO()
    pl.DataFrame(frame).write_parquet(file)
    return ".parquet", file.getvalue(), num_rows


DTYPES = ("f2", "f4", "f8", ">f8", "g", "c8", "c16", "i1", "u8", "?", "S3", "U2", "M8[D]", "m8[s]", "i4,f8", "V4")


@st.composite
def npz_files(draw: st.DrawFn) -> tuple[str, bytes, int | None]:
    num_rows = draw(st.integers(0, 9))
    arrays: dict[str, np.ndarray] = {}
    for name in draw(
        st.lists(st.sampled_from(["x", "y", "a", "count", "../b", ""]), min_size=1, max_size=4, unique=True)
    ):
        wide = draw(st.sampled_from([(), (), (2,), (0,), (2, 2)])) if name == "x" else ()
        arrays[name] = (np.arange(num_rows * int(np.prod(wide))) % 5).reshape(num_rows, *wide).astype("i8")
        arrays[name] = (
            np.zeros(arrays[name].shape, draw(st.sampled_from(DTYPES))) if draw(st.booleans()) else arrays[name]
        )
    arrays["target"] = np.arange(num_rows).astype(draw(st.sampled_from(["f8", "i4", "f2", "c8", "U2", "?"])))
    file = io.BytesIO()
    np.savez(file, **{name or "unnamed": array for name, array in arrays.items()})
    return ".npz", file.getvalue(), num_rows


def prepare(folder: Path) -> Case:
    train, test = ((folder / "tables" / f"{name}.csv").read_text().splitlines() for name in ("train", "test"))
    run = folder / "runs" / "map"
    predicted(run, folder, train[0], test[1:], "\n")

    def case(rng: np.random.Generator) -> Outcome:
        share = rng.random()
        if share < 0.5:
            return by_grammar(int(rng.integers(2**31)), folder)
        with at_most(60):
            if share < 0.75:
                return of_damaged_bytes(rng, folder)
            return of_new_rows(rng, run, folder, test)

    return case


# -- by grammar --------------------------------------------------------------------------------------------


def by_grammar(number: int, folder: Path, examples: int = EXAMPLES) -> Outcome:
    """Many tables; one that fails is made as small as can be."""
    found: Outcome = Counter()

    def read(file: tuple[str, bytes, int | None]) -> None:
        found.update(learned(*file, folder))

    hold(number, examples, read, st.one_of(csv_files(), csv_files(), parquet_files(), npz_files()))
    return found


def learned(suffix: str, content: bytes, num_rows: int | None, folder: Path) -> Outcome:
    """Learn the columns, and turn the same file into numbers."""
    with tempfile.TemporaryDirectory(dir=folder) as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = Path(place) / f"table{suffix}"
        path.write_bytes(content)
        try:
            encoding = Encoding.learn(path, "target")
            data = encoding.data(path)
            parts = list(encoding.inputs(path))
        except (ValueError, OSError) as error:
            require_sentence(error)
            return refused
    x = np.concatenate([part for _, part in parts])
    if not np.isfinite(x).all():
        raise Wrong("a table becomes numbers that are not finite", x)
    counts = {len(x), sum(len(frame) for frame, _ in parts), encoding.num_rows + encoding.num_without_target, data.size}
    if num_rows is not None:
        counts.add(num_rows)
    if len(counts) > 1:
        raise Wrong("rows are lost or made up on the way", f"{num_rows} were written; there are {counts}")
    if "row" in parts[0][0].columns and num_rows is not None:
        order = [str(cell).strip() for frame, _ in parts for cell in frame["row"]]
        if order != [str(number) for number in range(num_rows)]:
            raise Wrong("rows are not in their order", order)
    return right


# -- by damage ---------------------------------------------------------------------------------------------


def of_damaged_bytes(rng: np.random.Generator, folder: Path) -> Outcome:
    """A good table with some bytes changed: another table, or none."""
    source = folder / "tables" / str(rng.choice(["train.csv", "train.parquet", "test.csv"]))
    content, suffix = source.read_bytes(), source.suffix
    if suffix == ".csv" and rng.random() < 0.5:
        content, suffix = gzip.compress(content, mtime=0), ".csv.gz"
    hurt = (damage.flipped, damage.inserted, damage.shortened, damage.cut, damage.doubled, damage.of_noise)
    content = hurt[rng.integers(len(hurt))](rng, content)
    return learned(suffix, content.replace(b"price", b"target"), None, folder)


# -- new rows of a run -------------------------------------------------------------------------------------


def of_new_rows(rng: np.random.Generator, run: Path, folder: Path, test: list[str]) -> Outcome:
    """The command line predicts each row, with cells that are missing, new or dangerous, or refuses in one line."""
    rows = [line.split(",") for line in test[1 : NUM_ROWS + 1]]
    for row in rows:
        if rng.random() < 0.3:
            row[:] = [str(rng.choice(MISSING[:6])) for _ in row]
        for _ in range(int(rng.integers(3))):
            pieces = (MISSING, NUMBERS, WORDS[:20])[rng.integers(3)]
            row[rng.integers(len(row))] = quoted(str(rng.choice(pieces)), ",", "right")
    return predicted(run, folder, test[0], [",".join(row) for row in rows], str(rng.choice(["\n", "\r\n"])))


def predicted(run: Path, folder: Path, head: str, rows: list[str], end: str) -> Outcome:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path, out = Path(place) / "new.csv", Path(place) / "out.csv"
        path.write_bytes(end.join([head, *rows, ""]).encode())
        command: list[Any] = ["predict", run, path, "-o", out, "--keep", "id,city", "--unknown", "missing", "--quiet"]
        result = CliRunner().invoke(app, [str(word) for word in command])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        require_one_line(result.exit_code, result.stderr)
        if result.exit_code:
            return refused
        found = pl.read_csv(out, infer_schema=False)
    if len(found) != len(rows):
        raise Wrong("predictions have other rows than the table", f"{len(rows)} in, {len(found)} out")
    if any(str(cell)[:1] in "=@\t" or str(cell)[:2] == "+a" for cell in found["city"] if cell):
        raise Wrong("a spreadsheet would run what a cell of the predictions holds", found["city"].to_list())
    return right
