"""Students beside their teachers: what they lose on test rows, and what they cost.

    CREDO_DATA=folder python -m benchmarks distillation [--sets boston,yacht] [--splits 3,4]

Teachers: NUTS, 100 draws of two hidden layers of 50 tanh units, and for power, a large set, an ensemble of five. All of
`credo.distill` at its defaults, which were chosen on concrete and energy, split 0, and on digits without 8 and 9. The
control has the student's network and the labels alone, and stops early on numbers. Throughput is that of means and
variances, or of probabilities and mutual informations, beside 100 draws of the teacher.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

import credo
from benchmarks.printing import console, new_table, show
from benchmarks.timing import best_of
from credo.evaluation import calibration_distance, detect, ece, nll
from credo.inference.method import Method
from credo.inference.sgmcmc.schedules import Cosine

FEATURES = [50, 50]
START = credo.MAP(num_steps=1000, learning_rate=Cosine(1e-2, 1000))
NUTS = credo.NUTS(num_samples=50, num_warmup=200, num_chains=2, max_depth=7, start=START)
SGLD = credo.SGLD(num_samples=500, num_warmup=2000, thin=40, num_chains=1, start=credo.MAP(num_steps=500))
TRAINING = credo.MAP(num_steps=3000, learning_rate=Cosine(1e-2, 3000), batch_size=256)
ENSEMBLE = credo.DeepEnsemble(TRAINING, members=5)
TEACHERS: dict[str, Method] = {"boston": NUTS, "yacht": NUTS, "wine": NUTS, "power": ENSEMBLE}
# Digits that nobody has seen: two of them, and those of the choice of settings were others.
UNKNOWN = (0, 1)
NUM_TIMED, NUM_DRAWS, ROUNDS = 20_000, 100, 5


class Figures(NamedTuple):
    """One teacher and its student on test rows."""

    teacher: float
    student: float
    labels: float
    teacher_calibration: float
    student_calibration: float
    epistemic_error: float
    speed: float
    seconds: float


def main(arguments: Sequence[str] = ()) -> None:
    """All tables."""
    options = _options(arguments)
    try:
        regressions(options.sets, options.splits, markdown=options.markdown)
        online(markdown=options.markdown)
    except FileNotFoundError as error:
        console.print(f"skipped: {error}")
    digits(markdown=options.markdown)


def regressions(sets: Sequence[str], splits: Sequence[int], *, markdown: bool = False) -> None:
    """UCI sets: NLL in the units of y, and the distance of the calibration curve."""
    columns = ("NLL: teacher", "student", "on labels alone", "calibration: teacher", "student", "error of epistemic sd")
    table = new_table("Students on UCI sets", "problem", *columns, "× 100 draws", "seconds")
    for name in sets:
        data = credo.datasets.uci(name)
        for split in splits:
            train, test = credo.datasets.uci_split(data, split)
            found = regression(train, test, TEACHERS.get(name, NUTS), split)
            table.add_row(f"{name}, split {split}", *_cells(found))
            console.print(f"{name}, split {split}: done")
    show(table, markdown=markdown)


def regression(train: credo.Data, test: credo.Data, method: Method, seed: int) -> Figures:
    """A student beside its teacher and beside a network that has seen the labels alone."""
    model = credo.models.regression(credo.networks.MLP(FEATURES, out=1), prior=credo.priors.fan_in())
    teacher = credo.fit(model, train, method, seed=seed)
    student, seconds = _distilled(teacher, train, seed)
    plain = credo.models.regression(credo.networks.MLP(FEATURES, out=2), noise="heteroscedastic")
    labels = credo.fit(plain, train, TRAINING, seed=seed, validation=0.1)
    ours, theirs = student.predict(test.x), teacher.predict(test.x)
    sds = [np.sqrt(prediction.epistemic) for prediction in (ours, theirs)]
    return Figures(
        teacher=nll(theirs, test.y),
        student=nll(ours, test.y),
        labels=nll(labels.predict(test.x), test.y),
        teacher_calibration=calibration_distance(theirs, test.y),
        student_calibration=calibration_distance(ours, test.y),
        epistemic_error=float(np.mean(np.abs(sds[0] - sds[1])) / np.mean(sds[1])),
        speed=throughput(teacher, student, test.x, lambda prediction: prediction.variance),
        seconds=seconds,
    )


def online(*, markdown: bool = False) -> None:
    """A student of all draws of a chain, and one that has learned beside it."""
    table = new_table("Students of SGLD, split 1", "problem", "NLL: SGLD", "from stored draws", "beside the sampler")
    model = credo.models.regression(credo.networks.MLP(FEATURES, out=1), prior=credo.priors.fan_in())
    for name in ("concrete", "boston"):
        train, test = credo.datasets.uci_split(credo.datasets.uci(name), 1)
        teacher = credo.fit(model, train, SGLD)
        students = credo.distill(teacher, None, train), credo.fit(model, train, credo.Distilled(SGLD))
        table.add_row(name, *(f"{nll(one.predict(test.x), test.y):.3f}" for one in (teacher, *students)))
    show(table, markdown=markdown)


def digits(*, markdown: bool = False) -> None:
    """Digits without two of them, which must be recognised as foreign."""
    everything = credo.datasets.load("digits")
    known = ~np.isin(everything.y, UNKNOWN)
    labels = np.searchsorted(np.unique(everything.y[known]), everything.y[known])
    train, test = credo.Data(everything.x[known], labels, standardise=True).split(0.2, seed=1, stratify=True)
    foreign = everything.x[~known]
    model = credo.models.classification(credo.networks.MLP(FEATURES, out=8), prior=credo.priors.normal(0.3))
    members = credo.DeepEnsemble(TRAINING, members=10)
    title = f"Students on digits; AUROC of {' and '.join(map(str, UNKNOWN))}, which nobody has seen"
    table = new_table(title, "method", "NLL", "ECE", "AUROC, MI", "AUROC, precision", "× 100 draws", "seconds")
    for name, method in {"NUTS": NUTS, "ensemble of ten": members}.items():
        teacher = credo.fit(model, train, method, seed=1)
        student, seconds = _distilled(teacher, train, seed=1)
        speed = throughput(teacher, student, test.x, lambda prediction: prediction.mutual_information)
        table.add_row(name, *_class_cells(teacher, test, foreign), "", f"{teacher.provenance.seconds:.1f}")
        cells = _class_cells(student, test, foreign)
        table.add_row("its student", *cells, f"{speed:.0f}", f"{seconds:.1f}", end_section=True)
    table.add_row("on labels alone", *_class_cells(credo.fit(model, train, TRAINING, seed=1), test, foreign), "", "")
    show(table, markdown=markdown)


def throughput(teacher: Any, student: Any, x: np.ndarray, answer: Callable[[Any], np.ndarray]) -> float:
    """How many times as many rows in a second the student predicts, beside 100 draws of the teacher.

    A teacher of fewer draws has each of them take its share of the time.
    """
    rows = np.resize(x, (NUM_TIMED, *x.shape[1:]))
    num = min(NUM_DRAWS, teacher.predict(x[:1], num_draws=NUM_DRAWS).num_draws)
    sides = {
        "teacher": lambda: answer(teacher.predict(rows, num_draws=num)),
        "student": lambda: answer(student.predict(rows)),
    }
    times = best_of(ROUNDS, sides)
    return times["teacher"] / times["student"] * NUM_DRAWS / num


def _distilled(teacher: Any, train: credo.Data, seed: int) -> tuple[credo.Student, float]:
    began = time.perf_counter()
    return credo.distill(teacher, None, train, seed=seed), time.perf_counter() - began


def _cells(found: Figures) -> list[str]:
    scores = [f"{value:.3f}" for value in found[:5]]
    return [*scores, f"{found.epistemic_error:.0%}", f"{found.speed:.0f}", f"{found.seconds:.1f}"]


def _class_cells(posterior: Any, test: credo.Data, foreign: np.ndarray) -> list[str]:
    inside, outside = posterior.predict(test.x), posterior.predict(foreign)
    by_precision = ""
    if isinstance(posterior, credo.Student):
        is_foreign = np.repeat([0, 1], [len(inside), len(outside)])
        found = roc_auc_score(is_foreign, -np.concatenate([inside.precision, outside.precision]))
        by_precision = f"{found:.3f}"
    by_information = detect(inside, outside, by="mutual_information").auroc
    return [f"{nll(inside, test.y):.4f}", f"{ece(inside, test.y):.4f}", f"{by_information:.3f}", by_precision]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks distillation", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(TEACHERS), help="comma-separated")
    parser.add_argument("--splits", type=lambda text: list(map(int, text.split(","))), default=[3, 4])
    parser.add_argument("--markdown", action="store_true", help="print the tables for a document")
    return parser.parse_args(list(arguments))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
