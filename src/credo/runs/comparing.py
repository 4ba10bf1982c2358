"""Several methods on one table: fit them, judge them on rows they have not seen, and recommend one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from credo.data import Data
from credo.evaluation.checks import require_whole_counts
from credo.evaluation.compare import Comparison, compare
from credo.inference.fit import fit
from credo.inference.registry import method_name
from credo.posterior import Posterior
from credo.runs.config import Config
from credo.runs.likelihood import likelihood_in_words, settled_likelihood
from credo.runs.prior import prior_in_words, unlabelled_in_words
from credo.runs.settled import chosen, encoding_of, model_of
from credo.tables.encoding import Encoding
from credo.tables.files import open_table
from credo.tables.source import Source
from credo.tables.table import Table


def compare_methods(
    config: Config,
    methods: Sequence[str],
    *,
    test: str | Path | Source | None = None,
    holdout: float = 0.2,
    tell: Callable[[str], None] = lambda _: None,
    progress: bool | None = None,
) -> Comparison:
    """Fit each method to one table, and compare them on a test table or on held-out rows.

    Arguments:
        config: the table and the network; its method is ignored.
        methods: their names.
        test: a test table.
        holdout: the share of rows to judge on if there is no test table.
        tell: called with a line of text at each step.
        progress: as in `credo.fit`.
    """
    if not methods:
        raise ValueError("methods is empty; name at least one method to compare, such as 'map'")
    names = list(dict.fromkeys(name if name == "auto" else method_name(name) for name in methods))
    table = open_table(config.source)
    encoding = encoding_of(config, table)
    train, judged = _split(encoding, config, table, test, holdout)
    tell(
        f"Task: {encoding.target.says}. {train.num_labelled:,} rows to learn from, {judged.num_labelled:,} to judge on."
    )
    if said := unlabelled_in_words(train, config):
        tell(said)
    config = settled_likelihood(config, encoding, train)
    if said := likelihood_in_words(config):
        tell(f"Likelihood: {said}.")
    model = model_of(config, encoding, train)
    tell(f"Prior: {prior_in_words(config, encoding)}.")
    posteriors: dict[str, Posterior] = {}
    for name in names:
        choice = chosen(replace(config, method=name), model, train)
        reason = f" ({type(choice.method).__name__}: {choice.why})" if choice.why else ""
        tell(f"Fitting {name}{reason} …")
        posteriors[name] = fit(model, train, choice, seed=config.seed, progress=progress)
        if posteriors[name].provenance.interrupted:
            raise KeyboardInterrupt(f"while fitting {name}")
    return compare(posteriors, judged)


def recommend(result: Comparison) -> str:
    """Recommend, in words, the method that trains fastest among those within one standard error of the best score."""
    by = result.by
    best = result.names[0]
    metric = result.scores[best].metrics[by]
    limit = metric.badness(result.scores[best][by].value) + result.scores[best][by].standard_error
    good = [name for name in result.names if metric.badness(result.scores[name][by].value) <= limit]
    choice = min(good, key=lambda name: result.costs[name].training_seconds)
    label = result.scores[best].label(by)
    seconds = {name: f"{result.costs[name].training_seconds:.2g} s" for name in result.names}
    if len(result.names) == 1:
        return f"Only {best} was tried ({label} {result.scores[best][by]}): name more methods to compare."
    if choice == best:
        alone = "no other comes within one standard error of it"
        first = "of those within one standard error of it no other trains faster"
        reason = f"It has the best {label}, {result.scores[best][by]}, and {alone if len(good) == 1 else first}"
        return f"Recommended: {choice}. {reason} ({seconds[choice]})."
    return (
        f"Recommended: {choice}. Its {label}, {result.scores[choice][by]}, is within one standard error of the best "
        f"({best}, {result.scores[best][by]}), and it trains in {seconds[choice]} against {seconds[best]}."
    )


def _split(
    encoding: Encoding, config: Config, table: Table, test: str | Path | Source | None, holdout: float
) -> tuple[Data, Data]:
    data = encoding.training_data(table)
    if test is not None:
        return data, encoding.data(Source.of(test).like(config.source))
    if not 0 < holdout < 1:
        raise ValueError(f"holdout is {holdout}; it is the share of rows to judge on, between 0 and 1")
    train, judged = data.split(holdout, seed=config.seed, stratify=encoding.target.is_classes)
    require_whole_counts(judged)
    return train, judged
