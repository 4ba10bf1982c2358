"""Ten real tables, everything at its default: credo beside a Gaussian process, boosting, a peer of its kind and a line.

    CREDO_DATA=folder python -m benchmarks tables [--sets servo,stock] [--methods credo,gaussian_process] [--splits 5]
    CREDO_DATA=folder python -m benchmarks tables --gap [--inputs 3]
    CREDO_DATA=folder python -m benchmarks tables --verdict
    CREDO_DATA=folder python -m benchmarks tables --large [--splits 1]
    python -m benchmarks tables --classes

Log-likelihood in nats per row of the target in its own units, CRPS and RMSE in these units, the share of targets in 90%
intervals, and seconds of a fit and its predictions in a new process, compilation included; mean ± standard error over
the splits. With `--gap`, the middle third of the rows by one input is predicted from the others, each input in turn.
Every fit is one line of the file of results, and is not repeated as long as its settings, and the code of credo for its
own fits, stay the same.
"""

import argparse
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import track

import credo
from benchmarks import peers, table_figures, table_problems
from benchmarks.printing import console
from benchmarks.resumable import Fit, Results
from benchmarks.table_fits import Credo, Peer, measure
from benchmarks.table_problems import NUM_SPLITS, Parts

RESULTS = Path(__file__).parent / "results" / "tables.jsonl"
WITHOUT_PEERS = "The peers are not fitted: `make .venv-peers/.installed` makes their environment."
# Seconds of the processors: half an hour, which bde takes longer than on 15,000 rows.
LIMIT = 1_800

# Arguments of credo's estimators go to another process as JSON: words and numbers.
CREDO: dict[str, Credo | Peer] = {"credo": Credo({}), "linear": Credo({"network": "linear", "noise": "heavy_tailed"})}
# Boosting by its default number of trees (500 and 1,000), and by as many as predict rows best that are held out.
TUNED_TREES = {"trees": 2_000, "folds": 5}
NUMBERS = CREDO | {
    "gaussian_process": Peer("gaussian_process", {"restarts": 2, "tuned_on": 1_000, "most": 6_000}),
    "ngboost": Peer("ngboost", {"trees": 500}),
    "ngboost_tuned": Peer("ngboost", TUNED_TREES),
    "catboost": Peer("catboost", {"trees": 1_000}),
    "catboost_tuned": Peer("catboost", TUNED_TREES),
    # All settings of the example in bde's README.
    "bde": Peer(
        "bde",
        {
            "hidden_layers": [16, 16],
            "n_members": 8,
            "epochs": 200,
            "patience": 10,
            "validation_split": 0.15,
            "lr": 1e-3,
            "weight_decay": 1e-4,
            "warmup_steps": 5_000,
            "n_samples": 2_000,
            "n_thinning": 2,
        },
    ),
    "constant": Peer("constant", {}),
}
CLASSES = CREDO | {
    "logistic": Peer("logistic", {"folds": 5}),
    "hist_boosting": Peer("hist_gradient_boosting", {}),
    "hist_boosting_calibrated": Peer("hist_gradient_boosting", {"calibrated": 5}),
    "catboost": Peer("catboost_classes", {"trees": 1_000}),
    "catboost_tuned": Peer("catboost_classes", TUNED_TREES),
    "constant": Peer("constant_classes", {}),
}


class Task(NamedTuple):
    """What is fitted: sets of so many parts each, by methods, of which some are the default."""

    name: str
    sets: Sequence[str]
    parts: Callable[[str, int | None], dict[int, Parts]]
    methods: Mapping[str, Credo | Peer]
    default: Sequence[str]


SPLITS = Task("splits", table_problems.SETS, table_problems.splits, NUMBERS, tuple(NUMBERS))
GAPS = Task("gaps", table_problems.SETS, table_problems.gaps, NUMBERS, ("credo", "gaussian_process"))
LARGE = Task("large", table_problems.LARGE_SETS, table_problems.large, NUMBERS, ("credo", "catboost_tuned", "constant"))
LABELS = Task("classes", table_problems.CLASS_SETS, table_problems.classes, CLASSES, tuple(CLASSES))


