"""Active learning: how many labels a strategy needs, beside random ones and beside published runs.

    python -m benchmarks active [--only digits,irrelevant] [--seeds 0,1,2] [--plot docs/images/active-digits.png]
    CREDO_DATA=folder python -m benchmarks active --only mnist,repeated,time

Digits: a network of 64 units with weights N(0, 1), four short chains of MCLMC around trained networks. MNIST: the same
on 50 features that tell where edges point (`active_features`), in batches of ten from 20 labels. Settings were chosen
on seed 100; the tables are of others. Each run is written down when it is done, and not made again: several processes
may share the work by their seeds.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import credo
from benchmarks import peers
from benchmarks.active_features import EdgeFeatures
from benchmarks.printing import console, new_table, show
from benchmarks.resumable import Results
from credo.learning.curve import LearningCurve

LEVEL = 0.95
CHAINS = credo.MCLMC(
    num_samples=25, num_warmup=300, thin=10, num_chains=4, persistence=16.0, start=credo.MAP(num_steps=200)
)
# Kirsch et al. (2019), median of six runs of their network on all of MNIST, and on MNIST with each image thrice.
PUBLISHED = {"mnist": 225, "repeated": 270}
# One of ten digits is the question, the rest of the pool is beside it.
ASKED = (1, 7)
# As theirs, of pixels of unit variance; MNIST's have 0.3081. Of every third image, so that the pool is no larger.
NUM_COPIES, COPY_NOISE = 3, 0.1 * 0.3081
# How many labels BatchBALD may ask for on MNIST: on seed 100, 80 were enough.
NUM_COMPARED = 150
NUM_TIMED, NUM_DRAWS, NUM_BATCH = 50_000, 100, 10
# To a batch, by which BatchBALD judges the next row where there are more than so many; what credo takes.
NUM_ANSWERS = 1_000


def main(arguments: Sequence[str] = ()) -> None:
    """All tables, or some."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks active")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--seeds", default=None, help="by default 5 to 9 for digits, 0 to 2 for MNIST, else 0 to 4")
    parser.add_argument("--strategies", default=None, help="by default random beside bald, on MNIST batch_bald")
    parser.add_argument("--plot", default=None, help="a file for the learning curves of digits")
    parser.add_argument("--results", type=Path, default=Path("build/active.jsonl"), help="where runs are kept")
    parser.add_argument(
        "--baal", action="store_true", help="beside baal, which CREDO_PEERS must have (pip install baal)"
    )
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args(arguments)
    for name in options.only.split(","):
        try:
            PARTS[name](options)
        except FileNotFoundError as error:
            console.print(f"skipped: {error}")


def network(num_classes: int = 10) -> credo.Model:
    """64 ReLU units, weights N(0, 1)."""
    net = credo.networks.MLP([64], out=num_classes, activation="relu")
    return credo.models.classification(net, prior=credo.priors.normal(1.0))


class Run(NamedTuple):
    """One strategy on one problem."""

    problem: str
    strategy: str
    seed: int


def accuracies(run: Run, results: Path, pool: Any, labels: np.ndarray, test: Any, **settings: Any) -> dict[int, float]:
    """Accuracy on the test set by the number of labels; made once."""
    # Its inputs are too many to write down.
    acquisition = settings.pop("target", run.strategy)
    kept: Any = Results(results)
    found = kept.find(run, settings)
    if found is None:
        model, found = network(int(labels.max()) + 1), {}
        rounds = credo.active(model, pool, labels, CHAINS, acquisition, test=test, seed=run.seed, **settings)
        for one in rounds:
            found[str(one.num_labels)] = one.test["accuracy"]
        kept.add(run, settings, found)
    curve = {int(num): accuracy for num, accuracy in found.items()}
    console.print(f"{', '.join(map(str, run))}: {LearningCurve.of([curve]).labels_to_reach(LEVEL)[0]} labels to 95 %")
    return curve


# -- digits ---------------------------------------------------------------------------------------------------------


