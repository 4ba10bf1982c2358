"""What the engine runs on the device: the first state of a chain, and a chunk of its steps.

Both are pure and compiled once. Steps, minibatches and the draws that are kept stay on the device until a chunk ends.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from credo._mesh import everywhere, in_shares
from credo.inference.engine.feed import Ahead
from credo.inference.engine.minibatch import minibatch, some_inputs
from credo.inference.method import Method
from credo.inference.plan import Plan
from credo.models.program import Model
from credo.typing import Array, Batch, Key, Theta, Tree

# Rows of a minibatch for each of the model's own inputs that is seen with it. A condition costs two to three times as
# much for each as the likelihood of a row does, and some twenty small operations besides: with a sixteenth of the rows
# a step is 1.1 to 1.3 times as long (`python -m benchmarks conditions`), with an eighth 1.2 to 1.4 times.
ROWS_PER_INPUT = 16


# What is run once, the compiler need not try hard at: of a network, 0.35 s in place of 0.8 with the first option alone.
_RUN_ONCE = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}


@partial(jax.jit, static_argnums=0, compiler_options=_RUN_ONCE)
def begin(
    method: Method,
    model: Model,
    key: Key,
    index: Array,
    theta: Theta | None,
    data: Batch,
    held_out: Batch | None,
) -> tuple[Key, Tree, Array | None]:
    """The key of chain number `index`, its first state, and which rows it sees if not all of them."""
    own = jax.random.fold_in(key, index)
    start_key, init_key, step_key = jax.random.split(own, 3)
    plan = method.plan()
    if theta is None and plan.start == "network":
        theta = model.initial_theta(start_key)
    elif theta is None:
        theta = {name: leaf[0] for name, leaf in model.sample_prior(start_key, 1).items()}
    rows = _rows_of(plan, jax.random.fold_in(own, 0), data)
    seen = data if rows is None else _taken(data, rows)._replace(inputs=data.inputs)
    state = method.init(init_key, model, theta, seen, held_out)
    # Weakly typed leaves would make the first chunk a program of its own.
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), state)
    return everywhere((step_key, state, rows))


@partial(jax.jit, static_argnums=(0, 2, 3, 4))
def chunk(
    method: Method,
    model: Model,
    plan: Plan,
    sizes: tuple[int, int],
    lockstep: bool,
    key: Key,
    state: Tree,
    data: Batch,
    rows: Array | None,
    span: Array,
    ahead: Ahead | None = None,
) -> tuple[Tree, Tree, Any]:
    """`num_records` times: `thin` steps, then a record of the state. Counts are traced: one program serves all.

    Steps are numbered from the start of the chain, and each takes its key and its batch from its number. In lock-step,
    key, state and rows begin with an axis of chains, and draws and infos have it after that of the records. The buffers
    have `sizes` records: of infos, and of draws, which are larger; where there are more records, draws are overwritten.
    `ahead` are the batches of these steps, where rows are in files.
    """
    first, num_records, thin = span
    max_records, max_draws = sizes
    # One gather for all steps, where all of them see the same rows.
    is_whole = plan.batch_size is None and rows is not None
    whole = _over_chains(lockstep, lambda rows: _taken(data, rows), rows) if is_whole else None

    def step_of_one(
        number: Array, key: Key, state: Tree, rows: Array | None, whole: Any, ahead: Ahead | None
    ) -> tuple[Tree, Any]:
        batch_key, step_key = jax.random.split(key)
        if ahead is not None:
            x, y = (jax.lax.dynamic_index_in_dim(one, number - first, keepdims=False) for one in ahead)
            batch = in_shares(Batch(x, y, data.total))
        else:
            batch = whole if is_whole else _batch(batch_key, number, data, rows, plan)
        batch = batch._replace(inputs=_inputs(batch_key, number, model, data, plan))
        if model.views is not None and model.views.is_random and not plan.fixed_density:
            # A key apart from those of the steps, which are numbered from zero.
            batch = batch._replace(key=jax.random.fold_in(jax.random.fold_in(step_key, 2**31), number))
        return method.step(jax.random.fold_in(step_key, number), model, state, batch)

    def step(number: Array, state: Tree) -> tuple[Tree, Any]:
        return everywhere(_over_chains(lockstep, partial(step_of_one, number), key, state, rows, whole, ahead))

    def draw(state: Tree) -> Tree:
        return _over_chains(lockstep, partial(method.draw, model), state)

    def record(index: Array, carry: tuple[Tree, Tree, Any]) -> tuple[Tree, Tree, Any]:
        state, draws, infos = carry
        begin = first + index * thin

        def repeat(offset: Array, carry: tuple[Tree, Any]) -> tuple[Tree, Any]:
            state, info = step(begin + offset, carry[0])
            return state, jax.tree.map(_newest, carry[1], info)

        state, info = jax.lax.fori_loop(0, thin, repeat, (state, _zeros(info_shape)))
        return state, _store(draws, index % max_draws, draw(state)), _store(infos, index, info)

    info_shape = jax.eval_shape(step, first, state)[1]
    draw_shape = jax.eval_shape(draw, state)
    carry = (state, _zeros(draw_shape, max_draws), _zeros(info_shape, max_records))
    return everywhere(jax.lax.fori_loop(0, num_records, record, carry))


def _rows_of(plan: Plan, key: Key, data: Batch) -> Array | None:
    """The rows that a chain sees, by number; None for all of them, without their numbers."""
    num = data.x.shape[0]
    if plan.rows == "resampled":
        return jax.random.randint(key, (num,), 0, data.num_rows)
    return jnp.arange(num) if plan.rows == "numbered" else None


def _over_chains(lockstep: bool, function: Callable[..., Tree], *arguments: Tree) -> Tree:
    return (jax.vmap(function) if lockstep else function)(*arguments)


def _batch(key: Key, number: Array, data: Batch, rows: Array | None, plan: Plan) -> Batch:
    """Batch number `number` of all data, or of the rows that a chain sees."""
    if plan.batch_size is None:
        return data
    taken = partial(minibatch, key, number, size=plan.batch_size, independent=plan.independent_batches)
    if rows is None:
        return in_shares(taken(data))
    own = taken(Batch(rows, rows, data.total, num=data.num))
    return _taken(data, own.x)._replace(num=own.num)


def _inputs(key: Key, number: Array, model: Model, data: Batch, plan: Plan) -> dict[str, Array] | None:
    """The model's own inputs: all of them, or with a minibatch some of those that it sums over."""
    if data.inputs is None or plan.batch_size is None:
        return data.inputs
    size = max(1, plan.batch_size // ROWS_PER_INPUT)
    names, independent = model.summed_inputs, plan.independent_batches
    return some_inputs(key, number, data.inputs, names, size, independent=independent)


def _taken(data: Batch, rows: Array) -> Batch:
    return in_shares(data.taken(rows)._replace(rows=rows, num=data.num))


def _newest(old: Array, new: Array) -> Array:
    """Infos of the steps between two records: flags add up, figures are those of the last step."""
    return old | new if new.dtype == jnp.bool_ else new


def _store(rows: Tree, index: Array, row: Tree) -> Tree:
    """Write one record into its buffer: a slice update, which is done in place (a scatter is not)."""
    return jax.tree.map(lambda rows, row: jax.lax.dynamic_update_index_in_dim(rows, row, index, 0), rows, row)


def _zeros(shapes: Tree, *leading: int) -> Tree:
    return jax.tree.map(lambda leaf: jnp.zeros((*leading, *leaf.shape), leaf.dtype), shapes)