def main(arguments: Sequence[str] = ()) -> None:
    """Make the fits that are missing, then print the tables."""
    options = _options(arguments)
    task, methods = options.task, options.methods
    possible = [name for name in methods if isinstance(task.methods[name], Credo) or peers.interpreter() is not None]
    if not options.show and possible != methods:
        console.print(WITHOUT_PEERS)
    try:
        parts = {name: task.parts(name, options.num) for name in options.sets}
    except FileNotFoundError as error:
        console.print(f"skipped: {error}")
        return
    results = Results(options.out)
    wanted = [Fit(name, method, part) for name in options.sets for method in methods for part in parts[name]]
    settings = {method: settings_of(task, method, options.code) for method in methods}

    def found(fit: Fit) -> dict[str, Any] | None:
        scores = results.find(fit, settings[fit.method])
        return None if scores is None or scores.get("given_up_after", options.limit) < options.limit else scores

    missing = [] if options.show else [fit for fit in wanted if fit.method in possible and found(fit) is None]
    for fit in track(missing, "fits", console=console, disable=not missing):
        try:
            scores = measure(task.methods[fit.method], parts[fit.name][fit.split], fit.split, options.limit)
        except (RuntimeError, ValueError) as error:  # a program that failed, an answer that is not finite
            console.print(f"{', '.join(map(str, fit))}: left out, {error}", markup=False)
            continue
        results.add(fit, settings[fit.method], scores)
        console.print(f"{', '.join(map(str, fit))}: {_words(scores)}")
    made = {fit: scores for fit in wanted if (scores := found(fit)) is not None}
    if not made:
        console.print("Nothing has been fitted with these settings.")
        return
    if options.verdict:
        table_figures.show_verdicts(made, markdown=options.markdown)
        return
    table_figures.SHOW[task.name](made, options.sets, options.markdown)


def _words(scores: Mapping[str, Any]) -> str:
    figures = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in scores.values())
    return ", ".join(map(" ".join, zip(scores, figures, strict=True)))


def settings_of(task: Task, name: str, code: str | None = None) -> dict[str, Any]:
    """All that a result depends on, as it stands in the file of results; without a name, any version of the code."""
    method = task.methods[name]
    if isinstance(method, Credo):
        return {"task": task.name, "arguments": method.arguments} | ({"code": code} if code else {})
    return {"task": task.name, **method._asdict()}


def code_of_credo() -> str:
    """A name for the source of the package: a default that has been changed is not the one that was measured."""
    folder = Path(credo.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks tables", description=__doc__.splitlines()[0])
    kind = parser.add_mutually_exclusive_group()
    for flag, task, words in (
        ("--gap", GAPS, "leave out the middle third by one input, each in turn"),
        ("--large", LARGE, "7,000 to 200,000 rows"),
        ("--classes", LABELS, "ten sets of classes that come with Python packages"),
    ):
        kind.add_argument(flag, dest="task", action="store_const", const=task, help=words)
    parser.set_defaults(task=SPLITS)
    parser.add_argument("--verdict", action="store_true", help="what credo's verdicts said, beside what was true")
    parser.add_argument("--show", action="store_true", help="print what has been fitted, and fit nothing")
    parser.add_argument("--sets", help="comma-separated; all by default")
    parser.add_argument("--methods", help="comma-separated; all by default, with --gap credo,gaussian_process")
    parser.add_argument("--splits", type=int, default=NUM_SPLITS, help=f"the first so many of the {NUM_SPLITS}")
    parser.add_argument("--inputs", type=int, help="with --gap, so many inputs of each set; all by default")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds of the processors that a fit may take")
    parser.add_argument("--code", help="a name for credo's code that its results are kept under; its hash by default")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file of results, which is continued")
    parser.add_argument("--markdown", action="store_true", help="print tables for a document")
    options = parser.parse_args(list(arguments))
    for argument, known, default in (
        ("sets", options.task.sets, options.task.sets),
        ("methods", options.task.methods, ["credo"] if options.verdict else options.task.default),
    ):
        given = getattr(options, argument)
        names = list(default) if given is None else given.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            parser.error(f"--{argument}: no {unknown[0]!r}; there are {', '.join(known)}")
        setattr(options, argument, names)
    if not 1 <= options.splits <= NUM_SPLITS:
        parser.error(f"--splits: {options.splits}; from 1 to {NUM_SPLITS}")
    if options.inputs is not None and (options.task is not GAPS or options.inputs < 1):
        parser.error("--inputs: at least 1, and with --gap only")
    options.num = options.inputs if options.task is GAPS else options.splits
    options.code = options.code or code_of_credo()
    return options


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
