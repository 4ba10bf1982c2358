"""Laplace: a Gaussian around a trained network, as wide as the curvature there allows.

Paper, "Variational Inference based on SGD dynamic" (the Laplace part). At the mode theta* of the posterior its
logarithm is flat, and to second order

    p(theta | D) ≈ N(theta*, (H + P)⁻¹)

with H the curvature of the log likelihood (`curvature`) and P that of the log prior. It needs no training of its own:
any trained network has one. Predictions linearise the network around theta* (`credo.posterior.linearised`).

MacKay, "A practical Bayesian framework for backpropagation networks" (1992); Ritter, Botev and Barber, "A scalable
Laplace approximation for neural networks" (2018); Daxberger et al., "Laplace redux" (2021).
"""

import time
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo._checks import require_at_least, require_one_of
from credo._precision import working_precision
from credo._text import nearest
from credo.covariance import Root
from credo.covariance.layout import Layout
from credo.data import as_data
from credo.diagnostics.laplace import LaplaceEvidence
from credo.inference.engine.stages import FitStages
from credo.inference.fitting_memory import refuse_if_too_large
from credo.inference.guide import Guide, Reach
from credo.inference.laplace.curvature import Curvature, Structure, check_kronecker, curvature_of
from credo.inference.laplace.evidence import log_evidence_of, log_prior_of_latents, prior_precision, tuned_xi
from credo.inference.laplace.known_before import check_before, known_before, merged
from credo.inference.laplace.row_sums import CurvatureKind, Problem, flattened, gradient
from credo.inference.method import Method, Wrapper
from credo.inference.needs import Needs
from credo.inference.outcome import Outcome, Stages
from credo.inference.plan import Plan
from credo.inference.point.map import MAP, MLE
from credo.inference.trained import trained_theta
from credo.models.program import Model
from credo.posterior import Draws, Gaussian, Provenance
from credo.posterior.believed import Believed
from credo.posterior.linear_predictive import Prediction
from credo.typing import Array, Batch, Key, Theta, Tree

# A noise scale, or what else a trained network does not come with, is found in so many steps with its weights fixed.
NUM_COMPLETING_STEPS = 1000
COMPLETING_ROWS = 512


