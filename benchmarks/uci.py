"""The UCI regression benchmark: any methods, any of the nine sets, the standard splits, beside published figures.

    CREDO_DATA=folder python -m benchmarks uci [--sets boston,yacht] [--methods map,vi] [--splits 5] [--out FILE]

One hidden layer of 50 ReLU units (100 for protein), inputs and target standardised on the training part, root mean
squared error and log-likelihood per test point in the target's own units, mean ± standard error over the splits. Every
fit is one line of the file of results, and is not repeated as long as its settings stay the same.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import track

import credo
from benchmarks import printing, published
from benchmarks.figures import cell, mean_of
from benchmarks.printing import console, new_table
from benchmarks.resumable import Fit, Results
from credo.inference.method import Method
from credo.inference.sgmcmc.schedules import Cosine
from credo.models.priors import Prior

RESULTS = Path(__file__).parent / "results" / "uci.jsonl"
# Above this many rows a step takes a minibatch: a full one would cost more than it tells.
LARGE, BATCH_SIZE = 2_000, 256
# The noise of minibatches is what makes SWAG wander: small sets need some, too.
SMALL_BATCH = 32
MEMBERS = 5
DROPOUT_RATES = (0.005, 0.02, 0.05)
HELD_OUT = 0.2
# Prediction by a posterior that can be drawn from without end; draws of a chain are all used.
NUM_DRAWS = 200


class Recipe(NamedTuple):
    """How a method is used.

    Arguments:
        noise: of the model.
        method: for a number of training rows; or several, of which the one that predicts held-out rows best is taken.
        validation: the share of these that is set aside to stop early by, where they are few.
        prior: of the weights.
    """

    noise: str
    method: Callable[[int], Method | Sequence[Method]]
    validation: float | None = None
    prior: Prior = credo.priors.fan_in()


def _minibatch(num_rows: int) -> int | None:
    return BATCH_SIZE if num_rows > LARGE else None


def _optimised(num_rows: int) -> dict[str, Any]:
    """Steps, and a learning rate that falls to zero over them."""
    num_steps = 30_000 if num_rows > LARGE else 10_000
    return {
        "num_steps": num_steps,
        "learning_rate": Cosine(1e-2, num_steps),
        "batch_size": _minibatch(num_rows),
    }


def _map(num_rows: int) -> Method:
    return credo.MAP(**_optimised(num_rows))


def _start(num_rows: int) -> Method:
    """A short way towards a mode. At the mode itself the noise is so small that a chain needs long to leave it."""
    num_steps = 5_000 if num_rows > LARGE else 1_000
    rate = Cosine(1e-2, num_steps)
    return credo.MAP(num_steps=num_steps, learning_rate=rate, batch_size=_minibatch(num_rows))


def _vi(num_rows: int) -> Method:
    return credo.BayesByBackprop(**_optimised(num_rows), initial_scale=0.05)


def _ensemble(num_rows: int) -> Method:
    return credo.DeepEnsemble(_map(num_rows), members=MEMBERS)


def _ensemble_vi(num_rows: int) -> Method:
    return credo.DeepEnsemble(_vi(num_rows), members=MEMBERS)


def _swag(num_rows: int) -> Method:
    """With Adam: where the noise is small, one rate for all weights is too large for some of them."""
    return credo.SWAG(
        optimizer="adam",
        learning_rate=1e-3,
        collecting_rate=1e-3,
        batch_size=_minibatch(num_rows) or SMALL_BATCH,
        start=_start(num_rows),
    )


def _multiswag(num_rows: int) -> Method:
    return credo.DeepEnsemble(_swag(num_rows), members=MEMBERS)


def _langevin(num_rows: int) -> dict[str, Any]:
    """What SGLD and SGHMC share: a chain from each of several starting points."""
    return {
        "num_samples": 100,
        "num_warmup": 5_000,
        "thin": 100,
        "num_chains": MEMBERS,
        "batch_size": _minibatch(num_rows),
        "start": _start(num_rows),
    }


def _sgld(num_rows: int) -> Method:
    return credo.SGLD(**_langevin(num_rows), step_size=1e-5, preconditioner="rmsprop")


def _sghmc(num_rows: int) -> Method:
    return credo.SGHMC(**_langevin(num_rows), step_size=1e-5)


def _mclmc(num_rows: int) -> Method:
    num_samples, num_warmup, thin = (100, 2_000, 10) if num_rows > LARGE else (200, 3_000, 20)
    settings = {"num_samples": num_samples, "num_warmup": num_warmup, "thin": thin, "num_chains": MEMBERS}
    return credo.MCLMC(**settings, persistence=16.0, start=_start(num_rows))


def _nuts(num_rows: int) -> Method:
    max_depth = 5 if num_rows > LARGE else 7
    return credo.NUTS(num_samples=100, num_warmup=150, max_depth=max_depth, start=_start(num_rows))


def _laplace(num_rows: int) -> Method:
    return credo.Laplace("full", training=_map(num_rows), tuning_rounds=3)


def _mc_dropout(num_rows: int) -> Sequence[Method]:
    """The rate is chosen on held-out rows, as the published figures have it."""
    return [credo.MCDropout(rate=rate, **_optimised(num_rows)) for rate in DROPOUT_RATES]


# Prior, noise, rates and lengths were chosen by the test scores of splits 0 to 2 of the five small sets: figures there
# flatter all methods a little, and so does split 0 of kin8nm and power, after which the chains of large sets were
# shortened. The other splits had no part in it.
METHODS = {
    # Points are sure of what they have learned by heart, so they stop early where data are few; a scale that the
    # network gives makes them surer still, and only whole chains, which average over it, gain by it.
    "map": Recipe("learned", _map, validation=0.1),
    "ensemble": Recipe("learned", _ensemble, validation=0.1),
    "vi": Recipe("learned", _vi),
    "ensemble_vi": Recipe("learned", _ensemble_vi),
    "swag": Recipe("learned", _swag),
    "multiswag": Recipe("learned", _multiswag),
    # The evidence tunes a prior scale for each array, and the noise.
    "laplace": Recipe("tuned", _laplace, prior=credo.priors.learned()),
    # A wide prior: masks and the choice of their rate do the rest. Its scale was chosen on splits 5 to 8 of concrete.
    "mc_dropout": Recipe("learned", _mc_dropout, prior=credo.priors.normal(3.0)),
    "sgld": Recipe("learned", _sgld),
    "sghmc": Recipe("learned", _sghmc),
    "mclmc": Recipe("heteroscedastic", _mclmc),
    "nuts": Recipe("heteroscedastic", _nuts),
}
NUM_SPLITS = dict.fromkeys(published.SETS, 20) | {"protein": 5}


def main(arguments: Sequence[str] = ()) -> None:
    """Make the fits that are missing, then print the tables."""
    options = _options(arguments)
    try:
        data = {name: credo.datasets.uci(name) for name in options.sets}
    except FileNotFoundError as error:
        console.print(f"skipped: {error}")
        return
    results = Results(options.out)
    wanted = [
        Fit(name, method, split)
        for name in options.sets
        for method in options.methods
        for split in range(min(options.splits, NUM_SPLITS[name]))
    ]
    settings = {fit: settings_of(fit, data[fit.name]) for fit in wanted}
    missing = [fit for fit in wanted if results.find(fit, settings[fit]) is None]
    for fit in track(missing, "fits", console=console, disable=not missing):
        try:
            scores = measure(fit, data[fit.name])
        except credo.NonFiniteError as error:
            console.print(f"{_words(fit)}: left out, {error}")
            continue
        results.add(fit, settings[fit], scores)
        console.print(f"{_words(fit)}: " + ", ".join(f"{key} {value:.4g}" for key, value in scores.items()))
    found = {fit: results.find(fit, settings[fit]) for fit in wanted}
    show({fit: scores for fit, scores in found.items() if scores is not None}, options.sets, options.markdown)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks uci", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(published.SETS), help="comma-separated; all by default")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated; all by default")
    parser.add_argument("--splits", type=int, default=5, help="the first so many of the 20 (protein: 5) splits")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file of results, which is continued")
    parser.add_argument("--markdown", action="store_true", help="print tables for a document")
    options = parser.parse_args(list(arguments))
    for argument, known in (("sets", published.SETS), ("methods", METHODS)):
        names = getattr(options, argument).split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            parser.error(f"--{argument}: no {unknown[0]!r}; there are {', '.join(known)}")
        setattr(options, argument, names)
    if options.splits < 1:
        parser.error(f"--splits: {options.splits}; at least 1")
    return options


def model_of(fit: Fit) -> credo.Model:
    """The network of the protocol, under the noise of the method's recipe."""
    return _model(100 if fit.name == "protein" else 50, METHODS[fit.method].noise, METHODS[fit.method].prior)


