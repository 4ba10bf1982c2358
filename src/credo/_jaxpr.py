"""Walking a traced program equation by equation, to compute some of them another way."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jax.extend.core import JaxprEqn, Literal

# What computes the outputs of one equation from the values of its inputs.
Equation = Callable[[JaxprEqn, list[Any]], Sequence[Any]]


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
