"""Walking a traced program equation by equation, to compute some of them another way."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal
from jax.interpreters import partial_eval

# What computes the outputs of one equation from the values of its inputs.
Equation = Callable[[JaxprEqn, list[Any]], Sequence[Any]]

# Primitives that hand each number on as it is, in another place or precision.
REINDEXING = {"reshape", "transpose", "squeeze", "expand_dims", "convert_element_type", "copy", "copy_p"}
# Calls that are walked into where weights enter them; elsewhere they stay whole, with their derivatives.
CALLS = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat", "remat2"}


def trace(function: Callable[[dict[str, Any]], Any], theta: dict[str, Any]) -> tuple[ClosedJaxpr, Any]:
    """The equations that the outputs need, with one input per leaf by sorted name; the tree of the outputs."""
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(theta)
    alive, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    return ClosedJaxpr(alive, closed.consts), jax.tree.structure(shapes)


def walk(closed: Any, inputs: Iterable[Any], equation: Equation) -> list[Any]:
    """The outputs of a jaxpr, each of whose equations is computed by `equation`."""
    # The body of a `checkpoint` is not closed: it has no constants.
    jaxpr, constants = getattr(closed, "jaxpr", closed), getattr(closed, "consts", ())
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *inputs), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        with eqn.ctx.manager:
            values.update(zip(eqn.outvars, equation(eqn, [read(atom) for atom in eqn.invars]), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def as_it_is(eqn: JaxprEqn, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of an equation, computed as it says."""
    outputs = eqn.primitive.bind(*inputs, **eqn.primitive.get_bind_params(eqn.params))
    return list(outputs) if eqn.primitive.multiple_results else [outputs]


def body(eqn: JaxprEqn) -> Any:
    """The program that an equation calls."""
    return eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
