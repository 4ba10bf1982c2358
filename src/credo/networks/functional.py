"""The one place that splits a network into its structure and its parameters."""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

from credo._concurrency import require_own_jax
from credo._precision import in_working_precision
from credo.networks.fan_in import fan_ins
from credo.networks.masks import open_nnx, opened_equinox, opened_linen, with_masks
from credo.networks.zoo import REGISTRY, ZooNetwork
from credo.typing import Array, Theta, Tree

# What the frameworks call "do not drop units, use the stored batch statistics", and the value that means it.
EVALUATION = {
    "train": False,
    "training": False,
    "is_training": False,
    "deterministic": True,
    "use_running_average": True,
    "inference": True,
}
_ACCEPTED = (
    "a flax.nnx module, a flax.linen module or (module, variables), an equinox module or (module, state), "
    "a torch.nn.Module, or (apply, params) with apply(params, x) -> output"
)


@dataclass(frozen=True, eq=False)
class Network:
    """A network as a pure function and its parameters: the functional model of the paper's section on design.

    Arguments:
        apply: `apply(params, x) -> output`, pure and in evaluation mode; x has shape (n, ...).
        params: the network's own initial values, trainable arrays only, by dotted path ("hidden.0.kernel").
        fan_in: for each path the number of inputs that feed one unit; for a bias or scale, that of its layer.
        config: what `from_config` needs to make the network again; None for a network from outside the zoo.

    >>> import jax.numpy as jnp
    >>> import credo
    >>> network = credo.networks.functional(credo.networks.MLP([50], out=1, inputs=3))
    >>> network.apply(network.params, jnp.ones((5, 3))).shape, sorted(network.params)
    ((5, 1), ['head.bias', 'head.kernel', 'hidden.0.bias', 'hidden.0.kernel'])
    """

    apply: Callable[[Theta, Array], Array]
    params: Theta = field(repr=False)
    fan_in: dict[str, int]
    config: dict[str, Any] | None = None


def functional(net: Any, x: Any = None) -> Network:
    """Split a network into a pure function and named parameters; the object passed in is never changed.

    State that is not trained (batch statistics, random streams, integer arrays) is frozen, and layers that behave
    differently in training (dropout, batch normalisation) are put in evaluation mode: see `with_statistics` for batch
    statistics that fit the data, and `credo.MCDropout` for dropout that stays on. A parameter that two nnx layers
    share appears once.

    Arguments:
        net: a flax.nnx module, a flax.linen module or `(module, variables)`, an equinox module (it acts on
            one example, so it is mapped over the rows of x) or `(module, state)`, a `torch.nn.Module` (of real
            numbers; see `from_torch` for others), a pair `(apply, params)` with `apply(params, x) -> output` and any
            tree of arrays, or a `Network`, returned as it is.
        x: an example batch (n, ...), an array or a `jax.ShapeDtypeStruct`, of which only shape and dtype are used;
            needed for networks that do not know their input shape yet.

    >>> from credo.networks import MLP, functional
    >>> network = functional(MLP([50], 1, inputs=3))
    >>> network.params["hidden.0.kernel"].shape, network.fan_in["head.bias"]
    ((3, 50), 50)
    """
    require_own_jax()
    # Even inside a trace the initial values are constants: no tracer leaks into `params`.
    with jax.ensure_compile_time_eval():
        return _adapt(net, x)


def network_config(net: Any) -> dict[str, Any] | None:
    """What `from_config` needs to make a network again, as far as it is known before the data; else None.

    >>> from credo.networks import MLP, network_config
    >>> network_config(MLP([50], 1))["features"]
    [50]
    """
    return net.config if isinstance(net, Network) or type(net) in REGISTRY.values() else None


def _adapt(net: Any, x: Any) -> Network:
    if isinstance(net, Network):
        return net
    if isinstance(net, ZooNetwork) and not net.is_built:
        return _from_nnx(net.build(_example(net, x).shape))
    if isinstance(net, nnx.Module) and callable(net):
        return _from_nnx(net)
    if isinstance(net, linen.Module):
        return _from_linen(net, initial_variables(net, _example(net, x)))
    if is_equinox(net) and callable(net):
        return _from_equinox(net)
    if is_of("torch", net) and callable(net):
        from credo.networks.torch.importing import imported

        return imported(net, _example(net, x))
    if isinstance(net, tuple) and len(net) == 2:
        first, second = net
        if isinstance(first, linen.Module):
            return _from_linen(first, second)
        if is_equinox(first) and is_equinox(second):
            return _from_equinox(first, second)
        if callable(first) and not isinstance(first, nnx.Module) and not is_equinox(first):
            return _from_pair(first, second)
    got = "a class: make an instance of it" if isinstance(net, type) else f"of type {type(net).__qualname__}"
    raise TypeError(f"net is {got}, which is not a network that credo can split; pass {_ACCEPTED}.")


def _from_nnx(net: Any) -> Network:
    _warn_if_initial(net, nnx.state(net, nnx.BatchStat))
    copy = nnx.clone(net)
    copy.eval()
    open_nnx(copy)
    structure, trainable, frozen = nnx.split(copy, is_trainable_variable, ...)
    # Bare arrays: `merge` reuses the Variables that it is given, and their state would leak from trace to trace.
    frozen = nnx.to_pure_dict(frozen)
    flags = evaluation_flags(net)

    def call(params: Tree, x: Array) -> Array:
        return nnx.merge(structure, params, frozen)(x, **flags)

    return as_network(_name(net), call, nnx.to_pure_dict(trainable), config=network_config(net))


