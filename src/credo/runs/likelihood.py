"""The law that a run gives its target: the one that is asked for, or the one that is found in its values."""

from dataclasses import replace

from credo import networks
from credo._checks import require_one_of
from credo.data import Data
from credo.models.found import ANY, found
from credo.runs.config import Config
from credo.tables.encoding import Encoding

AUTO, ORDINAL = "auto", "ordinal"
OF_NUMBERS = ("counts", "positive", "shares")
LIKELIHOODS = (AUTO, ANY, *OF_NUMBERS, ORDINAL)


def task_of(config: Config) -> str | None:
    """The task that a run is asked for, or that its likelihood is for; None to find it from the target."""
    require_one_of(LIKELIHOODS, likelihood=config.likelihood)
    by_likelihood = dict.fromkeys(OF_NUMBERS, "regression") | {ORDINAL: "classification"}
    return config.task or by_likelihood.get(config.likelihood)


def settled_likelihood(config: Config, encoding: Encoding, data: Data) -> Config:
    """The config with the likelihood of the run, and why, if that was left open."""
    target, chosen = encoding.target, config.likelihood
    if chosen == AUTO:
        open_to_others = networks.is_table(config.network) and encoding.tasks is None
        if not open_to_others or (target.is_classes and not target.is_ordered):
            return replace(config, likelihood=ANY)
        likelihood, why = found(data)
        return replace(config, likelihood=likelihood, found=why)
    if chosen != ANY and not (networks.is_table(config.network) and encoding.tasks is None):
        raise ValueError(f"likelihood is {chosen!r}, which the model for tables has; leave out the network")
    if chosen in OF_NUMBERS and target.is_classes:
        raise ValueError(f"likelihood is {chosen!r}, which is for numbers, and the task is classes; leave it out")
    if config.precisions and chosen in ("counts", "shares"):
        raise ValueError(
            f"likelihood is {chosen!r}, whose spread follows from its mean, and precisions are of a noise of its own; "
            f"leave {config.precisions!r} out, or pass it as counts if rows stand for several"
        )
    if chosen == ORDINAL and not target.is_classes:
        raise ValueError("likelihood is 'ordinal', which is for classes, and the task is numbers; leave it out")
    if chosen == ORDINAL and not target.is_ordered:
        raise ValueError(
            f"likelihood is 'ordinal', and the classes of {target.name!r} are text ({', '.join(target.labels[:4])}), "
            "whose order the table does not say; write grades as whole numbers, or keep an ordered category (Enum in "
            "Polars) in a .parquet file"
        )
    return config


def likelihood_in_words(config: Config) -> str:
    """The law of the target, and why; nothing for what may be anything.

    >>> import credo
    >>> credo.runs.likelihood_in_words(credo.runs.Config("houses.csv", "rooms", likelihood="counts"))
    'counts, as requested'
    """
    plain = "" if config.likelihood == ANY else f"{config.likelihood}, as requested"
    return f"{config.likelihood}, found from the target: {config.found}" if config.found else plain