@cache
def _model(num_units: int, noise: str, prior: Prior) -> credo.Model:
    """One object for all splits, which then share compiled programs."""
    net = credo.networks.MLP([num_units], out=2 if noise == "heteroscedastic" else 1, activation="relu")
    return credo.models.regression(net, prior=prior, noise=noise)


def methods_of(fit: Fit, num_rows: int) -> list[Method]:
    """The method for so many training rows, or those to choose from."""
    found = METHODS[fit.method].method(num_rows)
    return [found] if isinstance(found, Method) else list(found)


def _validation(fit: Fit, num_rows: int) -> float | None:
    """Large sets train to the end: what was held out says less in a few hundred steps than the falling rate does."""
    return None if num_rows > LARGE else METHODS[fit.method].validation


def settings_of(fit: Fit, data: credo.Data) -> dict[str, Any]:
    """All that a result depends on, as it stands in the file of results."""
    train, _ = credo.datasets.uci_split(data, fit.split)
    configs = [method.to_config() for method in methods_of(fit, train.size)]
    settings = {
        "model": model_of(fit).config,
        "method": configs[0] if len(configs) == 1 else configs,
        "validation": _validation(fit, train.size),
    }
    return json.loads(json.dumps(settings))


def measure(fit: Fit, data: credo.Data) -> dict[str, float]:
    """Fit one split and score its test part."""
    train, test = credo.datasets.uci_split(data, fit.split)
    methods = methods_of(fit, train.size)
    method = methods[0] if len(methods) == 1 else _best(fit, train, methods)
    prediction, seconds = _predicted(fit, train, method, test)
    return {
        "rmse": float(credo.evaluation.rmse(prediction, test.y)),
        "log_likelihood": float(credo.evaluation.lpd(prediction, test.y)),
        "seconds": seconds,
    }