@dataclass(frozen=True)
class Laplace(Wrapper):
    """A Gaussian at the mode, N(theta*, (H + P)⁻¹): `MAP` first, then one pass over the data.

    A network that is trained already needs only the pass: `credo.Laplace().from_trained(model, data)`. Prior scales of
    `credo.priors.learned`, and a noise that the model leaves open (noise="tuned"), are tuned by the evidence.

    Arguments:
        structure: of H: "full" (n² numbers), "block" (a full block per layer), "kronecker" (two factors per layer,
            with exact small blocks for normalisation and other vectors), "diagonal", or "low_rank".
        subset: what is uncertain: "all", "last_layer" (and what is not the network's, such as a noise scale), or paths
            with `*` wildcards; the rest stays at theta*.
        curvature: "ggn" (generalised Gauss–Newton, the Fisher information), "fisher" (empirical, from the gradients at
            the data) or "hessian" (for "full" and "low_rank").
        prediction: "linear" (the linearised network: closed form for numbers, draws of the outputs for classes),
            "probit" (classes in closed form, without the parts of their uncertainty), or "draws" of theta through the
            network itself.
        training: how theta* is found, a `MAP`.
        rank: of "low_rank".
        tuning_rounds: how often xi is tuned: 1 after training; more train on in between; 0 leaves xi as it starts.

    >>> Laplace(structure="diagonal", subset="last_layer").structure
    'diagonal'
    """

    guide: ClassVar[Guide] = Guide(
        exact="approximate",
        benefits="a Gaussian for any trained network in one pass; gives the evidence, and tunes prior and noise by it",
        limits="around one mode, and only as good as the curvature there",
        use_cases="trained networks; choosing priors and architectures",
        stores="the mode and a covariance of the chosen structure",
        costs="training to the mode, then one pass for the curvature; predictions need Jacobians",
        reaches=Reach(0.1, (0.95, 1.05)),
        if_too_large="take structure='kronecker' or 'diagonal', or subset='last_layer'",
    )

    structure: Structure = "kronecker"
    subset: str | tuple[str, ...] = "all"
    curvature: CurvatureKind = "ggn"
    prediction: Prediction = "linear"
    training: MAP = field(default_factory=MAP)
    rank: int = 50
    tuning_rounds: int = 1

    def __post_init__(self) -> None:
        require_one_of(get_args(Structure), structure=self.structure)
        require_one_of(get_args(CurvatureKind), curvature=self.curvature)
        require_one_of(get_args(Prediction), prediction=self.prediction)
        if not isinstance(self.training, MAP) or isinstance(self.training, MLE):
            raise ValueError(
                f"training must find the mode of the posterior, as credo.MAP() does, got {self.training!r}"
            )
        if self.curvature == "hessian" and self.structure not in ("full", "low_rank"):
            raise ValueError("curvature='hessian' takes structure='full' or 'low_rank', or take curvature='ggn'")
        require_at_least(1, rank=self.rank)
        require_at_least(0, tuning_rounds=self.tuning_rounds)
        if not isinstance(self.subset, str):
            object.__setattr__(self, "subset", tuple(self.subset))

    @property
    def inner(self) -> Method:
        return self.training

    def plan(self) -> Plan:
        return replace(self.training.plan(), learns_xi=True, leaves_draws=False, fixed_density=True, sees_all_rows=True)

    @property
    def words(self) -> Guide:
        return replace(self.guide, if_non_finite=self.training.words.if_non_finite)

    def stores(self, model: Model) -> Needs:
        names = self.names(model, _some_theta(model))
        num = sum(model.template[name].size for name in names)
        # Curvature and root, and a copy of one of them while it is decomposed.
        numbers = {"full": 3 * num**2, "diagonal": 3 * num, "low_rank": 3 * num * (self.rank + 1)}
        if self.structure not in numbers:
            numbers[self.structure] = 3 * _numbers_in_blocks(model, names, self.structure)
        what = f"a {self.structure} covariance of {num:,} of them"
        return Needs(
            model.num_parameters,
            what,
            working_precision().itemsize * (numbers[self.structure] + 4 * model.num_parameters),
        )

    def init(self, key: Key, model: Model, theta: Theta, data: Batch, held_out: Batch | None) -> Tree:
        if isinstance(model, Believed):
            check_before(model, self.structure, self.subset)
        return super().init(key, model, theta, data, held_out)

    def posterior(self, model: Model, outcome: Outcome) -> Gaussian:
        """The Gaussian around the mode that the training has found."""
        mode = self.training.posterior(model, outcome)
        mode = replace(mode, provenance=outcome.provenance(self.to_config()))
        return outcome.concluded("curvature", mode, lambda stages: self._gaussian(mode, outcome, stages))

    def _gaussian(self, mode: Draws, outcome: Outcome, stages: Stages) -> Gaussian:
        theta = {name: leaf[0, -1] for name, leaf in mode.theta.items()}
        model, theta, root, found = self.around(mode.model, theta, outcome.data, seed=outcome.seed, stages=stages)
        return Gaussian(
            model, theta, root, mode.provenance, trace=mode.trace, evidence=found, prediction=self.prediction
        )

    def from_trained(self, model: Model, data: Any, params: Any = None, *, seed: int = 0) -> "Gaussian":
        """The Gaussian around a network that has been trained already.

        Arguments:
            model: of `credo.models`, around the trained network.
            data: what it was trained on, `credo.Data` or (x, y).
            params: the trained weights, anything that `credo.networks.load_params` takes; the network's own by
                default. What they lack (a noise scale) is found with the weights fixed.

        >>> from credo import datasets, models, networks
        >>> model = models.regression(networks.MLP([10], out=1), noise=0.1)
        >>> Laplace().from_trained(model, datasets.gap()).root.__class__.__name__
        'Kronecker'
        """
        train = as_data(data)
        bound = model.bind(train)
        refuse_if_too_large([(self, bound)], train)
        batch = train.batch()
        began = time.perf_counter()
        theta = _completed(bound, *trained_theta(bound, params), batch, seed)
        # Tuned, but not trained on: the weights are those that were given.
        once = replace(self, tuning_rounds=min(self.tuning_rounds, 1))
        bound, theta, root, found = once.around(bound, theta, batch, seed=seed)
        provenance = Provenance(self.to_config(), seed, time.perf_counter() - began, train.size)
        gaussian = Gaussian(bound, theta, root, provenance, evidence=found, prediction=self.prediction)
        return gaussian.placed(train)

    def around(
        self, model: Model, theta: Theta, data: Batch, *, seed: int = 0, stages: Stages | None = None
    ) -> tuple[Model, Theta, Root, LaplaceEvidence]:
        """The model with xi tuned, theta*, √Σ, and what they say: the evidence, and how far theta* is from a mode.

        Between two rounds of tuning the network is trained on, where there are stages to run it in.
        """
        names = self.names(model, theta)
        xi, rows = model.initial_xi(), data if stages is None else stages.shared(data)
        for round_number in range(self.tuning_rounds if xi else 0):
            if round_number > 0 and stages is not None:
                theta = _run(stages, self.training, model.freeze(xi), theta, data, seed)
            problem = self._problem(model, {**theta, **xi}, names)
            xi = tuned_xi(problem, theta, xi, rows, self.structure, rank=self.rank)
        model = model.freeze(xi) if xi else model
        problem = self._problem(model, theta, names)
        precision, curvature = prior_precision(model, theta, names), self._curvature(problem, theta, rows, seed)
        if isinstance(model, Believed) and self.structure != "full":
            precision, before = known_before(model, theta, self.structure)
            curvature = curvature if before is None else merged(curvature, before)
        root, half_log_det, damping = _damped_root(curvature, precision)
        found = LaplaceEvidence(
            log_evidence=float(log_evidence_of(problem, theta, rows, half_log_det)),
            newton_gain=_newton_gain(root, gradient(problem, theta, rows)),
            damping=float(damping),
            num_effective=_determined(root, precision),
        )
        return model, theta, jax.tree.map(np.asarray, root), found

    def names(self, model: Model, theta: Theta) -> tuple[str, ...]:
        """The arrays of theta that are uncertain."""
        every = tuple(model.template)
        if self.subset == "all":
            return every
        if self.subset == "last_layer":
            layers = Problem.of(model, {**theta, **model.initial_xi()}, every, self.curvature).layers
            if not layers:
                raise ValueError(
                    "subset='last_layer': the model has no dense layer or convolution that credo can see; name the "
                    f"arrays, subset=('head.*',); they are {', '.join(every)}"
                )
            own = set() if model.initial is None else set(jax.eval_shape(model.initial, model.example().x))
            return tuple(name for name in every if name in layers[-1].names or name not in own)
        patterns = (self.subset,) if isinstance(self.subset, str) else self.subset
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in every):
                raise ValueError(
                    f"subset: {pattern!r} matches no parameter{nearest(pattern, every)}; they are {', '.join(every)}"
                )
        return tuple(name for name in every if any(fnmatchcase(name, pattern) for pattern in patterns))

    def _problem(self, model: Model, theta: Theta, names: tuple[str, ...]) -> Problem:
        """Checked: what the structure cannot hold is refused by its name."""
        problem = Problem.of(model, theta, names, self.curvature)
        if isinstance(model, Believed):
            return problem
        if self.structure == "kronecker":
            check_kronecker(problem)
            precision = prior_precision(model, theta, names)
            for layer in problem.layers:
                matrix = np.asarray(layer.matrix(precision))
                if not np.allclose(matrix, matrix[:, :1], rtol=1e-3):
                    raise ValueError(
                        f"structure='kronecker' takes one prior scale for each array, or for each input of a layer, "
                        f"and those of {layer.kernel!r} differ from weight to weight; take structure='diagonal'"
                    )
        coupled = sorted(_coupled(model).intersection(names))
        if coupled and (self.structure != "full" or model.xi_template):
            why = "depends on other latents" if coupled[0] in model.hierarchical_sites else "correlates its entries"
            raise ValueError(
                f"the prior of {coupled[0]!r} {why}, so its precision is no diagonal; take structure='full', without "
                "parameters to tune"
            )
        return problem

    def _curvature(self, problem: Problem, theta: Theta, data: Batch, seed: int) -> Curvature:
        found = curvature_of(problem, theta, data, self.structure, rank=self.rank, seed=seed)
        if self.structure == "full" and _coupled(problem.model).intersection(problem.names):
            # What the prior couples beyond its diagonal goes where the data's couplings are.
            return found.plus(_prior_couplings(problem, theta))
        return found


