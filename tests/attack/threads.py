"""Eight threads that fit, load, predict and evaluate at once give the same bits as one after another."""

import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credo
from credo.testing import pack
from tests.attack import corpus
from tests.attack.kinds import Case
from tests.attack.outcomes import RIGHT, Outcome, Wrong

NUM_THREADS = 8
METHODS = (
    credo.MAP(num_steps=5),
    credo.BayesByBackprop(num_steps=5),
    credo.SGLD(num_samples=4, num_warmup=4, num_chains=1),
    credo.Metropolis(num_samples=4, num_warmup=4, num_chains=2),
    credo.Laplace(training=credo.MAP(num_steps=5)),
)


def prepare(folder: Path) -> Case:
    entries = [entry for entry in corpus.entries(folder) if not corpus.is_run(entry)]
    rng = np.random.default_rng(0)
    x = rng.standard_normal(20)
    model = credo.models.regression(credo.networks.MLP([3], 1))

    def fits(rng: np.random.Generator) -> Callable[[], Any]:
        method, seed = METHODS[rng.integers(len(METHODS))], int(rng.integers(100))
        return lambda: pack(credo.fit(model, (x, np.sin(x)), method, seed=seed, progress=False))[1]

    def loads(rng: np.random.Generator) -> Callable[[], Any]:
        entry = entries[rng.integers(len(entries))]
        return lambda: pack(credo.load(entry))[1]

    def predicts(rng: np.random.Generator) -> Callable[[], Any]:
        entry, places = entries[rng.integers(len(entries))], np.linspace(-1, 1, int(rng.integers(2, 40)))
        return lambda: {"mean": credo.load(entry).predict(places).mean}

    def evaluates(rng: np.random.Generator) -> Callable[[], Any]:
        entry, size = entries[rng.integers(len(entries))], int(rng.integers(5, 20))
        return lambda: credo.evaluate(credo.load(entry), (x[:size], np.sin(x[:size]))).to_dict()

    def saves(rng: np.random.Generator) -> Callable[[], Any]:
        entry = entries[rng.integers(len(entries))]

        def act() -> Any:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                credo.load(entry).save(Path(place) / "it")
                return pack(credo.load(Path(place) / "it"))[1]

        return act

    def case(rng: np.random.Generator) -> Outcome:
        makers = (fits, loads, predicts, predicts, evaluates, saves)
        jobs = [makers[rng.integers(len(makers))](rng) for _ in range(NUM_THREADS)]
        # Programs that were compiled before need no tracing, which is where threads meet.
        jax.clear_caches()
        with ThreadPoolExecutor(NUM_THREADS) as pool:
            together = [done.result() for done in [pool.submit(job) for job in jobs]]
        alone = [job() for job in jobs]
        if [flat(one) for one in together] != [flat(one) for one in alone]:
            raise Wrong("threads at once get other bits than one after another")
        return Counter({RIGHT: NUM_THREADS})

    return case


def flat(found: dict[str, Any]) -> dict[str, bytes]:
    return {
        name: np.asarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        for name, value in found.items()
    }