def digits(options: Any) -> None:
    """Labels until 95 % of the digits are right: the crossing of the median curve, and that of each seed."""
    x, y = _digits()
    curves = {}
    # Random labels do not depend on those before them: their curve may begin late, and have larger steps.
    rounds = {"bald": {"initial": 20, "batch": 5, "stop": 180}, "random": {"initial": 100, "batch": 20, "stop": 360}}
    for name in _strategies(options, "bald,random"):
        runs = []
        for seed in _seeds(options, range(5, 10)):
            pool, rest = _split(len(x), 1297, seed)
            run, test = Run("digits", name, seed), (x[rest], y[rest])
            runs.append(accuracies(run, options.results, x[pool], y[pool], test, **rounds[name]))
        curves[name] = LearningCurve.of(runs, by="accuracy")
    table = new_table("Digits: labels to 95 %", "method", "median curve", "× random", "each seed", "accuracy at 100")
    needed = {name: _crossing(curve) for name, curve in curves.items()}
    for name, curve in curves.items():
        ratio = f"{needed[name] / needed['random']:.2f}" if needed[name] and needed.get("random") else "–"
        at = np.median(curve.values[:, curve.num_labels == 100])
        each = ", ".join(str(num or "–") for num in curve.labels_to_reach(LEVEL))
        table.add_row(name, f"{needed[name]:.0f}" if needed[name] else "–", ratio, each, f"{at:.3f}")
    show(table, markdown=options.markdown)
    if options.plot:
        credo.plot.save(credo.plot.learning_curve(curves, level=LEVEL), options.plot)


def _crossing(curve: LearningCurve) -> float | None:
    """Where the median over seeds reaches the level, on straight lines between its points."""
    median = np.median(curve.values, axis=0)
    above = np.flatnonzero(median >= LEVEL)
    if not len(above):
        return None
    last = above[0] + 1
    return float(np.interp(LEVEL, np.maximum.accumulate(median[:last]), curve.num_labels[:last]))


def irrelevant(options: Any) -> None:
    """Ones from sevens, in a pool of which four fifths are other digits."""
    x, y = _digits()
    labels = np.select([y == digit for digit in ASKED], range(len(ASKED)), default=len(ASKED))
    matter = np.isin(y, ASKED)
    table = new_table("Digits 1 and 7 among all ten: accuracy on 1 and 7", "method", "20 labels", "40", "60", "mean")
    for name in ("epig", "bald", "random"):
        runs = []
        for seed in _seeds(options, range(5)):
            pool, rest = _split(len(x), 1297, seed)
            # Of half of the rows that matter the inputs are known; the others are the test.
            target, test = np.array_split(rest[matter[rest]], 2)
            settings: dict[str, Any] = {"batch": 5, "stop": 60, "initial": 10}
            if name == "epig":
                settings["target"] = credo.acquisitions.EPIG(target=x[target])
            run, judged = Run("irrelevant", name, seed), (x[test], labels[test])
            runs.append(accuracies(run, options.results, x[pool], labels[pool], judged, **settings))
        curve = LearningCurve.of(runs, by="accuracy")
        mean = curve.values.mean(0)
        at = [f"{mean[curve.num_labels == num][0]:.3f}" for num in (20, 40, 60)]
        table.add_row(name, *at, f"{curve.values.mean():.3f} ± {curve.values.mean(1).std(ddof=1) / 5**0.5:.3f}")
    show(table, markdown=options.markdown)


# -- MNIST ----------------------------------------------------------------------------------------------------------


def mnist(options: Any) -> None:
    """BatchBALD of ten from 20 labels, beside the published runs."""
    train, test = credo.datasets.mnist()
    _batches("mnist", train.x, train.y, test, options)


def repeated(options: Any) -> None:
    """The same where each image is there thrice, with noise."""
    train, test = credo.datasets.mnist()
    num = len(train.x) // NUM_COPIES
    copies = np.tile(train.x[:num], (NUM_COPIES, 1, 1))
    noise = COPY_NOISE * np.random.default_rng(0).normal(size=copies.shape)
    _batches("repeated", (copies + noise).astype(np.float32), np.tile(train.y[:num], NUM_COPIES), test, options)


