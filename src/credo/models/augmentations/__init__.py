"""Augmentations: x′ ~ p(x′ | x, Aug), what an input could have been as well. For `credo.models.augmented`.

Paper, "Data augmentation". An augmentation acts on one row x in the user's units, and keeps its shape: a row of a
table, (columns,), or an image, (height, width) or (height, width, channels). The label is taken to stay what it is: a
six that is turned by 180° is a nine, so what an augmentation may do is knowledge, and a part of the model.
"""

from collections.abc import Callable, Mapping
from typing import Any

from credo._checks import require_one_of
from credo.models.augmentations.augmentation import Augmentation, Custom, as_augmentation
from credo.models.augmentations.combined import AsImage, Compose, Group, as_image, compose, group
from credo.models.augmentations.images import Crop, Flip, Rotate, Shift, crop, flip, rotate, shift
from credo.models.augmentations.vicinity import Interpolate, Noise, interpolate, noise

_SIMPLE: tuple[Callable[..., Augmentation], ...] = (flip, shift, rotate, crop, noise, interpolate)
AUGMENTATIONS: dict[str, Callable[..., Augmentation]] = {maker.__name__: maker for maker in _SIMPLE}


def from_config(config: Mapping[str, Any]) -> Augmentation:
    """The inverse of `Augmentation.to_config`.

    >>> from_config(flip(0).to_config())
    Flip(axis=0)
    """
    name, settings = config["name"], {key: value for key, value in config.items() if key != "name"}
    if name in ("custom", "group"):
        codes = settings["functions"] if name == "group" else [settings["function"]]
        raise ValueError(
            f"the augmentation {name!r} holds code of your own, {', '.join(one['code'] for one in codes)}, and code is "
            "not stored; build the model again and pass it: credo.load(folder, model=model)"
        )
    if name == "compose":
        return compose(*map(from_config, settings["parts"]))
    if name == "as_image":
        return as_image(settings["shape"], from_config(settings["part"]))
    require_one_of(AUGMENTATIONS, augmentation=name)
    return AUGMENTATIONS[name](**settings)


__all__ = [
    "AUGMENTATIONS",
    "AsImage",
    "Augmentation",
    "Compose",
    "Crop",
    "Custom",
    "Flip",
    "Group",
    "Interpolate",
    "Noise",
    "Rotate",
    "Shift",
    "as_augmentation",
    "as_image",
    "compose",
    "crop",
    "flip",
    "from_config",
    "group",
    "interpolate",
    "noise",
    "rotate",
    "shift",
]
