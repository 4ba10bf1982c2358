"""The marginal p(y | x, D) = Σᵢ wᵢ p(y | x, thetaᵢ), and everything it answers.

Paper, "What is a Bayesian Neural Network?": model averaging, the covariance of the prediction, class
probabilities. The laws of total expectation and total variance split the uncertainty:

    Var[y] = Var_theta(E[y | theta]) + E_theta(Var[y | theta])        epistemic + aleatoric
    H[y]   = I[y; theta]             + E_theta(H[y | theta])          the same for classes, in nats

Nothing of size draws × rows is held: each answer streams over the draws, block of rows by block of rows.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo import _activations
from credo._blocks import block_size, by_block
from credo._checks import require_at_least, require_fraction
from credo._machine import available_cores
from credo._precision import in_working_precision, working_precision
from credo.data import Scaling, as_censored, as_precisions, filled, has_target, is_observed, joined, parted
from credo.predictive import first_rows, streaming
from credo.predictive.conditional import (
    ConditionalOf,
    is_discrete,
    is_normal,
    look,
    mean_of,
    output_shape,
)
from credo.predictive.laws import by_samples, name_without_cdf, occurrences
from credo.predictive.quantiles import as_levels, bytes_per_row, quantiles
from credo.predictive.sharpened import Sharpened
from credo.typing import Key, Theta, Tree

# Activations of a block of rows should stay in a core's cache: 4,096 rows of 50 units are 0.8 MB.
MAX_ROWS_PER_BLOCK = 4096
MAX_INPUTS_PER_BLOCK = 2**20
# Whatever the network, activations of a block take at most this many bytes per worker.
MAX_ACTIVATION_BYTES = 2**28
# Fewer passes of a row through the network are done before threads have started.
PASSES_WORTH_THREADS = 4096
# Where all draws of a block are needed at once (quantiles), they may take this many bytes per worker.
BYTES_PER_BLOCK = 2**26
# A result of size draws × rows beyond this is refused: 4 GiB.
MAX_RESULT_BYTES = 2**32


class Predictive:
    """p(y | x, D) on the rows of x. Axes are always (draws, data, output…).

    >>> import credo
    >>> prediction = credo.from_normal([[0.0, 1.0], [2.0, 1.0]], 0.5)  # two draws of theta, two rows
    >>> print(prediction.mean, prediction.epistemic.round(2), prediction.aleatoric.round(2))
    [1. 1.] [2. 0.] [0.25 0.25]
    """

    def __init__(
        self, conditional_of: ConditionalOf, draws: Theta, x: np.ndarray, *, weights: np.ndarray, scaling: Scaling
    ) -> None:
        self.conditional_of = conditional_of
        self.draws = draws
        self.x = x
        self.weights = weights
        self.scaling = scaling
        self._folds: dict[streaming.Accumulator, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def num_draws(self) -> int:
        """How many functions are averaged."""
        return len(self.weights)

    def __len__(self) -> int:
        return len(self.x)

    def __getattr__(self, name: str) -> Any:
        """Only reached for what a prediction does not have: say what it has instead."""
        has = ", ".join(sorted(answer for answer in dir(type(self)) if not answer.startswith("_")))
        raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {has}")

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: answers to targets are kept by functions, which only this process knows."""
        return {**self.__dict__, "_folds": {}}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} rows, {self.num_draws:,} draws)"

    def __getitem__(self, rows: Any) -> Self:
        """The prediction on some of the rows, by slice, index or mask."""
        chosen = self.x[index_of(rows)]
        return type(self)(self.conditional_of, self.draws, chosen, weights=self.weights, scaling=self.scaling)

    def targets(self, y: Any) -> np.ndarray:
        """y as an array of one target for each row, or an error that says what does not fit."""
        targets = np.asarray(filled(y))
        targets = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
        if targets.shape != self._target_shape:
            raise ValueError(f"y has shape {targets.shape}, but the prediction is of shape {self._target_shape}")
        bare = np.flatnonzero(~has_target(targets))
        if len(bare):
            raise ValueError(
                f"{len(bare):,} rows of y have no target, the first is row {bare[0]}; leave them out, as metrics do"
            )
        return targets

    def log_prob(self, y: Any) -> np.ndarray:
        """log p(y | x, D) = log Σᵢ wᵢ p(y | x, thetaᵢ) of each row, in the user's units.

        Of a row that misses some of its outputs it is the density of the others, of a censored one log P(Y ≥ y). A row
        without a target has none, and is refused: metrics leave such rows out.
        """
        targets = self.targets(y)
        observed = is_observed(targets)
        accumulator = streaming.LOG_MEAN_EXP if observed.all() else streaming.OBSERVED_LOG_MEAN_EXP
        return self._fold_targets(accumulator, targets) - self._log_scale(targets)

    def log_prob_by_draw(self, y: Any) -> np.ndarray:
        """log p(y | x, thetaᵢ) of every draw, (draws, data), in the user's units: what leave-one-out weighs."""
        self._refuse_if_large(self.num_draws, "log densities", ())
        targets = self.targets(y)
        observed = is_observed(targets)
        function = partial(streaming.log_probs, self.conditional_of, not observed.all())
        by_row = self._by_block(function, np.asarray(self._in_model_units(targets)))
        return by_row.T - self._log_scale(targets)

    def samples(self, key: Key, num: int) -> np.ndarray:
        """`num` draws of y from the marginal, (num, data, output…): a function first, then noise around it.

        A row's noise depends on the key and on what the row holds, not on the rows beside it; equal rows differ.
        """
        require_at_least(1, num=num)
        self._refuse_if_large(num, "samples", self._target_shape[1:])
        chosen = jax.random.choice(key, self.num_draws, (num,), p=jnp.asarray(self.weights))
        keys = jax.random.split(jax.random.fold_in(key, 1), num)
        function = partial(streaming.samples, self.conditional_of, chosen, keys)
        by_row = self._by_block(function, occurrences(self.x))
        return self._to_units(np.moveaxis(by_row, 1, 0))

    @cached_property
    def functions(self) -> np.ndarray:
        """E[y | x, thetaᵢ] of every draw, (draws, data, output…): the sampled functions themselves."""
        outputs = jax.eval_shape(partial(streaming.functions, self.conditional_of), self.draws, self.x[:1]).shape[2:]
        self._refuse_if_large(self.num_draws, "functions", outputs)
        by_row = self._by_block(partial(streaming.functions, self.conditional_of))
        return self._to_units(np.moveaxis(by_row, 1, 0))

    # -- streaming -----------------------------------------------------------------------------------------

    def fold(self, accumulator: streaming.Accumulator, *by_row: np.ndarray) -> Any:
        """Stream an accumulator over the draws; leaves come back with the rows as first axis."""
        weights = jnp.asarray(self.weights, working_precision())
        return self._by_block(partial(streaming.fold, self.conditional_of, accumulator, weights), *by_row)

    def _fold_targets(self, accumulator: streaming.Accumulator, y: Any) -> np.ndarray:
        """Stream over the draws with the targets; the last answer is kept, since many metrics ask the same."""
        targets = np.asarray(self._in_model_units(self.targets(y)))
        known = self._folds.get(accumulator)
        if known is None or not np.array_equal(known[0], targets, equal_nan=targets.dtype.kind == "f"):
            known = self._folds[accumulator] = (targets, np.asarray(self.fold(accumulator, targets)))
        return known[1]

    def _by_block(self, function: Callable[..., Tree], *by_row: np.ndarray, max_rows: int | None = None) -> Tree:
        """function(draws, x, *by_row) on blocks of rows of one size, spread over the cores."""
        limit = min(max_rows or self._max_rows, self._max_rows)
        return rows_by_block(
            partial(function, self.draws), (in_working_precision(self.x), *by_row), self.num_draws, max_rows=limit
        )

    @cached_property
    def _max_rows(self) -> int:
        """The most rows of a block: fewer than usual where the network is wide."""
        usual = min(MAX_ROWS_PER_BLOCK, max(1, MAX_INPUTS_PER_BLOCK // max(math.prod(self.x.shape[1:]), 1)))
        # A layer has no more units than weights; where they share weights, as in images, the inputs are many.
        num_weights = sum(math.prod(leaf.shape[1:]) for leaf in self.draws.values())
        if working_precision().itemsize * num_weights * min(usual, len(self)) <= MAX_ACTIVATION_BYTES:
            return usual
        theta = tuple((name, leaf.shape[1:], leaf.dtype) for name, leaf in self.draws.items())
        taken = _activation_bytes_per_row(self.conditional_of, theta, self.x.shape[1:], working_precision())
        return min(usual, max(1, MAX_ACTIVATION_BYTES // max(taken, 1)))

    def _refuse_if_large(self, num: int, what: str, outputs: tuple[int, ...]) -> None:
        num_bytes = working_precision().itemsize * num * len(self) * math.prod(outputs)
        if num_bytes > MAX_RESULT_BYTES:
            raise ValueError(
                f"{what} of {num:,} draws × {len(self):,} rows would take {num_bytes / 2**30:.1f} GiB; predict fewer "
                "rows at once, or with fewer draws (num_draws=…); mean, std and interval() need no such array"
            )

    @cached_property
    def _target_shape(self) -> tuple[int, ...]:
        """The shape of y on these rows, (data, output…)."""
        return (len(self), *look(self.conditional_of, self.draws, self.x, output_shape))

    @property
    def _unbiased(self) -> float:
        """n/(n − 1) for equal weights; 1/(1 − Σ w²) in general; nothing to correct where one draw has all."""
        return 1.0 if np.max(self.weights) == 1 else float(1 / (1 - np.sum(self.weights**2)))

    def _in_model_units(self, y: np.ndarray) -> Any:
        return y

    def _to_units(self, values: np.ndarray) -> np.ndarray:
        return values

    def _log_scale(self, targets: np.ndarray) -> Any:
        return 0.0


class RegressionPredictive(Predictive):
    """The marginal of numbers: moments, intervals, and where the uncertainty comes from."""

    def _repr_html_(self) -> str:
        return first_rows.shown(self, first_rows.OF_NUMBERS)

    @cached_property
    def _moments(self) -> streaming.Moments:
        return self.fold(streaming.MOMENTS)

    @property
    def mean(self) -> np.ndarray:
        """ŷ = Σᵢ wᵢ E[y | x, thetaᵢ]: the average model, (data, output…)."""
        return self._to_units(self._moments.mean)

    @property
    def epistemic(self) -> np.ndarray:
        """Variance of E[y | x, theta] over theta: what more data would take away (1/(n − 1), as in the paper)."""
        return self._moments.spread * self._unbiased * self.scaling.y_scale**2

    @property
    def aleatoric(self) -> np.ndarray:
        """Average variance of y given theta: the noise that stays."""
        return self._moments.noise * self.scaling.y_scale**2

    @property
    def variance(self) -> np.ndarray:
        """epistemic + aleatoric."""
        return self.epistemic + self.aleatoric

    @property
    def std(self) -> np.ndarray:
        """√variance."""
        return np.sqrt(self.variance)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance between the outputs of each row, (data, outputs, outputs), noise included."""
        return self._in_units(self._covariances.spread * self._unbiased + self._covariances.noise)

    @cached_property
    def epistemic_covariance(self) -> np.ndarray:
        """Covariance of E[y | x, theta] between the outputs of each row, (data, outputs, outputs): without noise."""
        return self._in_units(self._covariances.spread * self._unbiased)

    @cached_property
    def _covariances(self) -> streaming.Moments:
        return self.fold(streaming.COVARIANCES)

    def _in_units(self, covariance: np.ndarray) -> np.ndarray:
        scale = np.broadcast_to(self.scaling.y_scale, covariance.shape[1:2])
        return covariance * np.outer(scale, scale)

    @cached_property
    def input_covariance(self) -> np.ndarray:
        """Covariance of E[y | x, theta] between the inputs, (data, data, output…), without the noise.

        It means something because a draw is one function, shared by all rows.
        """
        self._refuse_if_large(len(self), "a covariance between inputs", self._target_shape[1:])
        centred = self.functions - np.average(self.functions, axis=0, weights=self.weights)
        product = np.einsum("s,si...,sj...->ij...", self.weights, centred, centred, optimize=True)
        return product * self._unbiased

    def quantile(self, level: Any) -> np.ndarray:
        """The quantile of the marginal of each output: data axes as in `mean`; one leading axis per axis of `level`.

        Solved by bisection on the mixture's distribution function, for counts to the least whole number that reaches
        the level; on that of samples, with a warning, where y has no distribution function.
        """
        levels = as_levels(level)
        known = self.with_cdf
        max_rows = max(1, BYTES_PER_BLOCK // bytes_per_row(known.conditional_of, known.draws, self.x, self.num_draws))
        weights = jnp.asarray(self.weights, working_precision())
        function = partial(quantiles, known.conditional_of, weights, jnp.asarray(levels.ravel()))
        by_row = known._by_block(function, max_rows=max_rows)
        found = np.moveaxis(by_row, 1, 0)
        return self._to_units(found).reshape(levels.shape + found.shape[1:])

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """The central interval (lower, upper) that holds y with probability `level`."""
        require_fraction(level=level)
        lower, upper = self.quantile([(1 - level) / 2, (1 + level) / 2])
        return lower, upper

    def with_precisions(self, precisions: Any) -> "RegressionPredictive":
        """This prediction for rows measured so precisely, w of each, (data,): noise of variance σ²/w in place of σ²."""
        if type(self) is not RegressionPredictive:
            raise ValueError(f"precisions: {type(self).__name__} does not tell its noise apart; leave them out")
        law = Sharpened(self.conditional_of, self.x.shape[1:])
        x = np.column_stack([self.x.reshape(len(self), -1), as_precisions(precisions, len(self))])
        look(law, self.draws, x, output_shape)  # refuses a law without noise
        return RegressionPredictive(law, self.draws, x, weights=self.weights, scaling=self.scaling)

    @cached_property
    def is_normal(self) -> bool:
        """Whether the marginal itself is normal: one draw, with normal noise."""
        return self.num_draws == 1 and is_normal(self.conditional_of, self.draws, self.x)

    @cached_property
    def is_discrete(self) -> bool:
        """Whether y is a whole number."""
        return look(self.conditional_of, self.draws, self.x, is_discrete)

    def cdf(self, y: Any) -> np.ndarray:
        """F(y) = Σᵢ wᵢ P(Y ≤ y | x, thetaᵢ) of each output alone, (data, output…): uniform if the model is right.

        From samples, with a warning, where y has no distribution function. NaN where an output is missing.
        """
        targets = self.parted(self.targets(y))[0]
        levels, observed = self.with_cdf._fold_targets(streaming.CDF, targets), is_observed(targets)
        return levels if observed.all() else np.where(observed, levels, np.nan)

    def cdf_by_draw(self, y: Any) -> np.ndarray:
        """P(Y ≤ y | x, thetaᵢ) of every draw, (draws, data, output…), whose average over the draws is `cdf`."""
        targets = self.parted(self.targets(y))[0]
        self._refuse_if_large(self.num_draws, "distribution functions", targets.shape[1:])
        known, function = self.with_cdf, partial(streaming.cdfs, self.with_cdf.conditional_of)
        by_row = known._by_block(function, np.asarray(self._in_model_units(targets)))
        return np.moveaxis(by_row, 1, 0)

    @cached_property
    def with_cdf(self) -> "RegressionPredictive":
        """This prediction; where y has no distribution function, one from samples of y, and a warning says so."""
        name = name_without_cdf(self.conditional_of, self.draws, self.x)
        if name is None:
            return self
        sampled, draws = by_samples(self.conditional_of, self.draws, self.weights, name)
        return RegressionPredictive(sampled, draws, self.x, weights=self.weights, scaling=self.scaling)

    def targets(self, y: Any) -> np.ndarray:
        """y as an array of finite targets; of several outputs a row may miss some.

        Of one output it may have a second column, 1 where a row is censored: where y is only a lower bound.
        """
        found = np.asarray(filled(y))
        if found.ndim == 2 and found.shape[1] == 2 and len(self._target_shape) == 1:
            values, flags = found.T
            return joined(self.targets(values), as_censored(flags, values))
        targets = super().targets(y)
        if targets.dtype.kind not in "iufb" or np.any(np.isinf(targets)):
            raise ValueError(f"y must hold finite numbers, got {targets.dtype} with infinite values")
        return targets

    def _in_model_units(self, y: np.ndarray) -> Any:
        y, censored = self.parted(y.astype(np.float64))
        return joined(self.scaling.targets(y), censored)

    def parted(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets without their second column, and which are censored; None where there is no such column."""
        return parted(targets) if targets.ndim > len(self._target_shape) else (targets, None)

    def _to_units(self, values: np.ndarray) -> np.ndarray:
        return self.scaling.y_mean + values * self.scaling.y_scale

    def _log_scale(self, targets: np.ndarray) -> Any:
        values, censored = self.parted(targets)
        observed = is_observed(values) if censored is None else ~censored
        logs = np.log(np.broadcast_to(self.scaling.y_scale, self._moments.mean.shape[1:]))
        if observed.all():
            return float(np.sum(logs))
        return np.sum(np.where(observed, logs, 0.0).reshape(len(observed), -1), axis=1)


def rows_by_block(
    function: Callable[..., Tree], arrays: Sequence[np.ndarray], num_passes: int, *, max_rows: int | None = None
) -> Tree:
    """function(*arrays) on blocks of rows of one size, spread over the cores where that is worth it.

    Arguments:
        arrays: the first of them are the inputs of a network.
        num_passes: of each row through the network.
    """
    x = arrays[0]
    inputs_per_row = max(math.prod(x.shape[1:]), 1)
    limit = max_rows or min(MAX_ROWS_PER_BLOCK, max(1, MAX_INPUTS_PER_BLOCK // inputs_per_row))
    num_workers = available_cores() if len(x) * num_passes >= PASSES_WORTH_THREADS else 1
    return by_block(function, arrays, block_size(len(x), inputs_per_row, limit, num_workers), num_workers)


# A network is traced for this once, and not in each prediction with it.
@lru_cache(maxsize=16)
def _activation_bytes_per_row(
    conditional_of: ConditionalOf, theta: tuple[Any, ...], row: tuple[int, ...], precision: np.dtype
) -> int:
    draw = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape, dtype in theta}
    rows = jax.ShapeDtypeStruct((_activations.NUM_ROWS, *row), precision)
    return _activations.bytes_per_row(lambda theta, x: mean_of(conditional_of(theta, x)), draw, rows)


def index_of(rows: Any) -> Any:
    """A slice, an index or a mask as what keeps the axis of rows."""
    return rows if isinstance(rows, slice) else np.atleast_1d(rows)
