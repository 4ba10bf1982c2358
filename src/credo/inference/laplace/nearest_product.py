"""The Kronecker product that is nearest to a sum of two."""

import jax.numpy as jnp

from credo.typing import Array


def nearest_product(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """A and G of the A ⊗ G that is nearest to A₁ ⊗ G₁ + A₂ ⊗ G₂.

    As a matrix, vec(A₁) vec(G₁)ᵀ + vec(A₂) vec(G₂)ᵀ, the sum has rank two, and its leading singular vectors are
    combinations of the Aᵢ and of the Gᵢ: an eigenvector of two rows says which. For positive matrices all its entries
    are positive, and so is the product (Van Loan and Pitsianis, "Approximation with Kronecker products", 1993).
    """
    (a1, g1), (a2, g2) = first, second
    # In units in which all four are of order one: squares of small numbers would vanish.
    sizes = jnp.linalg.norm(a1) * jnp.linalg.norm(g1), jnp.linalg.norm(a2) * jnp.linalg.norm(g2)
    unit = jnp.maximum(jnp.maximum(*sizes), jnp.finfo(a1.dtype).tiny)
    pairs = [(a / _norm(a), g * (_norm(a) / unit)) for a, g in (first, second)]
    of_inputs, of_gradients = (_inner(pairs[0][place], pairs[1][place]) for place in (0, 1))
    right = _leading(of_inputs @ of_gradients)
    left = of_gradients @ right
    shared = jnp.dot(of_inputs @ left, of_gradients @ right)
    size = (left @ of_inputs @ left) * (right @ of_gradients @ right)
    share = unit * shared / jnp.maximum(size, jnp.finfo(a1.dtype).tiny)
    return left[0] * pairs[0][0] + left[1] * pairs[1][0], share * (right[0] * pairs[0][1] + right[1] * pairs[1][1])


def _norm(matrix: Array) -> Array:
    return jnp.maximum(jnp.linalg.norm(matrix), jnp.finfo(matrix.dtype).tiny)


def _inner(first: Array, second: Array) -> Array:
    """⟨·, ·⟩ of two matrices with each other, (2, 2)."""
    between = jnp.sum(first * second)
    return jnp.array([[jnp.sum(first**2), between], [between, jnp.sum(second**2)]])


def _leading(matrix: Array) -> Array:
    """The eigenvector of the larger eigenvalue of a matrix of two rows, none of whose entries is negative."""
    (a, b), (c, d) = matrix
    value = 0.5 * (a + d) + jnp.sqrt(0.25 * (a - d) ** 2 + b * c)
    # Either is one; the longer is not lost to rounding.
    either = jnp.array([b, value - a]), jnp.array([value - d, c])
    lengths = jnp.linalg.norm(either[0]), jnp.linalg.norm(either[1])
    chosen = jnp.where(lengths[0] > lengths[1], either[0], either[1])
    alone = jnp.where(a >= d, jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))
    length = jnp.linalg.norm(chosen)
    return jnp.where(length > 0, chosen / jnp.where(length > 0, length, 1.0), alone)
