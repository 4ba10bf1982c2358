"""The method "auto": one that suits the size of a model and its data, with the reason in a sentence.

Where the posterior is a formula, it is computed. Small problems get the exact posterior; middle ones short chains
around trained networks, with gradients of all rows; large ones training on minibatches. Latents per row, and a prior
that is to be learned, leave no choice.
"""

import math
from dataclasses import dataclass, replace

from credo.data import Data
from credo.inference.closed_form.affine import has_closed_form
from credo.inference.closed_form.closed_form import ClosedForm
from credo.inference.ensemble.deep_ensemble import DeepEnsemble
from credo.inference.laplace.laplace import Laplace
from credo.inference.mcmc.mclmc import MCLMC
from credo.inference.mcmc.nuts import NUTS
from credo.inference.mcmc.tempering import ParallelTempering
from credo.inference.method import Method
from credo.inference.point.map import MAP
from credo.inference.sgmcmc.schedules import Cosine
from credo.inference.variational.swag import SWAG
from credo.inference.variational.vi import BayesByBackprop
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
MAX_PARAMETERS_OF_ENSEMBLES = 1_000_000
BATCH_SIZE = 256
# Passes over the data, in steps that are neither too few to arrive nor too many to wait for.
NUM_EPOCHS, MIN_STEPS, MAX_STEPS = 50, 3_000, 20_000


@dataclass(frozen=True)
class Choice:
    """A method, and why it suits."""

    method: Method
    why: str = ""


def choose(model: Model, data: Data) -> Choice:
    """A method for a model and data, by their sizes and by what the model asks for.

    >>> from credo import datasets, models, networks
    >>> choose(models.regression(networks.MLP([10], out=1)), datasets.gap()).why
    '32 parameters and 100 rows: small enough for exact sampling, by NUTS'
    """
    bound = model if model.rows is not None else model.bind(data)
    num_points = sum(bound.constants[name].shape[0] for name in bound.summed_inputs)
    num_rows = data.num_labelled
    choice = _by_needs(bound, num_rows) or _by_size(bound, num_rows, num_points)
    parameters, rows = _count(bound.num_parameters, "parameter"), _count(num_rows, "row")
    conditions = f", with conditions at {_count(num_points, 'point')}" if num_points else ""
    sizes = f"{parameters} and {rows}{conditions}"
    return Choice(choice.method, f"{sizes}: {choice.why}")


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
        f"up to {MAX_PARAMETERS_OF_NUTS} parameters, and {MAX_WORK_OF_NUTS:,} parameters × rows": "nuts; "
        f"parallel_tempering for a program without a network, up to {MAX_PARAMETERS_OF_TEMPERING} parameters",
        f"beyond, up to {MAX_PARAMETERS_OF_ENSEMBLES:,} parameters, with true labels summed out": "bayes_by_backprop",
        f"up to {MAX_PARAMETERS_OF_MCLMC:,} parameters, and {MAX_WORK_OF_MCLMC:,} parameters × rows": "mclmc from "
        "trained networks",
        f"up to {MAX_PARAMETERS_OF_ENSEMBLES:,} parameters": "deep_ensemble on minibatches",
        "beyond": "laplace of the last layer, on minibatches; swag for a program without a network",
    }


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
        ensemble = DeepEnsemble(_training(num_rows), members=5)
        return Choice(ensemble, "too many to sample, so an ensemble of five is trained on minibatches")
    if has_network:
        laplace = Laplace(subset="last_layer", training=_training(num_rows))
        return Choice(laplace, "too many to train more than once, so Laplace makes the last layer uncertain")
    training = _training(num_rows)
    swag = SWAG(num_steps=2 * training.num_steps, num_warmup=training.num_steps)
    return Choice(swag, "too many to train more than once, so SWAG fits a Gaussian to the end of one training")


def _training(num_rows: int) -> MAP:
    num_steps = min(max(NUM_EPOCHS * math.ceil(num_rows / BATCH_SIZE), MIN_STEPS), MAX_STEPS)
    return MAP(num_steps=num_steps, learning_rate=Cosine(1e-2, num_steps), batch_size=_batch_size(num_rows))


def _variational(num_rows: int) -> BayesByBackprop:
    # Where weights are drawn anew at each step, gradients are noisier: it takes twice the steps.
    return BayesByBackprop(num_steps=2 * _training(num_rows).num_steps, batch_size=_batch_size(num_rows))


def _batch_size(num_rows: int) -> int | None:
    return BATCH_SIZE if num_rows > 2 * BATCH_SIZE else None


def _count(num: int, what: str) -> str:
    return f"{num:,} {what}" + ("" if num == 1 else "s")