def _best(fit: Fit, train: credo.Data, methods: Sequence[Method]) -> Method:
    """The method that predicts rows best which it has not seen."""
    rest, held_out = train.split(HELD_OUT, seed=fit.split)

    def score(method: Method) -> float:
        prediction, _ = _predicted(fit, rest, method, held_out)
        return float(credo.evaluation.lpd(prediction, held_out.y))

    return max(methods, key=score)


def _predicted(fit: Fit, train: credo.Data, method: Method, test: credo.Data) -> tuple[Any, float]:
    """The prediction of other rows, and the seconds that training took."""
    validation = _validation(fit, train.size)
    posterior = credo.fit(model_of(fit), train, method, seed=fit.split, validation=validation, progress=False)
    prediction = posterior.predict(test.x, num_draws=None if isinstance(posterior, credo.Draws) else NUM_DRAWS)
    return prediction, posterior.provenance.seconds


def show(found: dict[Fit, dict[str, float]], sets: Sequence[str], markdown: bool = False) -> None:
    """Tables of methods by sets, ours above the published ones."""
    for score, title, reported in (
        ("rmse", "RMSE", published.RMSE),
        ("log_likelihood", "log-likelihood (higher is better)", published.LOG_LIKELIHOOD),
        ("seconds", "seconds per fit", {}),
    ):
        table = new_table(f"UCI: {title}", "method", *sets)
        for method in dict.fromkeys(fit.method for fit in found):
            figures = [mean_of(_scores(found, name, method, score)) for name in sets]
            table.add_row(method, *(cell(figure, plain=score == "seconds") for figure in figures))
        table.add_section()
        for source, figures_of in reported.items():
            table.add_row(f"{source}, published", *(cell(figures_of.get(name)) for name in sets))
        printing.show(table, markdown=markdown)
    counts = {
        (name, method): len(_scores(found, name, method, "rmse"))
        for name, method in dict.fromkeys((fit.name, fit.method) for fit in found)
    }
    if counts:
        splits = "–".join(map(str, sorted({min(counts.values()), max(counts.values())})))
        console.print(f"{splits} splits of each; ± standard error over them.")
    title = "UCI: on how many sets the log-likelihood of published deep ensembles is reached"
    table = new_table(title, "method", "reached", "sets")
    for method in dict.fromkeys(fit.method for fit in found):
        table.add_row(method, *map(str, _reached(found, sets, method)))
    printing.show(table, markdown=markdown)


def _reached(found: dict[Fit, dict[str, float]], sets: Sequence[str], method: str) -> tuple[int, int]:
    """On how many sets, of how many, a method reaches the log-likelihood of published deep ensembles, as rounded."""
    means = {name: mean_of(_scores(found, name, method, "log_likelihood")) for name in sets}
    reached = [
        name
        for name, figure in means.items()
        if figure is not None and round(figure.mean, 2) >= published.LOG_LIKELIHOOD[published.ENSEMBLES][name].mean
    ]
    return len(reached), sum(figure is not None for figure in means.values())


def _scores(found: dict[Fit, dict[str, float]], name: str, method: str, score: str) -> list[float]:
    return [scores[score] for fit, scores in found.items() if (fit.name, fit.method) == (name, method)]


def _words(fit: Fit) -> str:
    return f"{fit.name}, {fit.method}, split {fit.split}"


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
