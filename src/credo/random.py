"""Random keys with a cheap generator.

On a CPU the noise is the bottleneck of stochastic weights. In a loop over 478,000 weights threefry, JAX's default,
takes 2.8 times as long as this generator and `rbg` 17 times; and under `vmap` `rbg` draws a whole batch from its first
key, so that draws would depend on how many chains run together (docs/decisions.md). This one hashes a counter with two
rounds of a 32-bit finaliser, each keyed by one half of the key. It is a generator for simulation, not for secrets; its
uniformity and independence are tested in tests/test_random.py. `jax.random` works with its keys (except `poisson`,
which insists on threefry), and the library works with keys of any generator.

With such cheap bits, the inverse of the normal distribution function becomes the bottleneck: `normal` approximates it
with few operations.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import random as jax_extend_random

from credo._concurrency import require_own_jax
from credo._precision import working_precision
from credo.typing import Array, Key

# Constants from 2³²/φ and the fractional parts of square roots: successive counters, and the streams for numbers,
# splits and folds, land far apart.
_GOLDEN = 0x9E3779B9
_NUMBERS, _SPLIT, _FOLD = 0x6A09E667, 0xBB67AE85, 0x3C6EF372


def key(seed: int) -> Key:
    """The key for an integer seed, of which the lower 64 bits count.

    >>> jax.random.normal(key(0), (3,)).shape
    (3,)
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool):
        raise ValueError(f"seed must be a whole number, got {seed!r}")
    require_own_jax()
    words = [int(seed) & 0xFFFFFFFF, (int(seed) >> 32) & 0xFFFFFFFF]
    return _key(np.array(words, np.uint32))


# z/x as a ratio of polynomials in w = −log(1 − x²), for P(|Z| < z) = |x| and w up to 16: a minimax fit with a relative
# error of at most 1.1e-5, which 10⁹ draws could not detect.
_NUMERATOR = (1.2533263757, 0.42357464175, 0.075876785165, 0.0078922236746)
_DENOMINATOR = (1.0, 0.076136466069, 0.027784615327, 0.00040966830312)


def normal(key: Key, shape: tuple[int, ...]) -> Array:
    """Standard normal numbers, √2 erf⁻¹(x) of x uniform on (−1, 1) in steps of 2⁻²³: |z| ≤ 5.4.

    In double precision it is the same noise, as coarse: the same seed gives the same run, up to its rounding errors.

    With the same bits `jax.random.normal` takes 1.3 to 1.6 times as long: its logarithm is exact near one, and it
    evaluates two polynomials of which it discards one.

    >>> normal(key(0), (3,)).shape
    (3,)
    """
    bits = jax.lax.bitcast_convert_type(jax.random.bits(key, shape, jnp.uint32), jnp.int32)
    # Odd signed numbers of 25 bits: symmetric about zero, which is not among them.
    x = ((bits >> 7) | 1).astype(working_precision()) * working_precision().type(2.0**-24)
    w = -jnp.log((1 - x) * (1 + x))
    return x * (_polynomial(_NUMERATOR, w) / _polynomial(_DENOMINATOR, w))


def _polynomial(coefficients: Sequence[float], w: Array) -> Array:
    value = jnp.full_like(w, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * w + coefficient
    return value


def mix(bits: Array) -> Array:
    """A bijection of 32-bit words in which each input bit flips each output bit about half the time (Wellons, 2018).

    >>> import jax.numpy as jnp
    >>> from credo import random
    >>> len(set(random.mix(jnp.arange(1000, dtype=jnp.uint32)).tolist()))  # no two words become one
    1000
    """
    # Wider words, which JAX draws by default in double precision, would not wrap around.
    bits = bits.astype(jnp.uint32)
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    return bits ^ (bits >> 16)


def content(values: Array) -> Array:
    """A 32-bit hash of the numbers in an array: for noise that goes with what a row holds, not with where it stands.

    >>> bool(content(jnp.array([0.0, 1.0])) == content(jnp.array([-0.0, 1.0])))
    True
    """
    numbers = jnp.ravel(values).astype(working_precision())
    # −0 and 0 are one number with two patterns of bits.
    bits = jnp.ravel(jax.lax.bitcast_convert_type(jnp.where(numbers == 0, 0.0, numbers), jnp.uint32))
    return jnp.sum(mix(bits ^ mix(jax.lax.iota(jnp.uint32, bits.size))), dtype=jnp.uint32)


def _hash(state: Array, counter: Array, stream: int) -> Array:
    first = mix(counter * jnp.uint32(_GOLDEN) + state[0])
    return mix((first ^ jnp.uint32(stream)) + state[1])


def _counter(shape: tuple[int, ...]) -> Array:
    size = 1
    for axis in shape:
        size *= axis
    return jax.lax.iota(jnp.uint32, size).reshape(shape)


def _seed(seed: Array) -> Array:
    low = seed.astype(jnp.uint32)
    # Where integers are wider than 32 bits, the upper half of the seed counts too.
    high = (seed >> 32).astype(jnp.uint32) if seed.dtype.itemsize > 4 else jnp.uint32(0)
    return _state(jnp.stack([low, high]))


def _state(start: Array) -> Array:
    return jnp.stack([_hash(start, jnp.uint32(0), _NUMBERS), _hash(start, jnp.uint32(1), _NUMBERS)])


def _split(state: Array, shape: tuple[int, ...]) -> Array:
    return _hash(state, _counter((*shape, 2)), _SPLIT)


def _fold_in(state: Array, number: Any) -> Array:
    # Two hashes with different keys, so that both halves of the new key depend on the number and the whole key.
    number = number.astype(jnp.uint32)
    return jnp.stack([_hash(state, number, _FOLD), _hash(state[::-1], number, _FOLD)])


def _random_bits(state: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    if bit_width == 64:
        low, high = jnp.moveaxis(_random_bits(state, 32, (*shape, 2)), -1, 0)
        return (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)
    bits = _hash(state, _counter(shape), _NUMBERS)
    return bits if bit_width == 32 else (bits >> (32 - bit_width)).astype(f"uint{bit_width}")


_IMPLEMENTATION: Any = jax_extend_random.define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="credo_hash",
    tag="credo",
)


@jax.jit
def _key(words: Array) -> Key:
    return jax.random.wrap_key_data(_state(words), impl=_IMPLEMENTATION)
