"""Fits under a limit of the address space: they end, or are refused in one line before anything dies."""

import resource
import shutil
import tempfile
from pathlib import Path

import numpy as np

from tests.attack import forks
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, refused, require_one_line, right

# What Python, JAX and its threads need for themselves; below it nothing can be promised.
LEAST = 1.5
METHODS = {
    "map": ("--set", "num_steps=2"),
    "bayes_by_backprop": ("--set", "num_steps=2"),
    "nuts": ("--set", "num_samples=2", "--set", "num_warmup=2", "--set", "max_depth=1"),
    "laplace": ("--set", "training.num_steps=2"),
    "sgld": ("--set", "num_samples=2", "--set", "num_warmup=2"),
}


def prepare(folder: Path) -> Case:
    forks.import_everything()
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    def case(rng: np.random.Generator) -> Outcome:
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            num_rows, num_columns = int(10 ** rng.uniform(2, 4.5)), int(10 ** rng.uniform(0, 1.5))
            x = rng.standard_normal((num_rows, num_columns)).astype(np.float32)
            np.savez(place / "table.npz", x=x, y=x[:, 0])
            method, widest = forks.chosen(rng, sorted(METHODS)), int(10 ** rng.uniform(1, 4.3))
            limit = mapped + int(rng.uniform(LEAST, 4) * 2**30)
            child = forks.credo(
                *("fit", place / "table.npz", "--out", place / "run", "--network", f"mlp:{widest}", "--quiet"),
                *("--method", method, *METHODS[method]),
                words=place / "words",
                before=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
            )
            code = child.wait()
            require_one_line(code, child.stderr)
            return refused if code else right
        finally:
            shutil.rmtree(place)

    return case
