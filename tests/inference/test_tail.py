"""The tail of a climb: means of its two halves, and of the whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.inference.tail import EVERY, SHARE, Tail

pytestmark = pytest.mark.quick


@jax.jit
def climbed(num_steps: int, path: jax.Array) -> Tail:
    def step(index: jax.Array, tail: Tail) -> Tail:
        return tail.after(index + 1, len(path), {"w": path[index]})

    return jax.lax.fori_loop(0, num_steps, step, Tail.none({"w": path[0]}))


def test_the_mean_is_that_of_every_tenth_iterate_of_the_last_half() -> None:
    path = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    tail = climbed(400, jnp.asarray(path))
    taken = path[EVERY - 1 :: EVERY][-int(SHARE * 400) // EVERY :]
    np.testing.assert_allclose(tail.mean({"w": path[-1]})["w"], taken.mean(0), rtol=1e-5, atol=1e-6)
    first, second = tail.each(lambda phi: phi["w"])
    np.testing.assert_allclose(first, taken[: len(taken) // 2].mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, taken[len(taken) // 2 :].mean(0), rtol=1e-5, atol=1e-6)


def test_a_run_that_ends_before_its_tail_is_where_it_stands() -> None:
    path = jnp.arange(400.0)
    tail = climbed(150, path)
    assert tail.mean({"w": path[149]})["w"] == 149
    assert tail.each(lambda phi: phi["w"]) == []


def test_a_run_that_ends_in_its_tail_is_the_mean_of_what_there_is() -> None:
    tail = climbed(250, jnp.arange(400.0))
    assert tail.mean({"w": jnp.zeros(())})["w"] == np.mean([209, 219, 229, 239, 249])
    assert tail.each(lambda phi: phi["w"]) == []
