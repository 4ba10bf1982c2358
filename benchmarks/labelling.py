"""Labelling in a browser: how long a request takes while the model learns, and what the page looks like.

    python -m benchmarks labelling [--labels 200] [--markdown]
    python -m benchmarks labelling --pictures docs/images    draws the pictures of docs/labelling_page.md

`credo label --page` as a process of its own, on the images of digits, and one who knows all labels and never rests: the
model learns all the time. The pictures are those of a browser in which somebody has labelled.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import numpy as np
import polars as pl
from PIL import Image
from playwright.sync_api import Browser
from sklearn.datasets import load_digits, load_wine
from tests.browser import PATIENCE, launched

from benchmarks.printing import new_table, show

CULTIVARS = ("Barolo", "Grignolino", "Barbera")
# Between two answers: quicker than a person, and slow enough that the learner is not merely starved.
SECONDS_BETWEEN = 0.1
# Of the pictures: after so many labels.
NUM_BEFORE = 60
# Milliseconds between two answers, and the answers between two waits for the model.
PACE = 200
LEARNED_EVERY = 4
WIDE, NARROW = {"width": 1200, "height": 860}, {"width": 420, "height": 860}


def main(arguments: Sequence[str] = ()) -> None:
    """The table, or the pictures where they are asked for."""
    options = _options(arguments)
    with TemporaryDirectory() as folder:
        if options.pictures is not None:
            pictures(Path(folder), options.pictures)
            return
        pool, truth = digits(Path(folder))
        with served(pool, map(str, range(10))) as address:
            times = timed(address, truth, options.labels)
    table = new_table(f"requests during {options.labels} labels of digits, ms", "request", "median", "99%", "longest")
    for name, seconds in times.items():
        table.add_row(name, *(f"{1000 * figure:.1f}" for figure in (*np.quantile(seconds, (0.5, 0.99)), max(seconds))))
    show(table, markdown=options.markdown)


def timed(address: str, truth: Mapping[str, str], num_labels: int) -> dict[str, list[float]]:
    """Seconds of each request of somebody who labels, by what was asked for."""
    times: dict[str, list[float]] = {"POST /answers": [], "POST /cards": [], "GET /image": []}
    with httpx2.Client(base_url=address, headers={"origin": address.rstrip("/")}, timeout=60) as client:

        def ask(name: str, **content: object) -> httpx2.Response:
            start = time.perf_counter()
            method, path = name.split()
            response = client.request(method, path, **content)
            times[name].append(time.perf_counter() - start)
            return response.raise_for_status()

        for number in range(num_labels):
            [card] = ask("POST /cards", json={"labeller": "ada"}).json()
            item = card["item"]
            ask("GET /image", params={"item": item})
            said = {"labeller": "ada", "item": item, "kind": "label", "label": truth[item], "token": str(number)}
            ask("POST /answers", json=said)
            time.sleep(SECONDS_BETWEEN)
    return times


# -- pictures ----------------------------------------------------------------------------------------------


def pictures(folder: Path, out: Path) -> None:
    """The page after some labels: digits wide, narrow and dark, and a table."""
    with launched() as browser:
        pool, keys = digits(folder / "pictures")
        with served(pool, map(str, range(10))) as address:
            label(browser, address, keys, NUM_BEFORE)
            shoot(browser, address, out / "labelling_digits.png")
            shoot(browser, address, out / "labelling_phone.png", viewport=NARROW, has_touch=True, is_mobile=True)
            shoot(browser, address, out / "labelling_dark.png", color_scheme="dark")
        pool, keys = wine(folder / "pictures")
        with served(pool, CULTIVARS) as address:
            label(browser, address, keys, NUM_BEFORE)
            shoot(browser, address, out / "labelling_table.png")


def label(browser: Browser, address: str, keys: Mapping[str, str], num_labels: int) -> None:
    """Press the right keys, and let the model learn now and then, however busy the machine is."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}?labeller=ada")
    for number in range(num_labels):
        item = page.locator("#question:not([hidden])").get_attribute("data-item")
        page.keyboard.press(keys[str(item)])
        page.wait_for_timeout(PACE)
        if number % LEARNED_EVERY == 0:
            page.locator("#learning:not(.busy)").wait_for()
    page.context.close()


def shoot(browser: Browser, address: str, path: Path, **options: object) -> None:
    """A picture of what the next person sees once the model has learned, with its belief."""
    context = browser.new_context(**({"viewport": WIDE} | options))  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}?labeller=ada")
    page.locator("#learning:not(.busy)").wait_for()
    while not page.locator(".likeliest").count():
        page.keyboard.press("Space")
        page.wait_for_timeout(PACE)
    page.wait_for_timeout(1000)
    page.screenshot(path=path)
    context.close()


# -- pools -------------------------------------------------------------------------------------------------


def digits(folder: Path) -> tuple[Path, dict[str, str]]:
    """A folder of images, and the label of each, which is its key."""
    pool, found = folder / "digits", load_digits()
    pool.mkdir(parents=True)
    truth = {}
    for number, (image, target) in enumerate(zip(found.images, found.target, strict=True)):
        name = f"{number:04}.png"
        Image.fromarray(np.round(255 - image * 15.9375).astype(np.uint8)).save(pool / name)
        truth[name] = str(target)
    return pool, truth


def wine(folder: Path) -> tuple[Path, dict[str, str]]:
    """A table, and the key of the class of each row."""
    pool, found = folder / "wine.csv", load_wine()
    names = [name.replace("_", " ") for name in found.feature_names]
    pl.DataFrame(dict(zip(names, found.data.T, strict=True))).write_csv(pool)
    return pool, {str(row): str(target + 1) for row, target in enumerate(found.target, start=1)}


@contextmanager
def served(pool: Path, classes: Iterator[str] | Sequence[str]) -> Iterator[str]:
    """The address of `credo label --page` in a process of its own."""
    out = pool.with_suffix(".labels.csv")
    command = [sys.executable, "-m", "credo.cli", "label", str(pool), "--classes", ",".join(classes)]
    process = subprocess.Popen(
        [*command, "--page", "--port", "0", "--out", str(out)], stdout=subprocess.PIPE, text=True
    )
    try:
        yield next(line.strip() for line in process.stdout or () if line.startswith("http"))
    finally:
        process.terminate()
        process.wait()


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks labelling")
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--pictures", type=Path)
    return parser.parse_args(arguments)
