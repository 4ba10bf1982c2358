"""Every method where JAX is set to double precision: it fits, predicts in float64, saves and loads the same bits."""

import shutil
import tempfile
from pathlib import Path

import jax
import numpy as np

import credo
from credo import testing
from credo.inference.registry import METHODS
from tests.attack import forks
from tests.attack.kinds import Case
from tests.attack.outcomes import Outcome, Wrong, require_one_line, require_sentence, right
from tests.contract.test_methods import PRIORS, TINY


def prepare(folder: Path) -> Case:
    forks.import_everything()

    def case(rng: np.random.Generator) -> Outcome:
        name = forks.chosen(rng, sorted(METHODS))
        place, seed = Path(tempfile.mkdtemp(dir=folder)), int(rng.integers(1_000))
        try:
            child = forks.start(lambda: in_double_precision(name, seed, place / "it"), place / "words")
            require_one_line(child.wait(), child.stderr, allowed=(0,))
            return right
        finally:
            shutil.rmtree(place)

    return case


def in_double_precision(name: str, seed: int, folder: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    case = testing.Case(METHODS[name](**TINY[name]), PRIORS.get(name))
    try:
        posterior = case.fit(seed=seed)
    except credo.NonFiniteError as error:
        # A sampler with tiny settings may start where it cannot stay, and says so in either precision.
        require_sentence(error)
        return
    draws = posterior.sample(credo.random.key(0), 2)
    if others := [leaf.dtype for leaf in draws.values() if leaf.dtype != np.float64]:
        raise Wrong(f"{name}: draws in double precision have the dtype {others[0]}")
    prediction = posterior.predict(np.linspace(-2, 2, 5))
    if not np.isfinite(prediction.mean).all():
        raise Wrong(f"{name}: predictions in double precision are not finite")
    posterior.save(folder)
    loaded = credo.load(folder)
    if not testing.same_bits(loaded, posterior):
        raise Wrong(f"{name}: double precision is lost on its way through a file")
    if loaded.predict(np.linspace(-2, 2, 5)).mean.tobytes() != prediction.mean.tobytes():
        raise Wrong(f"{name}: a posterior in double precision predicts other bits once it was loaded")
