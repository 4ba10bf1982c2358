"""Convolutions as products of patches: the same numbers and gradients as XLA's own, for every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.networks.patches import with_patches

RNG = np.random.default_rng(0)


def random_array(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


CASES = {
    "valid": {"window_strides": (1, 1), "padding": "VALID"},
    "same": {"window_strides": (1, 1), "padding": "SAME"},
    "strides": {"window_strides": (2, 3), "padding": [(1, 2), (0, 1)]},
    "dilated": {"window_strides": (1, 2), "padding": "SAME", "rhs_dilation": (2, 1)},
    "groups": {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2},
    "transposed": {"window_strides": (1, 1), "padding": [(1, 1), (1, 1)], "lhs_dilation": (2, 2)},
}
LAYOUTS = [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("HWNC", "IOWH", "NWHC")]


# Every case in the layout of flax, and every layout in one case; the others wait for the long run.
PAIRS = [
    pytest.param(
        case, layout, id=f"{case}-{layout[0]}", marks=[pytest.mark.full] * (layout != LAYOUTS[0] and case != "same")
    )
    for case in CASES
    for layout in LAYOUTS
]


def operands(case: str, layout: tuple[str, str, str]):
    """A convolution, and what it is of."""
    settings = CASES[case]
    sizes = {"N": 3, "H": 9, "W": 8, "C": 4, "O": 6, "I": 4 // settings.get("feature_group_count", 1)}
    data = random_array(*(sizes[axis] for axis in layout[0]))
    kernel = random_array(*({**sizes, "H": 3, "W": 2}[axis] for axis in layout[1]))

    def convolve(data, kernel):
        return jax.lax.conv_general_dilated(data, kernel, dimension_numbers=layout, **settings)

    return convolve, data, kernel


@pytest.mark.parametrize(("case", "layout"), PAIRS)
def test_values_and_gradients_are_those_of_the_convolution(case: str, layout: tuple[str, str, str]) -> None:
    convolve, data, kernel = operands(case, layout)

    def loss(function):
        return lambda *arguments: jnp.sum(jnp.sin(function(*arguments)))

    np.testing.assert_allclose(with_patches(convolve)(data, kernel), convolve(data, kernel), rtol=1e-4, atol=1e-4)
    ours = jax.jit(jax.grad(loss(with_patches(convolve)), argnums=(0, 1)))(data, kernel)
    theirs = jax.grad(loss(convolve), argnums=(0, 1))(data, kernel)
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-3)


def test_one_and_three_axes() -> None:
    for spec, shape, window in (("NWC", (2, 9, 3), (3, 3, 5)), ("NDHWC", (2, 5, 6, 7, 3), (2, 3, 2, 3, 5))):
        layout = (spec, spec.strip("NC") + "IO", spec)

        def convolve(data, kernel, layout=layout):
            return jax.lax.conv_general_dilated(data, kernel, (1,) * (data.ndim - 2), "SAME", dimension_numbers=layout)

        data, kernel = random_array(*shape), random_array(*window)
        np.testing.assert_allclose(with_patches(convolve)(data, kernel), convolve(data, kernel), rtol=1e-4, atol=1e-4)