def _coupled(model: Model) -> frozenset[str]:
    """The latents whose prior is not independent for every entry."""
    return model.hierarchical_sites | model.coupled_sites


def _run(stages: Stages, method: MAP, model: Model, theta: Theta, data: Batch, seed: int) -> Theta:
    """Where a climb from theta ends."""
    starts = {name: jnp.asarray(leaf)[None] for name, leaf in theta.items()}
    plan = replace(method.plan(), fixed_density=True)
    outcome = stages.run(method, model, data, seed=seed, starts=starts, plan=plan)
    return {name: leaf[0, -1] for name, leaf in method.posterior(model, outcome).theta.items()}


def _damped_root(curvature: Curvature, precision: Theta) -> tuple[Root, Array, Array]:
    """√Σ and ½ log det Σ; where rounding has left H + P without a root, of a damped H, and by how much."""
    root, half_log_det, damping, variance = _root_and_more(curvature, precision)
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((root, variance))):
        raise ArithmeticError(
            "the curvature at theta is not finite; check that the network was trained, and the scale of the data"
        )
    return root, half_log_det, damping


@jax.jit
def _root_and_more(curvature: Curvature, precision: Theta) -> tuple[Root, Array, Array, Theta]:
    root, damping = curvature.damped_root(precision)
    return root, root.half_log_det(), damping, root.variance()


