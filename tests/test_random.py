"""The generator behind `credo.random.key`: uniform, independent across counters, keys and seeds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import erfinv

from credo import random
from tests.statistical.moments import assert_plausible, sigmas

NUM = 2**18


def bits_of(key, num: int = NUM, dtype=jnp.uint32) -> np.ndarray:
    return np.asarray(jax.random.bits(key, (num,), dtype))


def uniform_p(words: np.ndarray, num_cells: int) -> float:
    return stats.chisquare(np.bincount(words, minlength=num_cells)).pvalue


def correlation_p(one: np.ndarray, other: np.ndarray) -> float:
    """Two-sided p-value of the sample correlation of independent uniforms."""
    correlation = np.corrcoef(one.ravel().astype(float), other.ravel().astype(float))[0, 1]
    return 2 * stats.norm.sf(abs(correlation) * np.sqrt(one.size))


def balance_p(bits: np.ndarray) -> float:
    """Fair coins: p-value of the number of ones."""
    return 2 * stats.norm.sf(abs(bits.mean() - 0.5) * 2 * np.sqrt(bits.size))


def first_words(keys, num: int) -> np.ndarray:
    """The beginnings of many streams, one after another."""
    return np.asarray(jax.vmap(lambda key: jax.random.bits(key, (num,), jnp.uint32))(keys)).ravel()


def seeded(seeds: jax.Array):
    return jax.vmap(lambda seed: random._key(jnp.stack([seed, jnp.uint32(0)])))(seeds.astype(jnp.uint32))


def folded(key, num: int):
    return jax.vmap(lambda step: jax.random.fold_in(key, step))(jnp.arange(num))


# So many words, of one stream or of the first 2¹⁶ keys of a kind.
STREAMS = {
    "counter": lambda seed, num: bits_of(random.key(seed), num),
    "seeds": lambda seed, num: first_words(seeded((seed << 16) + jnp.arange(2**16)), num >> 16),
    "folds": lambda seed, num: first_words(folded(random.key(seed), 2**16), num >> 16),
    "splits": lambda seed, num: first_words(jax.random.split(random.key(seed), 2**16), num >> 16),
}


@pytest.fixture(scope="module", params=STREAMS)
def words(request, seed) -> np.ndarray:
    return STREAMS[request.param](seed, NUM)


def test_bits_are_uniform(words):
    assert_plausible(
        uniform_p(words >> 24, 256),
        uniform_p(words & 255, 256),
        uniform_p((words >> 12) & 255, 256),
        stats.kstest(words / 2**32, "uniform").pvalue,
    )


def test_every_bit_is_a_fair_coin(words):
    assert_plausible(*(balance_p((words >> position) & 1) for position in range(32)))


def test_no_serial_correlation(words):
    assert_plausible(*(correlation_p(words[lag:], words[:-lag]) for lag in (1, 2, 3, 4, 8, 64)))


def test_pairs_fill_the_square(words):
    pairs = words.reshape(-1, 2)
    assert_plausible(
        uniform_p((pairs[:, 0] >> 28) * 16 + (pairs[:, 1] >> 28), 256),
        uniform_p((pairs[:, 0] & 15) * 16 + (pairs[:, 1] & 15), 256),
    )


def test_neighbouring_keys_are_independent(seed):
    """Row i of each matrix is the stream of key i: rows must not follow their neighbours, nor their parent."""
    parent = random.key(seed)
    families = {
        "seeds": jnp.stack([random.key(own) for own in range(256 * seed, 256 * seed + 256)]),
        "folds": folded(parent, 256),
        "splits": jax.random.split(parent, 256),
    }
    p_values = []
    for keys in families.values():
        streams = np.asarray(jax.vmap(lambda key: jax.random.bits(key, (1024,), jnp.uint32))(keys))
        own = np.broadcast_to(bits_of(parent, 1024), streams.shape)
        difference = streams[1:] ^ streams[:-1]
        p_values += [
            correlation_p(streams[1:], streams[:-1]),
            correlation_p(streams[1:, 1:], streams[:-1, :-1]),
            correlation_p(streams[1:, :-1], streams[:-1, 1:]),
            correlation_p(streams[4:], own[4:]),
            uniform_p((difference >> 24).ravel(), 256),
            uniform_p((difference & 255).ravel(), 256),
        ]
    assert_plausible(*p_values)


def test_streams_do_not_overlap(seed):
    """Keys made of one another in every way give streams that share no run of numbers."""
    root = random.key(seed)
    keys = [root, *jax.random.split(root, 8), *(jax.random.fold_in(root, step) for step in range(8))]
    keys += [*(random.key(seed + step) for step in range(1, 9)), *jax.random.split(jax.random.fold_in(root, 1), 8)]
    streams = [bits_of(key, 4096).astype(np.uint64) for key in keys]
    # Two words in a row: 33 streams of 4096 pairs collide by chance once in 2^64/2^33 suites.
    pairs = np.concatenate([(stream[1:] << np.uint64(32)) | stream[:-1] for stream in streams])
    assert len(np.unique(pairs)) == len(pairs)


@pytest.mark.parametrize("family", ["seeds", "folds", "splits"])
def test_many_keys_never_share_a_stretch(family, seed):
    """Streams of 2¹⁶ keys are not one stream at different offsets, nor that with something added to it.

    Were the streams of keys stretches of one sequence of 2³² words, or such stretches shifted by a constant, 2¹⁶ of
    16 words would overlap some 15 times. Of 2²⁰ independent pairs of words two are equal once in 2²⁵ suites.
    """
    streams = STREAMS[family](seed, 16 * 2**16).reshape(2**16, 16)
    for words in (streams, np.diff(streams, axis=1)):
        wide = words.astype(np.uint64)
        pairs = ((wide[:, 1:] << np.uint64(32)) | wide[:, :-1]).ravel()
        assert len(np.unique(pairs)) == len(pairs)


def test_keys_are_not_numbers_of_their_parent(seed):
    parent = random.key(seed)
    numbers = bits_of(parent, 64)
    splits = np.asarray(jax.random.key_data(jax.random.split(parent, 32))).ravel()
    folds = np.asarray(jax.random.key_data(folded(parent, 64))).ravel()
    # Three sets of 64, 64 and 128 words share one by chance once in 200,000 keys.
    assert len(np.unique(np.concatenate([numbers, splits, folds]))) == 256


def test_mix_is_a_bijection_with_avalanche(seed):
    inputs = bits_of(random.key(seed), 2**14)
    assert len(np.unique(np.asarray(random.mix(jnp.arange(2**16, dtype=jnp.uint32))))) == 2**16
    for position in range(32):
        flipped = np.asarray(
            random.mix(jnp.asarray(inputs)) ^ random.mix(jnp.asarray(inputs ^ np.uint32(1 << position)))
        )
        rates = [((flipped >> out) & 1).mean() for out in range(32)]
        # The published bias of this finaliser is 0.2%; the sampling error of each of 32² rates is 0.5/2⁷.
        assert np.abs(np.array(rates) - 0.5).max() < 0.002 + sigmas(32**2) * 0.5 / 2**7, position


@pytest.mark.parametrize("normal", [jax.random.normal, random.normal])
def test_normals_are_normal(normal, seed):
    draws = np.asarray(normal(random.key(seed), (NUM,)), np.float64)
    root = np.sqrt(NUM)
    # Mean, variance, skewness and kurtosis, each over its standard error.
    z = np.array([draws.mean() * root, (draws.var() - 1) * root / np.sqrt(2)])
    z = np.append(z, [stats.skew(draws) * root / np.sqrt(6), stats.kurtosis(draws) * root / np.sqrt(24)])
    assert_plausible(*(2 * stats.norm.sf(np.abs(z))), stats.kstest(draws, "norm").pvalue)


def test_normals_are_the_inverse_of_the_normal_distribution_function(seed):
    """Out to five sds: 2²² draws reach so far."""
    num = 2**22
    x = ((bits_of(random.key(seed), num).view(np.int32) >> 7) | 1) * 2.0**-24
    draws = np.asarray(random.normal(random.key(seed), (num,)))
    np.testing.assert_allclose(draws, np.sqrt(2) * erfinv(x), rtol=2e-5)
    # Beyond 4.4 there are 45 on average: none once in 10¹⁹ seeds.
    assert np.abs(draws).max() > 4.4


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.uint16, jnp.uint32])
def test_bit_widths(dtype, seed):
    words = bits_of(random.key(seed), dtype=dtype)
    assert words.dtype == dtype
    width = words.dtype.itemsize * 8
    assert_plausible(uniform_p(words >> (width - 8), 256), uniform_p(words & 255, 256))


def test_same_bits_under_jit_and_vmap():
    def draw(key):
        return jax.random.bits(jax.random.fold_in(jax.random.split(key)[1], 5), (3,), jnp.uint32)

    keys = jnp.stack([random.key(0), random.key(1)])
    plain = np.stack([draw(key) for key in keys])
    np.testing.assert_array_equal(jax.jit(jax.vmap(draw))(keys), plain)
    assert not np.array_equal(plain[0], plain[1])


def test_seeds_of_any_size_are_different_keys():
    seeds = [0, 1, -1, 2**31, 2**32 - 1, 2**32, 2**40, np.int64(5), -(2**40)]
    keys = {tuple(np.asarray(jax.random.key_data(random.key(seed)))) for seed in seeds}
    assert len(keys) == len(seeds)
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 0\.5"):
        random.key(0.5)
