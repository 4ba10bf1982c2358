"""What is believed before the data, as a precision that the curvature of the data is added to.

    Σ⁻¹ = H + λ (H₀ + P₀) + (1 − λ) P

with H₀ + P₀ the precision of the belief, in the structure that it has, P that of the model's own prior, and λ the share
that is kept. Diagonals, blocks and full matrices add up as they are; a sum of two Kronecker products, or of low ranks,
is brought back to one. Ritter, Botev and Barber, "Online structured Laplace approximations" (2018).
"""

from typing import Any

import jax
import jax.numpy as jnp

from credo.covariance import Blocks, Diagonal, Joined, Kronecker, Shrunk
from credo.covariance.layout import Layout
from credo.inference.laplace.curvature import (
    BlockCurvature,
    Curvature,
    KroneckerCurvature,
    LowRankCurvature,
    Structure,
)
from credo.inference.laplace.evidence import prior_precision
from credo.posterior.believed import Believed
from credo.typing import Array, Theta


def check_before(model: Believed, structure: Structure, names: tuple[str, ...]) -> None:
    """Refuse a belief that is not in the structure, which could not hold it, and a subset that leaves some out."""
    certain = [name for name in model.template if name not in names]
    if certain:
        raise ValueError(
            f"subset leaves {', '.join(certain)} for certain, of which something is believed already; take subset='all'"
        )
    spread = model.belief.spread
    if structure == "full" or (isinstance(spread, Diagonal) and structure != "kronecker"):
        return
    fits = {
        "diagonal": isinstance(spread, Diagonal),
        "block": isinstance(spread, Blocks) and spread.layout == Layout.by_layer(model.template),
        "kronecker": isinstance(_kronecker(spread), Kronecker),
        "low_rank": isinstance(spread, Shrunk),
    }
    if not fits[structure]:
        raise ValueError(
            f"structure={structure!r} cannot hold what is believed already, a {type(spread).__name__}; go on with the "
            "structure that it was learned with, or with structure='full'"
        )


def known_before(model: Believed, theta: Theta, structure: Structure) -> tuple[Theta, Curvature | None]:
    """λ P₀ + (1 − λ) P, a diagonal, and λ H₀, in a structure that `check_before` has passed."""
    precision, before = _parts(model.belief.spread)
    if not model.forgets:
        return precision, before
    own = prior_precision(model.original, theta, tuple(model.template))
    shared = {name: model.kept * leaf + (1 - model.kept) * own[name] for name, leaf in precision.items()}
    return shared, None if before is None else before.times(model.kept)


@jax.jit
def merged(first: Curvature, second: Curvature) -> Curvature:
    """The sum of two curvatures of one structure, or what the structure can hold of it."""
    return first.merged(second)


@jax.jit
def _parts(root: Any) -> tuple[Theta, Curvature | None]:
    """P₀ and H₀ of Σ⁻¹ = H₀ + P₀."""
    if isinstance(root, Diagonal):
        return _inverse_squares(root.scale), None
    if isinstance(root, Shrunk):
        columns = {name: leaf / root.scale[name][..., None] for name, leaf in root.factor.items()}
        return _inverse_squares(root.scale), LowRankCurvature(columns, jnp.ones(root.rank))
    if isinstance(root, Blocks):
        return {name: jnp.zeros(shape) for name, shape in root.shapes().items()}, _of_blocks(root)
    kronecker: Any = _kronecker(root)
    precision: Theta = {}
    for layer in kronecker.layers:
        rows = kronecker.precision[layer.kernel]
        precision |= layer.arrays(jnp.broadcast_to(rows[:, None], (len(rows), layer.num_out)))
    rest = root.parts[1] if isinstance(root, Joined) else Blocks({}, Layout(()))
    precision |= {name: jnp.zeros(shape) for name, shape in rest.shapes().items()}
    return precision, KroneckerCurvature(*_factors(kronecker), _of_blocks(rest), {}, kronecker.layers)


def _kronecker(root: Any) -> Any:
    """The part over the layers, where a root has one over other arrays too."""
    return root.parts[0] if isinstance(root, Joined) else root


def _factors(root: Kronecker) -> tuple[Theta, Theta]:
    """A and G of each layer."""
    inputs = {
        name: _composed(jnp.sqrt(root.precision[name])[:, None] * basis, root.input_values[name])
        for name, basis in root.input_basis.items()
    }
    return inputs, {name: _composed(basis, root.output_values[name]) for name, basis in root.output_basis.items()}


def _composed(basis: Array, values: Array) -> Array:
    return (basis * values) @ basis.T


def _of_blocks(root: Blocks) -> BlockCurvature:
    def inverse(lower: Array) -> Array:
        solved = jax.scipy.linalg.solve_triangular(lower, jnp.eye(len(lower)), lower=True)
        return solved.T @ solved

    return BlockCurvature({group: inverse(blocks[0]) for group, blocks in root.roots.items()}, root.layout)


def _inverse_squares(scale: Theta) -> Theta:
    return {name: 1 / leaf**2 for name, leaf in scale.items()}
