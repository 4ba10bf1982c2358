"""The default model for tables: a line, a layer of units, noise of any size and tail, and all scales learned.

Paper, "Setting the priors" and "Stochastic models". With inputs and targets standardised,

    mean(x) = b + x·v + Σⱼ wⱼ tanh(Σᵢ uᵢⱼ xᵢ + cⱼ),    log s(x) likewise,    y ~ StudentT(3 + tail, mean(x), s(x))

and for classes y ~ Cat(softmax(mean(x))). Each input has a relevance and each group of weights a scale, with priors of
their own (`credo.priors.table`): inputs that do not help are switched off, the units where a line is enough, and
neither depends on how wide the network is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from credo._checks import require_one_of
from credo.data import Data, as_data, as_numbers
from credo.models import priors
from credo.models.classification import classification
from credo.models.counts import Counts, counts
from credo.models.found import ANY, found
from credo.models.likelihoods import HeavyTailed, Heteroscedastic, as_noise
from credo.models.ordinal import ordinal
from credo.models.positive import positive
from credo.models.program import Model
from credo.models.regression import regression
from credo.models.scales import in_logs, least_scales
from credo.models.shares import shares
from credo.networks import from_text, is_table

# Above so many rows the default network has one layer of many units, which costs as much as its two layers and predicts
# better: log densities by two members, −2.659 and −2.737 on 41,157 rows of protein, −0.627 and −0.629 on 200,000 of a
# function of six inputs. Two layers of 100 took twice the time for −2.656 on protein, and were worse on fewer rows.
MANY_ROWS, NETWORK_OF_MANY = 20_000, "table:100"


def table(
    data: Any, network: str = "table", *, prior: Any = None, noise: Any = None, likelihood: str | None = None
) -> Model:
    """The model that suits a table: of numbers or of classes, by its targets, or of the kind that is named.

    Arguments:
        data: `credo.Data` or a pair (x, y), of which the kind and number of targets are looked at, and how finely they
            were recorded. It should be standardised.
        network: "table", whose layers suit the number of rows, or "table:50" with the units of each hidden layer.
        prior: of the weights, `credo.priors.table` by default; or a function of that one, such as
            `lambda own: credo.priors.consistent(own, credo.conditions.smooth())`.
        noise: of numbers, as for `credo.models.regression`; "heavy_tailed" by default, with a least scale.
        likelihood: "counts", "positive", "shares" or "ordinal": the model of `credo.models` with that name, whose noise
            depends on x, and whose scale is set by the targets; "auto" for the one of these that `credo.models.found`
            finds, if any; "any" or None for numbers that may be anything, and for classes without an order.

    >>> from credo import datasets
    >>> table(datasets.gap()).bind(datasets.gap()).describe().num_parameters
    1124
    """
    suited = as_data(data)
    network = _for_rows(network, suited.num_labelled)
    if likelihood == "auto":
        likelihood = found(suited).likelihood
    if likelihood not in (None, ANY):
        if noise is not None:
            raise ValueError(f"noise: likelihood={likelihood!r} has noise of its own; pass one of the two")
        return _of_kind(suited, network, prior, likelihood)
    if suited.y.dtype.kind == "i":
        num_classes = len(suited.classes or range(int(suited.only_labelled().y.max()) + 1))
        net = from_text(network, num_classes if num_classes > 2 else 1)
        return classification(net, prior=_prior(prior, priors.table()))
    num_targets = 1 if suited.y.ndim == 1 else suited.y.shape[1]
    law = as_noise(HeavyTailed(least_scales(suited)) if noise is None else noise)
    num_outputs = law.num_outputs(num_targets)
    own = priors.table(num_log_scales=num_outputs - num_targets)
    return regression(from_text(network, num_outputs), prior=_prior(prior, own), noise=law)


def _for_rows(network: str, num_rows: int) -> str:
    """The network that is asked for; where its layers are left open, those that suit the number of rows."""
    is_open = is_table(network) and ":" not in network
    return NETWORK_OF_MANY if is_open and num_rows > MANY_ROWS else network


def _of_kind(data: Data, network: str, prior: Any, likelihood: str) -> Model:
    """The model of the targets of one kind; all but ordered classes have a second output, the log-scale of noise."""
    require_one_of((*KINDS, ANY, "auto"), likelihood=likelihood)
    num_log_scales = 0 if likelihood == "ordinal" else 1
    net = from_text(network, 1 + num_log_scales)
    return KINDS[likelihood](data, net, prior=_prior(prior, priors.table(num_log_scales=num_log_scales)))


def _counts(data: Data, net: Any, prior: Any) -> Model:
    y = as_numbers(Counts().suited(data).y)
    return counts(net, prior=prior, base=float(np.nanmean(y)) or 1.0)


def _positive(data: Data, net: Any, prior: Any) -> Model:
    _, spread, least = in_logs(positive(net).suited(data))
    return positive(net, prior=prior, noise=Heteroscedastic(least), spread=spread)


def _ordinal(data: Data, net: Any, prior: Any) -> Model:
    num_classes = len(data.classes) if data.classes else int(np.nanmax(as_numbers(data.y))) + 1
    return ordinal(net, num_classes, prior=prior)


KINDS: dict[str, Callable[..., Model]] = {
    "counts": _counts,
    "positive": _positive,
    "shares": lambda data, net, prior: shares(net, prior=prior),
    "ordinal": _ordinal,
}


def _prior(given: Any, own: priors.Prior) -> Any:
    """The default prior, what a function makes of it, or another."""
    if given is None:
        return own
    return given(own) if callable(given) and not hasattr(given, "to_config") else given