def is_trainable_variable(_: Any, value: Any) -> bool:
    return isinstance(value, nnx.Param) and is_inexact(value)


def _from_linen(module: Any, variables: Any) -> Network:
    if "params" not in variables:
        raise ValueError(
            f"the variables of {type(module).__name__} hold {sorted(variables)}, but no collection 'params'; "
            "pass the whole dictionary: (module, module.init(key, x))"
        )
    variables = linen.unbox(dict(variables))
    _warn_if_initial(module, variables.get("batch_stats"))
    flags = evaluation_flags(module)

    def call(params: Tree, x: Array) -> Array:
        with opened_linen():
            return module.apply({**variables, "params": params}, x, **flags)

    return as_network(_name(module), call, variables["params"])


def initial_variables(module: Any, x: Any) -> Any:
    one_row = jnp.zeros((1, *x.shape[1:]), x.dtype)
    variables = module.init(jax.random.key(0), one_row, **evaluation_flags(module))
    return {"params": {}, **variables}


def is_equinox(value: Any) -> bool:
    return is_of("equinox", value)


def is_of(package: str, value: Any) -> bool:
    """Whether an object is of a class of that package, or of one that is derived from such a class."""
    # By name, so that an optional package is not imported just to find out that an object is not its own.
    return any(base.__module__.partition(".")[0] == package for base in type(value).__mro__)


def _from_equinox(module: Any, state: Any = None) -> Network:
    import equinox as eqx

    def is_state(leaf: Any) -> bool:
        return isinstance(leaf, eqx.nn.StateIndex)

    if state is None and any(map(is_state, jax.tree.leaves(module, is_leaf=is_state))):
        raise ValueError(
            f"{type(module).__name__} has layers with state (such as BatchNorm): pass the pair "
            "(module, state) that eqx.nn.make_with_state returns."
        )
    _warn_if_initial(module, state)
    flags = evaluation_flags(module)
    if "key" in inspect.signature(module).parameters:
        flags["key"] = None  # in inference mode nothing draws from it
    evaluation = opened_equinox(eqx.nn.inference_mode(module))
    trainable, frozen = eqx.partition(evaluation, eqx.is_inexact_array)

    def call(params: Tree, x: Array) -> Array:
        network = eqx.combine(params, frozen)
        if state is None:
            return jax.vmap(lambda row: network(row, **flags))(x)
        return jax.vmap(lambda row: network(row, state, **flags)[0])(x)

    return as_network(_name(module), call, trainable, outputs_first=True)


def _from_pair(apply: Callable[[Tree, Array], Array], params: Tree) -> Network:
    arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, params)
    return as_network(_name(apply), apply, arrays)


def as_network(
    name: str,
    call: Callable[[Tree, Array], Array],
    tree: Tree,
    *,
    config: dict[str, Any] | None = None,
    outputs_first: bool = False,
) -> Network:
    """The network `call(tree, x)`, whose parameters are the floating-point arrays of the tree."""
    named, structure = by_path(tree)
    # Copies: the caller may write into a NumPy array later, or donate the buffers of a module in training.
    params = in_working_precision({path: np.array(leaf) for path, leaf in named if is_inexact(leaf)})
    if not params:
        raise ValueError(f"{name} has no trainable parameters: none of its arrays is of a floating type")
    if len(params) < sum(is_inexact(leaf) for _, leaf in named):
        raise ValueError(f"two parameters of {name} have the same path: take the dots out of its keys")

    def apply(theta: Theta, x: Array) -> Array:
        values = [theta[path] if path in params else leaf for path, leaf in named]
        # Convolutions refuse numbers of mixed precision, and a network may give its outputs a precision of their own.
        values, x = in_working_precision((values, x))
        return in_working_precision(call(jax.tree_util.tree_unflatten(structure, values), x))

    return Network(with_masks(apply), params, fan_ins(params, outputs_first=outputs_first), config)


def by_path(tree: Tree) -> tuple[list[tuple[str, Any]], Any]:
    """The leaves of a tree, each with its dotted path, and its structure."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    # A tree that is a single array has an empty path.
    named = [(jax.tree_util.keystr(path, simple=True, separator=".") or "params", leaf) for path, leaf in leaves]
    return named, structure


def _name(net: Any) -> str:
    return getattr(net, "__name__", type(net).__name__)


def is_inexact(value: Any) -> bool:
    return hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.inexact)


def _warn_if_initial(net: Any, statistics: Tree) -> None:
    """Warn if batch statistics are still those a network is made with: its batch normalisation does nothing then."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(statistics) if is_inexact(leaf)]
    if arrays and all(np.all(array == 0) or np.all(array == 1) for array in arrays):
        warnings.warn(
            f"the batch statistics of {_name(net)} still have their initial values (mean 0, variance 1). They are "
            "constants of the model, so its batch normalisation does nothing; set them from the data, with "
            "credo.networks.with_statistics(net, x)",
            stacklevel=2,
        )


def evaluation_flags(net: Any) -> dict[str, Any]:
    """The arguments that put a call of the network in evaluation mode, if its signature has any."""
    return {name: EVALUATION[name] for name in inspect.signature(net).parameters if name in EVALUATION}


def _example(net: Any, x: Any) -> Any:
    if x is None:
        raise ValueError(
            f"{type(net).__name__} does not know the shape of its input yet: pass an example batch, "
            "functional(net, x); only the shape and the dtype of x are used."
        )
    return x if hasattr(x, "shape") and hasattr(x, "dtype") else jnp.asarray(x)
