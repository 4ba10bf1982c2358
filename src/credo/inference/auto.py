"""The method "auto": one that suits the size of a model and its data, with the reason in a sentence.

Where the posterior is a formula, it is computed. Small problems get the exact posterior; middle ones short chains
around trained networks, with gradients of all rows; large ones training on minibatches. Latents per row, and a prior
that is to be learned, leave no choice.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from credo._checks import require_positive
from credo.data import Data, FileData
from credo.inference.closed_form.affine import has_closed_form
from credo.inference.closed_form.closed_form import ClosedForm
from credo.inference.ensemble.deep_ensemble import DeepEnsemble
from credo.inference.in_time import (
    GRADIENTS_PER_STEP,
    chains_within,
    core_seconds,
    gradient_by_size,
    gradient_measured,
    steps_within,
)
from credo.inference.laplace.laplace import Laplace
from credo.inference.mcmc.mclmc import MCLMC
from credo.inference.mcmc.nuts import NUTS
from credo.inference.mcmc.tempering import ParallelTempering
from credo.inference.method import Method
from credo.inference.point.map import MAP
from credo.inference.sgmcmc.schedules import Cosine
from credo.inference.variational.swag import SWAG
from credo.inference.variational.vi import BayesByBackprop
from credo.models.priors import Consistent, Table
from credo.models.program import Model

# The work of a gradient of all rows is parameters × rows: 0.3 ms of a core for each million, and 20 µs at least. With
# these borders and plans, samplers take up to a minute of processor time, half of that on two cores. In the posteriors
# of small networks on UCI sets NUTS takes the longest trajectories that it may, so max_depth sets its time.
MAX_PARAMETERS_OF_NUTS, MAX_WORK_OF_NUTS = 100, 100_000
# A condition on slopes at every row made such a gradient 1.4 to 2.7 times as dear, two of them 1.7 to 3.4 times.
ROWS_PER_POINT = 1.5
# Mean log densities of test rows by MCLMC and an ensemble of five, which takes a sixth to two thirds of its time, for
# two layers of 50 units, one split each: wine −0.78 and −10.98, boston −2.16 and −8.15, concrete −2.68 and −3.38,
# 2,520 rows of kin8nm 1.24 and 0.75, of power −2.71 and −2.75; energy, the exception, −0.34 and −0.21.
MAX_WORK_OF_LONG_CHAINS, MAX_WORK_OF_MCLMC = 1_000_000, 10_000_000
# The draws of the long chains are then 160 MB.
MAX_PARAMETERS_OF_MCLMC = 100_000
# The covariance of so many weights takes 72 MB, and its root some seconds.
MAX_PARAMETERS_OF_CLOSED_FORM = 3_000
EXACT = NUTS(num_samples=250, num_warmup=500, max_depth=8)
# These chains are too short to arrive, and a direction that lasts explores further, at the price of functions that are
# too wide where networks are small. With 16 and with 2, split 3 each: energy −1.11 and −1.56, concrete −2.99 and −3.17.
PERSISTENCE = 16.0
LONG_CHAINS = MCLMC(num_samples=100, num_warmup=2000, thin=100, persistence=PERSISTENCE, start=MAP(num_steps=500))
SHORT_CHAINS = replace(LONG_CHAINS, num_samples=50, num_warmup=500, thin=40)
# In a program of the user's own several modes are likely, and up to here the temperatures that visit them are cheap.
MAX_PARAMETERS_OF_TEMPERING = 50
# Beyond, five trainings are too many.
MEMBERS, MAX_PARAMETERS_OF_ENSEMBLES = 5, 1_000_000
BATCH_SIZE = 256
# Passes over the data, in steps that are neither too few to arrive nor too many to wait for.
NUM_EPOCHS, MIN_STEPS, MAX_STEPS = 50, 3_000, 20_000
# A default model for tables: its chains take so many seconds of one core. On few rows fewer are enough: servo's chains
# agree after 100,000 steps in all, and 300,000 predict no better. Where a gradient is dear, 40,000 steps take what they
# take, up to a limit: beyond it an ensemble is as good or better, and much quicker. On 4,700 rows of parkinsons it has
# 0.68 nats a test row in 16 seconds of one core, chains 0.01 in 92; on 14,900 of elevators 1.12 in 10 (both split 0).
SECONDS_OF_CHAINS, LEAST_STEPS_OF_CHAINS, MOST_STEPS_OF_CHAINS = 30.0, 40_000, 100_000
MAX_SECONDS_OF_CHAINS = 60.0
# Of the rows, to stop training by, once they have been predicted no better for this share of the steps: as long as the
# rate is large, what one step gives the next one takes. Two members on 200,000 rows stopped after an eighth of the
# steps where 500 without improvement were enough, and were 0.062 nats a row worse (−0.691; the truth −0.618). Rows held
# out make longer trainings safe: with 20,000 steps, not 8,050, protein was at −2.611, not −2.659 (one layer of 100);
# with 60,000, not 20,000, parkinsons at 1.44, not 0.68, elevators at 1.117, not 1.115, in less than twice the time.
HELD_OUT, PATIENCE, STEPS_OF_TABLE = 0.1, 0.25, 60_000


@dataclass(frozen=True)
class Choice:
    """A method, and why it suits.

    Arguments:
        validation: the share of the rows to stop early by, where none are given.

    >>> import credo
    >>> data = credo.datasets.gap(20)
    >>> choice = credo.choose(credo.models.regression(credo.networks.MLP([5], out=1)), data)
    >>> type(choice.method).__name__, choice.why
    ('NUTS', '17 parameters and 20 rows: small enough for exact sampling, by NUTS')
    """

    method: Method
    why: str = ""
    validation: float | None = None


def choose(model: Model, data: Data | FileData, *, budget: float | None = None) -> Choice:
    """A method for a model and data, by their sizes and by what the model asks for.

    Arguments:
        budget: seconds on the clock that the fit may take; for the default model of tables, whose chains take
            what there is.

    >>> from credo import datasets, models, networks
    >>> choose(models.regression(networks.MLP([10], out=1)), datasets.gap()).why
    '32 parameters and 100 rows: small enough for exact sampling, by NUTS'
    """
    if budget is not None:
        require_positive(budget=budget)
    bound = model if model.rows is not None else model.bind(data)
    num_points = sum(bound.constants[name].shape[0] for name in bound.summed_inputs)
    num_rows = data.num_labelled
    if isinstance(data, FileData):
        choice = _of_files(bound, num_rows)
        return replace(choice, why=f"{_count(num_rows, 'row')} in files, read in minibatches: {choice.why}")
    is_table = isinstance(_base_prior(bound), Table)
    if budget is not None and not is_table:
        raise ValueError(
            "budget: only the default model for tables, credo.models.table(data), takes the time that it is given; "
            "name a method with the settings that you have time for"
        )
    of_table = partial(_of_table, data=data, num_points=num_points, budget=budget)
    by_size = of_table if is_table else partial(_by_size, num_points=num_points)
    choice = _by_needs(bound, num_rows) or by_size(bound, num_rows)
    parameters, rows = _count(bound.num_parameters, "parameter"), _count(num_rows, "row")
    conditions = f", with conditions at {_count(num_points, 'point')}" if num_points else ""
    sizes = f"{parameters} and {rows}{conditions}"
    return replace(choice, why=f"{sizes}: {choice.why}")


def rules() -> dict[str, str]:
    """Which models and data get which method, in words; a point of a condition counts as one and a half rows.

    >>> rules()["latents for each row"]
    'bayes_by_backprop'
    """
    return {
        "latents for each row": "bayes_by_backprop",
        "a prior or a noise to be learned": "laplace; bayes_by_backprop for a program without a network",
        "layers that are points": "bayes_by_backprop; where they are given, only if the others are too many for nuts "
        "and mclmc",
        f"regression that is linear in up to {MAX_PARAMETERS_OF_CLOSED_FORM:,} normal weights": "closed_form",
        "the default model for tables": "mclmc from the prior, in about half a minute; deep_ensemble, stopped early, "
        "where that is too short",
        f"up to {MAX_PARAMETERS_OF_NUTS} parameters, and {MAX_WORK_OF_NUTS:,} parameters × rows": "nuts; "
        f"parallel_tempering for a program without a network, up to {MAX_PARAMETERS_OF_TEMPERING} parameters",
        f"beyond, up to {MAX_PARAMETERS_OF_ENSEMBLES:,} parameters, with true labels summed out": "bayes_by_backprop",
        f"up to {MAX_PARAMETERS_OF_MCLMC:,} parameters, and {MAX_WORK_OF_MCLMC:,} parameters × rows": "mclmc from "
        "trained networks",
        f"up to {MAX_PARAMETERS_OF_ENSEMBLES:,} parameters": "deep_ensemble on minibatches",
        "beyond": "laplace of the last layer, on minibatches; swag for a program without a network",
    }


def _of_files(model: Model, num_rows: int) -> Choice:
    """Of rows in files, a method that sees nothing but minibatches."""
    training = replace(_training(num_rows), batch_size=BATCH_SIZE)
    if model.has_local_latents or model.xi_template or model.points:
        method = replace(_variational(num_rows), batch_size=BATCH_SIZE)
        return Choice(method, "variational inference learns what the model leaves open")
    if model.num_parameters <= MAX_PARAMETERS_OF_ENSEMBLES:
        return Choice(DeepEnsemble(training, members=MEMBERS), "an ensemble of five is trained")
    swag = SWAG(num_steps=2 * training.num_steps, num_warmup=training.num_steps, batch_size=BATCH_SIZE)
    return Choice(swag, "too many weights to train more than once, so SWAG fits a Gaussian to the end of one training")


def _by_needs(model: Model, num_rows: int) -> Choice | None:
    """What a model needs that most methods do not have."""
    if model.has_local_latents:
        return Choice(_variational(num_rows), "the model draws latents for each row, which takes variational inference")
    if not model.xi_template:
        return _by_formula(model)
    names = ", ".join(model.xi_template)
    if model.initial is None or model.points:
        return Choice(_variational(num_rows), f"variational inference learns what the model leaves open ({names})")
    laplace = Laplace(training=_training(num_rows))
    return Choice(laplace, f"what the model leaves open ({names}) is tuned by the evidence, which Laplace has")


def _by_formula(model: Model) -> Choice | None:
    """A formula, where there is one."""
    if model.num_parameters > MAX_PARAMETERS_OF_CLOSED_FORM or not has_closed_form(model):
        return None
    return Choice(ClosedForm(), "the mean is linear in them and all is normal, so the exact posterior is a formula")


def _by_size(model: Model, num_rows: int, num_points: int) -> Choice:
    num, has_network = model.num_parameters, model.initial is not None
    work = num * (num_rows + ROWS_PER_POINT * num_points)
    if not has_network and num <= MAX_PARAMETERS_OF_TEMPERING and work <= MAX_WORK_OF_NUTS:
        tempering = ParallelTempering(num_samples=500, num_warmup=500)
        return Choice(tempering, "small enough for exact sampling, by parallel tempering in case of several modes")
    if num <= MAX_PARAMETERS_OF_NUTS and work <= MAX_WORK_OF_NUTS:
        return Choice(EXACT, "small enough for exact sampling, by NUTS")
    if model.summed_sites and num <= MAX_PARAMETERS_OF_ENSEMBLES:
        # Chains that do not arrive stay where training began, in networks that have learned the errors by heart: 40 %
        # pair flips of digits, 68 % right by MCLMC and 96 % by variational inference, in a third of the time.
        return Choice(
            _variational(num_rows), "too many to sample, and variational inference tells noise from structure"
        )
    if num <= MAX_PARAMETERS_OF_MCLMC and work <= MAX_WORK_OF_MCLMC:
        sampler = LONG_CHAINS if work <= MAX_WORK_OF_LONG_CHAINS else SHORT_CHAINS
        return Choice(sampler, "too many for NUTS to be quick, so four chains of MCLMC sample around as many modes")
    if model.points:
        # Members would agree: a single layer on features that are given has one mode.
        return Choice(_variational(num_rows), "too many to sample, so variational inference learns what is no point")
    if num <= MAX_PARAMETERS_OF_ENSEMBLES:
        ensemble = DeepEnsemble(_training(num_rows), members=MEMBERS)
        return Choice(ensemble, "too many to sample, so an ensemble of five is trained on minibatches")
    if has_network:
        laplace = Laplace(subset="last_layer", training=_training(num_rows))
        return Choice(laplace, "too many to train more than once, so Laplace makes the last layer uncertain")
    training = _training(num_rows)
    swag = SWAG(num_steps=2 * training.num_steps, num_warmup=training.num_steps)
    return Choice(swag, "too many to train more than once, so SWAG fits a Gaussian to the end of one training")


def _of_table(model: Model, num_rows: int, *, data: Data, num_points: int, budget: float | None) -> Choice:
    """The default model for tables: chains from its prior as long as time allows, else an ensemble that stops early."""
    if budget is None:
        per_gradient = gradient_by_size(model.num_parameters, num_rows + ROWS_PER_POINT * num_points)
        per_step = GRADIENTS_PER_STEP * per_gradient
        seconds = per_step * np.clip(SECONDS_OF_CHAINS / per_step, LEAST_STEPS_OF_CHAINS, MOST_STEPS_OF_CHAINS)
        chains = chains_within(seconds, per_gradient) if seconds <= MAX_SECONDS_OF_CHAINS else None
        said = ""
    else:
        chains = chains_within(core_seconds(budget), gradient_measured(model, data))
        said = f" in {budget:g} s"
    if chains is not None:
        steps = chains.num_warmup + chains.num_samples * chains.thin
        return Choice(
            chains, f"{chains.num_chains} chains of MCLMC, {steps:,} steps each, find as many explanations{said}"
        )
    training = _training(num_rows, STEPS_OF_TABLE if budget is None else _steps_of_table(model, data, budget))
    return Choice(
        DeepEnsemble(training, members=MEMBERS),
        f"too many to sample{said}, so five networks are trained until held-out rows are worse, at most "
        f"{training.num_steps:,} steps",
        HELD_OUT,
    )


def _steps_of_table(model: Model, data: Data, budget: float) -> int:
    """How many steps each network may train within a budget of seconds; some even where there is no time."""
    minibatch = data.only_labelled()
    per_gradient = gradient_measured(model, minibatch.select(np.arange(min(minibatch.size, BATCH_SIZE))))
    most = max(_steps_of_epochs(minibatch.size), STEPS_OF_TABLE)
    return int(np.clip(steps_within(core_seconds(budget), per_gradient) // MEMBERS, MIN_STEPS, most))


def _base_prior(model: Model) -> Any:
    """The prior of a model's weights, without conditions; None for a program."""
    prior = None if model.recipe is None else model.recipe.prior
    return prior.base if isinstance(prior, Consistent) else prior


def _training(num_rows: int, num_steps: int | None = None) -> MAP:
    """Training on minibatches: as many steps as are given, or as the passes over the data take, within limits."""
    num_steps = num_steps or min(max(_steps_of_epochs(num_rows), MIN_STEPS), MAX_STEPS)
    training = MAP(num_steps=num_steps, learning_rate=Cosine(1e-2, num_steps), batch_size=_batch_size(num_rows))
    return replace(training, patience=math.ceil(PATIENCE * num_steps / training.check_every))


def _steps_of_epochs(num_rows: int) -> int:
    return NUM_EPOCHS * math.ceil(num_rows / BATCH_SIZE)


def _variational(num_rows: int) -> BayesByBackprop:
    # Where weights are drawn anew at each step, gradients are noisier: it takes twice the steps.
    return BayesByBackprop(num_steps=2 * _training(num_rows).num_steps, batch_size=_batch_size(num_rows))


def _batch_size(num_rows: int) -> int | None:
    return BATCH_SIZE if num_rows > 2 * BATCH_SIZE else None


def _count(num: int, what: str) -> str:
    return f"{num:,} {what}" + ("" if num == 1 else "s")
