"""What augmentations make of digits: an image, and what it could have been as well.

    python examples/augmentation.py --out docs/images

draws `augmentation.png`, the picture of docs/augmentation.md.
"""

from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import typer
from matplotlib import pyplot

import credo
from credo import augmentations

NUM_VIEWS = 7
SHOWN = {
    "shift(1)": augmentations.shift(1),
    "rotate(15)": augmentations.rotate(15),
    "crop(0.65)": augmentations.crop(0.65),
    "noise(0.1)": augmentations.noise(0.1),
    "interpolate()": augmentations.interpolate(),
}


def main(out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("docs/images")) -> None:
    """Draw the picture."""
    digits = credo.datasets.load("digits")
    figure, grid = pyplot.subplots(len(SHOWN), NUM_VIEWS + 1, figsize=(7, 4.6), layout="constrained")
    for number, (row, (name, one)) in enumerate(zip(grid, SHOWN.items(), strict=True)):
        x = np.float32(digits.x[number])
        keys = jax.random.split(credo.random.key(0), NUM_VIEWS)
        views = [one(key, x, **one.constants(digits.x)) for key in keys]
        for ax, image in zip(row, [x, *views], strict=True):
            ax.imshow(image, cmap="gray_r", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    grid[0, 0].set_title("x", fontsize=9)
    grid[0, 1].set_title("x′", fontsize=9)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "augmentation.png", dpi=70)
    typer.echo(out / "augmentation.png")


if __name__ == "__main__":
    typer.run(main)