def _batches(what: str, images: np.ndarray, labels: np.ndarray, test: Any, options: Any) -> None:
    features = EdgeFeatures.of(images)
    x, judged = features(images), (features(test.x), test.y)
    table = new_table(
        f"MNIST ({what}): labels to 95 %", "method", "each seed", "median", "published", f"accuracy at {NUM_COMPARED}"
    )
    for name in _strategies(options, "batch_bald,random"):
        runs = [
            accuracies(Run(what, name, seed), options.results, x, labels, judged, **_asked_of_mnist(name))
            for seed in _seeds(options, range(3))
        ]
        curve = LearningCurve.of(runs, by="accuracy")
        needed = curve.labels_to_reach(LEVEL)
        median = np.median([num or np.inf for num in needed])
        at = np.median(curve.values[:, curve.num_labels == NUM_COMPARED])
        published = str(PUBLISHED[what]) if name == "batch_bald" else ""
        table.add_row(name, ", ".join(str(num or "–") for num in needed), f"{median:g}", published, f"{at:.3f}")
    show(table, markdown=options.markdown)


def _asked_of_mnist(name: str) -> dict[str, int]:
    """Ten at a time from 20 labels; random labels, as on digits, may begin late and go on in larger steps."""
    if name == "random":
        return {"initial": 50, "batch": 20, "stop": NUM_COMPARED}
    return {"initial": 20, "batch": NUM_BATCH, "stop": NUM_COMPARED}


def timed(options: Any) -> None:
    """One round on 50,000 rows: the choice of ten by 100 draws, and baal's from the same probabilities."""
    train, _ = credo.datasets.mnist()
    x, y = _components(train.x.reshape(len(train.x), -1)), train.y
    posterior: Any = credo.fit(network(), (x[:100], y[:100]), CHAINS)
    acquisition, rng = credo.acquisitions.BatchBALD(num_draws=NUM_DRAWS), np.random.default_rng(0)
    pool, allowed = x[:NUM_TIMED], np.full(NUM_TIMED, True)

    def choice() -> np.ndarray:
        return acquisition.choose(posterior, pool, NUM_BATCH, allowed=allowed, rng=rng).rows

    title = f"BatchBALD of {NUM_BATCH} from {NUM_TIMED:,} rows and {NUM_DRAWS} draws"
    table = new_table(title, "peer", "seconds", "of processor time")
    for name in ("credo, with what it compiles the first time", "credo, from then on, predictions included"):
        table.add_row(name, *(f"{seconds:.1f}" for seconds in _seconds(choice)))
    if options.baal and peers.interpreter() is not None:
        probs = np.moveaxis(posterior.predict(pool, num_draws=NUM_DRAWS).functions, 0, 2)
        table.add_row("baal, from probabilities that are given", *(f"{seconds:.1f}" for seconds in _of_baal(probs)))
    show(table, markdown=options.markdown)


def _components(rows: np.ndarray, num: int = 50) -> np.ndarray:
    """The first principal components of rows."""
    centred = rows - rows.mean(0)
    return (centred @ np.linalg.eigh(np.cov(centred[::10].T))[1][:, -num:]).astype(np.float32)


def _of_baal(probs: np.ndarray) -> list[float]:
    path = Path("build/active-probs.npy")
    path.parent.mkdir(exist_ok=True)
    try:
        np.save(path, probs)
        return peers.measure("batch_bald_baal.py", str(path), str(NUM_BATCH), str(NUM_ANSWERS))
    finally:
        path.unlink(missing_ok=True)


def _seconds(function: Callable[[], Any]) -> list[float]:
    """On the clock, and of the processors."""
    began, spent = time.perf_counter(), time.process_time()
    function()
    return [time.perf_counter() - began, time.process_time() - spent]


# -- data -----------------------------------------------------------------------------------------------------------


def _digits() -> tuple[np.ndarray, np.ndarray]:
    data = credo.datasets.load("digits")
    return (data.x / data.x.max()).astype(np.float32), data.y


def _split(num: int, num_pool: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(num)
    return order[:num_pool], order[num_pool:]


def _strategies(options: Any, usual: str) -> list[str]:
    return (options.strategies or usual).split(",")


def _seeds(options: Any, usual: Sequence[int]) -> Sequence[int]:
    return usual if options.seeds is None else [int(seed) for seed in options.seeds.split(",")]


PARTS: dict[str, Callable[[Any], None]] = {
    "digits": digits,
    "irrelevant": irrelevant,
    "mnist": mnist,
    "repeated": repeated,
    "time": timed,
}
