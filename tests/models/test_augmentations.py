"""Augmentations: what x′ can be, how probable it is, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo import augmentations, random
from credo.models.augmentations import from_config

ROWS, COLUMNS = np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij")
RAMP = jnp.asarray(2 * ROWS + COLUMNS, jnp.float32)
NUM = 2000


def draws(augmentation, x, num=NUM, **constants):
    keys = jax.random.split(random.key(0), num)
    return np.asarray(jax.jit(jax.vmap(lambda key: augmentation(key, x, **constants)))(keys))


@pytest.mark.parametrize(
    "finite",
    [
        augmentations.flip(0),
        augmentations.shift(1, fill="edge"),
        augmentations.as_image((3, 2), augmentations.compose(augmentations.flip(), augmentations.shift(1))),
        augmentations.group([lambda x: x, lambda x: -x]),
    ],
    ids=str,
)
def test_draws_are_the_images_equally_often(finite):
    """A count of a share p has the standard deviation √(p (1 − p) N); none is off by five of them."""
    x = jnp.arange(1.0, 7.0) if isinstance(finite, augmentations.AsImage) else jnp.arange(1.0, 7.0).reshape(3, 2)
    images = np.stack(finite.images(x))
    assert len(images) == finite.num_images
    images, ways = np.unique(images.reshape(len(images), -1), axis=0, return_counts=True)
    found, counts = np.unique(draws(finite, x).reshape(NUM, -1), axis=0, return_counts=True)
    np.testing.assert_array_equal(found, images)
    share = ways / finite.num_images
    assert np.all(np.abs(counts - NUM * share) <= 5 * np.sqrt(NUM * share * (1 - share)))


def test_shift_moves_images_with_channels():
    x = jnp.arange(18.0).reshape(3, 3, 2)
    np.testing.assert_array_equal(augmentations.shift(1, axes=(1,)).images(x)[2][:, 1:], x[:, :-1])


def slopes(images):
    """Of planes, along rows and columns, fitted in the middle of the image."""
    middle = np.asarray(images)[:, 3:6, 3:6]
    return np.stack([np.diff(middle, axis=1).mean(axis=(1, 2)), np.diff(middle, axis=2).mean(axis=(1, 2))], axis=1)


def test_rotation_turns_the_slope_of_a_plane():
    """Bilinear interpolation is exact for planes, and angles are uniform."""
    turned = slopes(draws(augmentations.rotate(20), RAMP))
    angles = np.degrees(np.arctan2(turned[:, 1], turned[:, 0]) - np.arctan2(1, 2))
    np.testing.assert_allclose(np.hypot(*turned.T), np.sqrt(5), rtol=1e-4)
    assert np.abs(angles).max() <= 20.001
    np.testing.assert_allclose(np.quantile(angles, [0.25, 0.75]), [-10, 10], atol=5 * 40 * np.sqrt(3 / 16 / NUM))


def test_crop_is_a_window_made_larger():
    cropped = draws(augmentations.crop(0.6), RAMP)
    shares = slopes(cropped) / [2, 1]
    np.testing.assert_allclose(shares[:, 0], shares[:, 1], rtol=1e-3)
    assert 0.6 - 1e-4 <= shares.min() < 0.61
    assert 0.99 < shares.max() <= 1 + 1e-4
    # The corners of every window are in the image: nothing is repeated at the edge.
    np.testing.assert_allclose(np.diff(cropped[:, :, 0], axis=1), 2 * shares[:, :1].repeat(8, 1), rtol=2e-2)


def test_noise_has_its_scale_in_each_column():
    found = draws(augmentations.noise([0.1, 2.0]), jnp.array([5.0, -5.0]))
    np.testing.assert_allclose(found.std(axis=0), [0.1, 2.0], rtol=5 / np.sqrt(2 * NUM))
    np.testing.assert_allclose(found.mean(axis=0), [5.0, -5.0], atol=5 * 2.0 / np.sqrt(NUM))


def test_interpolation_goes_part_of_the_way_to_a_neighbour():
    points = jnp.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 8.0]])
    near = draws(augmentations.interpolate(0.5, nearest_of=8), points[0], points=points)
    anyone = draws(augmentations.interpolate(0.5, nearest_of=1), points[0], points=points)
    assert np.all((near >= 0) & (near <= [0.5, 4.0]))
    assert np.all(near.min(axis=1) == 0)  # on the way to one of the others
    # One of eight candidates is the near one in all but (3/4)⁸ = 10 % of the draws; the first of one is in 25 %.
    assert np.mean(near[:, 0] > 0) > 0.85
    assert abs(np.mean(anyone[:, 0] > 0) - 0.25) < 5 * np.sqrt(3 / 16 / NUM)


def test_settings_are_stored():
    whole = augmentations.compose(
        augmentations.as_image((8, 8), augmentations.compose(augmentations.flip(), augmentations.rotate(5))),
        augmentations.noise([0.1, 0.2]),
        augmentations.shift(2, axes=(0,), fill="edge"),
        augmentations.crop(),
        augmentations.interpolate(0.3),
    )
    assert from_config(whole.to_config()) == whole
    with pytest.raises(ValueError, match="code is not stored"):
        from_config(augmentations.group([lambda x: x]).to_config())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: augmentations.flip(-1), "axis must be"),
        (lambda: augmentations.shift(0), "by must be"),
        (lambda: augmentations.shift(1, axes=(0, 0)), "different axes"),
        (lambda: augmentations.shift(1, fill="wrap"), "fill must be"),
        (lambda: augmentations.shift(3).check((3, 5)), "out of sight"),
        (lambda: augmentations.shift(1).check((3,)), "no axis 1"),
        (lambda: augmentations.rotate(-5), "degrees must be"),
        (lambda: augmentations.rotate().check((64,)), r"as_image\(\(height, width\)"),
        (lambda: augmentations.crop(1.0), "below 1"),
        (lambda: augmentations.noise(0.0), "no noise"),
        (lambda: augmentations.noise([0.1, 0.2]).check((3,)), "2 scales for rows of 3"),
        (lambda: augmentations.interpolate(0.6), "at most 0.5"),
        (lambda: augmentations.group([]), "at least one"),
        (lambda: augmentations.group([augmentations.flip()]), "not a function"),
        (lambda: augmentations.compose(augmentations.flip()), "two augmentations"),
        (lambda: augmentations.as_image((8, 8), augmentations.flip()).check((63,)), "no images of shape"),
    ],
)
def test_refuses(make, words):
    with pytest.raises(ValueError, match=words):
        make()