@jax.jit
def _along(root: Root, slope: Theta) -> Theta:
    return root.transposed(slope)


def _newton_gain(root: Root, slope: Theta) -> float:
    """½ gᵀ Σ g: what one Newton step would add to the log joint density. At a mode, nothing."""
    along = _along(root, slope)
    return 0.5 * float(sum(np.sum(np.square(leaf)) for leaf in along.values()))


def _determined(root: Root, precision: Theta) -> float:
    """γ = Σ (1 − Pⱼ Σⱼⱼ): how many directions the data determine, and not the prior alone (MacKay, 1992)."""
    variance = root.variance()
    return float(sum(np.sum(1 - np.asarray(precision[name]) * np.asarray(leaf)) for name, leaf in variance.items()))


def _prior_couplings(problem: Problem, theta: Theta) -> Array:
    """−∇² log p(theta) of the uncertain arrays, without what `prior_precision` has of it."""
    flat, unravel = flattened(theta, problem.names)

    def log_prior(vector: Array) -> Array:
        return log_prior_of_latents(problem.model, {**theta, **unravel(vector)})

    precision = prior_precision(problem.model, theta, problem.names)
    diagonal = jnp.concatenate([precision[name].ravel() for name in problem.names])
    return -jax.hessian(log_prior)(flat) - jnp.diag(diagonal)


def _numbers_in_blocks(model: Model, names: tuple[str, ...], structure: Structure) -> int:
    """What the blocks or the factors of each layer hold; a Kronecker factor is as wide as an axis of its kernel."""
    shapes = {name: model.template[name].shape for name in names}
    if structure == "block":
        sizes = Layout.by_layer({name: model.template[name] for name in names}).sizes()
        return sum(size**2 for size in sizes.values())
    products = [(int(np.prod(shape[:-1])), shape[-1]) for shape in shapes.values() if len(shape) >= 2]
    vectors = [int(np.prod(shape)) for shape in shapes.values() if len(shape) < 2]
    return sum(rows**2 + columns**2 for rows, columns in products) + sum(vectors)


def _some_theta(model: Model) -> Theta:
    return {name: jnp.zeros(leaf.shape) for name, leaf in model.template.items()}


def _completed(model: Model, theta: Theta, unknown: frozenset[str], data: Batch, seed: int) -> Theta:
    """theta with what the trained network does not come with at its mode, the weights being fixed."""
    if not unknown:
        return theta
    labels = {name: "free" if name in unknown else "fixed" for name in theta}
    optimizer = optax.multi_transform({"fixed": optax.set_to_zero(), "free": optax.adam(0.02)}, labels)
    batch_size = min(data.x.shape[0], COMPLETING_ROWS)
    method = MAP(num_steps=NUM_COMPLETING_STEPS, optimizer=optimizer, batch_size=batch_size)
    return _run(FitStages(progress=False), method, model, theta, data, seed)
