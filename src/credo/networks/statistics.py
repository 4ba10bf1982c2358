"""Batch statistics: the means and variances that batch normalisation uses outside training, taken from rows of data.

A likelihood is a function of one row at a time, so credo runs networks in evaluation mode, even in training, and their
batch statistics are constants of the model. Set them from the data before the fit. Afterwards they stay as they are,
because the weights were fitted to them. That holds for SWAG's average too: Maddox et al. (2019) must estimate them anew
only because there each batch was normalised by itself.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen, nnx

from credo._precision import working_precision
from credo.networks.functional import (
    EVALUATION,
    by_path,
    evaluation_flags,
    initial_variables,
    is_equinox,
    is_inexact,
    is_trainable_variable,
)
from credo.typing import Array, Theta, Tree

# Equinox divides its averages by 1 − momentumᶜ, c the number of batches so far: by one after this many.
MANY_BATCHES = 2**30


def with_statistics(net: Any, x: Any, params: Theta | None = None) -> Any:
    """The network with the batch statistics of the rows x: at each layer the mean and variance of what arrives there.

    All rows are one batch: each layer of batch normalisation takes its mean and variance (1/n) over all of them, and
    passes on the normalised values. Dropout is off. The object passed in is never changed.

    Arguments:
        net: a flax.nnx module, a flax.linen module or `(module, variables)`, or an equinox `(module, state)`, with
            batch normalisation layers of that framework.
        x: (n, ...), as the network sees them: standardised if the data are. A few thousand rows are enough.
        params: weights for the network, by the paths of `functional(net).params`; by default its own. Other names
            among them (a noise scale) are ignored.

    Returns:
        A network of the same kind; for a linen module without variables, `(module, variables)`.

    >>> import numpy as np
    >>> net = nnx.Sequential(nnx.BatchNorm(3, rngs=nnx.Rngs(0)), nnx.Linear(3, 1, rngs=nnx.Rngs(0)))
    >>> print(with_statistics(net, np.full((5, 3), 7.0)).layers[0].mean[...])
    [7. 7. 7.]
    """
    rows = jnp.asarray(x)
    if isinstance(net, nnx.Module) and callable(net):
        return _of_nnx(net, rows, params)
    if isinstance(net, linen.Module):
        return _of_linen(net, initial_variables(net, rows), rows, params)
    if isinstance(net, tuple) and len(net) == 2:
        if isinstance(net[0], linen.Module):
            return _of_linen(*net, rows, params)
        if is_equinox(net[0]) and is_equinox(net[1]):
            return _of_equinox(*net, rows, params)
    raise _no_statistics(net, "a layer of batch normalisation that can be reached")


def _of_nnx(net: Any, x: Array, params: Theta | None) -> Any:
    layers = [module for _, module in nnx.iter_modules(net) if isinstance(module, nnx.BatchNorm)]
    num_known = sum(len(jax.tree.leaves(nnx.state(layer, nnx.BatchStat))) for layer in layers)
    if not layers or num_known != len(jax.tree.leaves(nnx.state(net, nnx.BatchStat))):
        raise _no_statistics(net, "nnx.BatchNorm")
    estimating, result = (_with_nnx_params(nnx.clone(net), params) for _ in range(2))
    estimating.eval()
    # Without momentum a layer stores exactly what it has just seen.
    exactly = {"use_running_average": False, "momentum": 0.0, "use_fast_variance": False}
    estimating.set_attributes(nnx.BatchNorm, **exactly)
    estimating.set_attributes(nnx.Dropout, rate=0.0, raise_if_not_found=False)
    # The call may pass its flags on to the layers.
    estimating(x, **{name: not EVALUATION[name] for name in evaluation_flags(net)})
    nnx.update(result, nnx.state(estimating, nnx.BatchStat))
    return result


def _with_nnx_params(net: Any, params: Theta | None) -> Any:
    if params is not None:
        trainable = nnx.state(net, is_trainable_variable)
        nnx.replace_by_pure_dict(trainable, _replaced(nnx.to_pure_dict(trainable), params))
        nnx.update(net, trainable)
    return net


def _of_linen(module: Any, variables: Any, x: Array, params: Theta | None) -> Any:
    variables = linen.unbox(dict(variables))
    if not jax.tree.leaves(variables.get("batch_stats")):
        raise _no_statistics(module, "linen.BatchNorm")
    if params is not None:
        variables["params"] = _replaced(variables["params"], params)
    num_set = 0

    def estimate(run: Callable[..., Any], args: Any, kwargs: Any, context: Any) -> Any:
        """Set the statistics of a batch normalisation layer to those of its input, just before it runs."""
        nonlocal num_set
        layer = context.module
        if isinstance(layer, linen.BatchNorm) and context.method_name == "__call__":
            values = jnp.asarray(args[0], working_precision())
            axes = tuple(axis for axis in range(values.ndim) if axis != layer.axis % values.ndim)
            layer.put_variable("batch_stats", "mean", jnp.mean(values, axes))
            layer.put_variable("batch_stats", "var", jnp.var(values, axes))
            num_set += 2
        return run(*args, **kwargs)

    with linen.intercept_methods(estimate):
        _, found = module.apply(variables, x, **evaluation_flags(module), mutable=["batch_stats"])
    if num_set < len(jax.tree.leaves(found)):
        raise _no_statistics(module, "linen.BatchNorm")
    return module, {**variables, **found}


def _of_equinox(module: Any, state: Any, x: Array, params: Theta | None) -> Any:
    import equinox as eqx

    def is_norm(node: Any) -> bool:
        return isinstance(node, eqx.nn.BatchNorm)

    def layers(tree: Any) -> list[Any]:
        return [node for node in jax.tree.leaves(tree, is_leaf=is_norm) if is_norm(node)]

    axes = {layer.axis_name for layer in layers(module)}
    if len(axes) != 1:
        raise _no_statistics(module, "eqx.nn.BatchNorm over one named axis")
    if params is not None:
        trainable, rest = eqx.partition(module, eqx.is_inexact_array)
        module = eqx.combine(_replaced(trainable, params), rest)
    estimating = eqx.tree_at(
        lambda tree: [layer.inference for layer in layers(tree)],
        eqx.nn.inference_mode(module),
        [False] * len(layers(module)),
    )
    # A state may not be used again once it has been written to, so a copy is written to.
    state = jax.tree.map(lambda leaf: leaf, state)
    for layer in layers(module):
        state = _forgotten(layer, state)
    flags = evaluation_flags(module) | {name: None for name in inspect.signature(module).parameters if name == "key"}
    run = jax.vmap(lambda row, state: estimating(row, state, **flags), (0, None), (0, None), axis_name=axes.pop())
    _, state = run(x, state)
    for layer in layers(module):
        if not _has_seen_one(layer, state):
            raise ValueError(
                f"net: {type(module).__name__} did not pass its rows through each batch normalisation layer exactly "
                "once in training mode; a flag `inference` in its call must not reach them"
            )
        state = _settled(layer, state)
    return module, state


def _forgotten(layer: Any, state: Any) -> Any:
    """The state as if an equinox layer had not seen a batch yet."""
    if layer.mode == "ema":
        return state.set(layer.ema_first_time_index, jnp.array(True))
    nothing = jax.tree.map(jnp.zeros_like, state.get(layer.batch_state_index))
    return state.set(layer.batch_state_index, nothing).set(layer.batch_counter, jnp.array(0))


def _has_seen_one(layer: Any, state: Any) -> bool:
    return not state.get(layer.ema_first_time_index) if layer.mode == "ema" else state.get(layer.batch_counter) == 1


def _settled(layer: Any, state: Any) -> Any:
    """The state after its only batch, as if there had been many like it."""
    if layer.mode == "ema":
        return state
    found = jax.tree.map(lambda leaf: leaf / (1 - layer.momentum), state.get(layer.batch_state_index))
    return state.set(layer.batch_state_index, found).set(layer.batch_counter, jnp.array(MANY_BATCHES))


def _replaced(tree: Tree, params: Theta) -> Tree:
    """The tree with its trainable arrays taken from `params`, by path."""
    named, structure = by_path(tree)
    trainable = {name: leaf for name, leaf in named if is_inexact(leaf)}
    for name, leaf in trainable.items():
        if name not in params or jnp.shape(params[name]) != leaf.shape:
            got = f"of shape {jnp.shape(params[name])}" if name in params else "missing"
            raise ValueError(
                f"params: {name!r} is {got}, and the network has one of shape {leaf.shape}; pass all the weights that "
                "functional(net).params names"
            )
    values = [jnp.asarray(params[name], leaf.dtype) if name in trainable else leaf for name, leaf in named]
    return jax.tree_util.tree_unflatten(structure, values)


def _no_statistics(net: Any, layers: str) -> ValueError:
    name = "the pair" if isinstance(net, tuple) else type(net).__name__
    return ValueError(
        f"net: {name} has no batch statistics that can be set, or some that are not those of {layers}; use it as it is"
    )
