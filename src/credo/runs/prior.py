"""The prior of a run: what is known about the weights, and about the function, by the names of the table's columns.

Paper, "Prior with a consistency condition".
"""

from credo._checks import require_one_of, require_positive
from credo._text import nearest
from credo.data import Data
from credo.models import conditions, priors
from credo.models.priors.base import Prior
from credo.networks import is_table
from credo.runs.config import Config
from credo.tables.encoding import Encoding

SIGNS = ("+", "-")


def directions(text: str) -> dict[str, str]:
    """A sign for each column, from text.

    >>> directions("size:+, age:-")
    {'size': '+', 'age': '-'}
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        name, sign = (piece.strip() for piece in part.rpartition(":")[::2])
        if not name or sign not in SIGNS:
            raise ValueError(
                f"monotone: write column:+ where the prediction rises and column:- where it falls, such as "
                f"size:+,age:-, and not {part.strip()!r}"
            )
        if found.setdefault(name, sign) != sign:
            raise ValueError(f"monotone: the prediction cannot both rise (+) and fall (-) with {name!r}; keep one")
    return found


def prior_of(config: Config, encoding: Encoding, own: Prior | None = None) -> Prior:
    """p(theta) of the weights, with conditions where something is known about the function; `own`: of the model."""
    require_positive(strength=config.strength)
    if config.strength != 1 and not (config.monotone or config.smooth):
        raise ValueError(f"strength is {config.strength:g}, and there is nothing to hold; set monotone or smooth too")
    if own is not None and config.prior_scale != 1:
        raise ValueError(
            f"prior_scale is {config.prior_scale:g}, and the model for tables draws its scales; name a network too, "
            "such as network='mlp:50,50'"
        )
    prior: Prior = priors.normal(config.prior_scale) if own is None else own
    known: list[conditions.Condition] = []
    if config.monotone:
        known.append(_monotone(config.monotone, encoding))
    if config.smooth:
        known.append(conditions.smooth())
    for condition in known:
        prior = priors.consistent(prior, condition, strength=config.strength * condition.strength)
    return prior


def prior_in_words(config: Config, encoding: Encoding) -> str:
    """The prior for people: `weights N(0, 1²); price monotone in size (+), age (−); smooth`.

    >>> import credo
    >>> run = credo.runs.Run.load("run")
    >>> credo.runs.prior_in_words(run.config, run.encoding)
    'weights N(0, 1²)'
    """
    drawn = "a relevance for each input, a scale for each layer, all drawn"
    parts = [drawn if is_table(config.network) else f"weights N(0, {config.prior_scale:g}²)"]
    if config.monotone:
        signs = ", ".join(f"{name} ({sign.replace('-', '−')})" for name, sign in config.monotone.items())
        parts.append(f"{_predicted(encoding)} monotone in {signs}")
    if config.smooth:
        parts.append("smooth")
    if encoding.tasks is not None:
        parts.append(f"a head for each {config.task_column}, from a population that is learned")
    if config.strength != 1:
        parts.append(f"{config.strength:g} × the usual strength")
    return ("of the run that it was made from: " if config.made_from else "") + "; ".join(parts)


def unlabelled_in_words(data: Data, config: Config) -> str:
    """What becomes of rows without a target; nothing if there are none.

    >>> import credo
    >>> some = credo.Data([[0.0], [1.0], [2.0]], [0.5, None, None])
    >>> credo.runs.unlabelled_in_words(some, credo.runs.Config("houses.csv", "price"))
    '2 rows have no target: their inputs scale the columns, and the likelihood leaves them out.'
    """
    num = data.size - data.num_labelled
    if not num:
        return ""
    looks = ", the prior's conditions look at them" if config.monotone or config.smooth else ""
    noun = "row has" if num == 1 else "rows have"
    return f"{num:,} {noun} no target: their inputs scale the columns{looks}, and the likelihood leaves them out."


def _monotone(signs: dict[str, str], encoding: Encoding) -> conditions.Monotone:
    """The condition on the inputs that stand for these columns; a column that says where cells are missing is free."""
    target = encoding.target
    if target.also:
        raise ValueError(f"monotone: it is about one target, and there are {len(target.columns)} ({target.title})")
    if target.task == "multi-class":
        raise ValueError(
            f"monotone: the target {target.name!r} has {len(target.labels)} classes, and it is not clear whose "
            "probability should rise; in Python, credo.conditions.monotone(…, label=…) names the class"
        )
    inputs = {column.name: column.ordered_by for column in encoding.columns if column.ordered_by}
    for name, sign in signs.items():
        require_one_of(SIGNS, **{f"monotone.{name}": sign})
        if name not in inputs:
            raise ValueError(f"monotone: {_refusal(name, encoding)}; {_listed(list(inputs))}")
    return conditions.monotone(
        {inputs[name]: sign for name, sign in signs.items()}, label=1 if target.is_classes else None
    )


def _predicted(encoding: Encoding) -> str:
    """What rises: the target, or the probability of the second of two classes."""
    target = encoding.target
    return f"the probability of {target.name} {target.labels[1]!r}" if target.is_classes else target.name


def _refusal(name: str, encoding: Encoding) -> str:
    says = dict(encoding.says)
    if name not in says:
        return f"there is no column {name!r}{nearest(name, says)}"
    return f"column {name!r} has no direction ({says[name]})"


def _listed(names: list[str]) -> str:
    return f"columns with a direction are {', '.join(names)}" if names else "no column has one"
