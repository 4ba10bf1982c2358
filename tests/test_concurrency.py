"""Threads that do everything at once get the bits of one after another; a forked process is refused, not hung."""

import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from flax import nnx

import credo
from credo.diagnostics._arviz import quiet
from credo.networks import functional
from credo.networks.masks import Masks

ROOT = Path(__file__).parent.parent
SAVED = Path(__file__).parent / "posterior" / "saved"
NUM_THREADS = 8
# Against hanging: a test that waits for longer has failed.
PATIENCE = 300


def grid(num: int) -> np.ndarray:
    return np.linspace(-2, 2, num)[:, None]


def fit_map() -> np.ndarray:
    model = credo.models.regression(credo.networks.MLP([2], out=1))
    return credo.fit(model, (grid(9), np.sin(grid(9)[:, 0])), credo.MAP(num_steps=3), progress=False).predict(X).mean


def fit_dropout() -> np.ndarray:
    net = nnx.Sequential(nnx.Linear(1, 4, rngs=nnx.Rngs(0)), nnx.Dropout(0.5), nnx.Linear(4, 1, rngs=nnx.Rngs(1)))
    model = credo.models.regression(net, noise=0.1)
    return credo.fit(model, (grid(9), grid(9)[:, 0]), credo.MCDropout(num_steps=2), progress=False).predict(X).std


def load(name: str) -> np.ndarray:
    return credo.load(SAVED / name).predict(X).mean


def predict(posterior: Any, num: int) -> np.ndarray:
    return posterior.predict(grid(num)).log_prob(np.zeros(num))


def evaluate(posterior: Any) -> np.ndarray:
    return np.array([*credo.evaluate(posterior, (X, np.sin(X[:, 0]))).values.values()])


X = grid(5)


def jobs(posterior: Any) -> list[Callable[[], np.ndarray]]:
    return [
        fit_map,
        fit_dropout,
        lambda: load("gaussian_diagonal"),
        lambda: load("dropout"),
        lambda: predict(posterior, 20),
        lambda: predict(posterior, 40),
        lambda: predict(posterior, 40),
        lambda: evaluate(posterior),
    ]


def at_once(works: list[Callable[[], Any]]) -> list[Any]:
    """What they return, each from a thread of its own; all of them start together."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result(timeout=PATIENCE) for future in [pool.submit(run, work) for work in works]]


def test_threads_that_do_everything_at_once_get_the_same_bits() -> None:
    works = jobs(credo.load(SAVED / "draws"))
    assert len(works) == NUM_THREADS
    together = at_once(works)
    for found, work in zip(together, works, strict=True):
        np.testing.assert_array_equal(found, work())


def test_programs_run_one_at_a_time() -> None:
    running: list[int] = []

    def program(x: Any, y: Any = None) -> None:
        running.append(threading.get_ident())
        w = numpyro.sample("w", dist.Normal(0, 1))
        time.sleep(0.005)
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(w, 1.0), obs=y)
        assert running.pop() == threading.get_ident()
        assert not running

    models = at_once([lambda: credo.Model(program).bind((X, X[:, 0]))] * 4)
    assert all(list(model.template) == ["w"] for model in models)


def test_masks_are_given_in_their_own_thread_alone() -> None:
    network = functional(nnx.Sequential(nnx.Linear(1, 4, rngs=nnx.Rngs(0)), nnx.Dropout(0.5)))
    bare = network.apply(network.params, X)
    with Masks({"dropout_mask.0": jnp.zeros(4)}) as masks:
        with ThreadPoolExecutor(1) as pool:
            elsewhere = pool.submit(network.apply, network.params, X).result(timeout=PATIENCE)
        assert not masks.layers
        here = network.apply(network.params, X)
    np.testing.assert_array_equal(elsewhere, bare)
    np.testing.assert_array_equal(here, jnp.zeros((5, 4)))


def test_every_run_of_a_program_is_alone() -> None:
    """Handlers that begin a run stand behind the lock; those of a param's initial value are inside a run already."""
    begins = re.compile(r"^ *with (?!alone\(\), ).*handlers\.(seed|trace)\(", re.MULTILINE)
    files = [path for path in (ROOT / "src" / "credo").rglob("*.py") if path.name != "sites.py"]
    assert not [path.name for path in files if begins.search(path.read_text(encoding="utf-8"))]


def test_arviz_is_quiet_and_warnings_are_as_before() -> None:
    entered, left = threading.Event(), threading.Event()

    def other() -> None:
        with quiet():
            entered.set()
            left.wait(timeout=0.05)

    before = list(warnings.filters)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other)
        entered.wait(timeout=PATIENCE)
        with quiet():
            waiting.result(timeout=PATIENCE)
        left.set()
    assert warnings.filters == before


IMPORTS = """
import credo, threading
names = ["fit", "load", "evaluate", "models", "networks", "compare", "report", "plot"]
start, failed = threading.Barrier(len(names)), []

def use(name):
    start.wait()
    try:
        getattr(credo, name)
    except Exception as error:
        failed.append(f"{name}: {error!r}")

threads = [threading.Thread(target=use, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(failed)
"""


def test_names_may_be_used_for_the_first_time_by_several_threads() -> None:
    assert said_by(IMPORTS) == "[]"


FORKS = """
import os, signal, sys, warnings
import numpy as np
import credo

warnings.simplefilter("ignore", RuntimeWarning)  # JAX warns of the fork itself
x = np.linspace(-1, 1, 5)[:, None]

def fit():
    return credo.fit(credo.models.regression(net), (x, x[:, 0]), credo.MAP(num_steps=2), progress=False)

def in_a_fork(**works):
    for name, work in works.items():
        sys.stdout.flush()
        if os.fork() == 0:
            signal.alarm(60)  # against hanging
            try:
                work()
                print(name, "done")
            except RuntimeError as error:
                print(name, "refused" if "get_context('spawn')" in str(error) else error)
            sys.stdout.flush()
            os._exit(0)
        if os.wait()[1]:
            print(name, "killed")

net = credo.networks.MLP([2], out=1)
in_a_fork(fit=fit)
posterior = credo.load(sys.argv[1])
prediction = posterior.predict(x)
prediction.mean
in_a_fork(
    fit=fit,
    network=lambda: credo.networks.MLP([2], out=1, inputs=1),
    load=lambda: credo.load(sys.argv[1]),
    predict=lambda: posterior.predict(x),
    interval=prediction.interval,
    evaluate=lambda: credo.evaluate(posterior, (x, x[:, 0])),
)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_computes_only_where_nothing_was_computed_before() -> None:
    refused = [f"{what} refused" for what in ("fit", "network", "load", "predict", "interval", "evaluate")]
    assert said_by(FORKS, str(SAVED / "draws")).splitlines() == ["fit done", *refused]


def said_by(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=2 * PATIENCE, check=True
    )
    return done.stdout.strip()
