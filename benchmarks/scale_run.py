"""One run of `benchmarks.scale` in a process of its own; prints what it took as JSON."""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import credo

NUM_STEPS, NUM_ROUNDS, NUM_DRAWS, NUM_JUDGED = 6_000, 3, 4, 130_000


def main() -> None:
    settings = json.loads(sys.argv[1])
    kinds = {"growth": _growth, "plan": _plan, "fit": _fit, "files": _files, "turns": _turns}
    found = kinds[settings.pop("kind")](**settings)
    print(json.dumps(found | {"peak": _peak()}))


def _data(num_rows: int, num_columns: int = 8) -> credo.Data:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((num_rows, num_columns), np.float32)
    return credo.Data(x, np.sin(x).sum(1) + 0.1 * rng.standard_normal(num_rows, np.float32), standardise=True)


def _model(*units: int) -> credo.Model:
    return credo.models.regression(credo.networks.MLP(list(units), out=1), noise=0.1)


def _growth(what: str, size: int) -> dict[str, Any]:
    """The second of two fits, which compiles nothing."""
    width = round(np.sqrt(size + 25) - 5)  # of two layers on 8 inputs: w² + 10w + 1 weights
    few = _data(1_000)
    cases: dict[str, tuple[Any, credo.Model, Any]] = {
        "rows": (_data(size) if what == "rows" else few, _model(50), credo.MAP(num_steps=4)),
        "weights": (few, _model(width, width), credo.MAP(num_steps=20, batch_size=64)),
        "draws": (few, _model(10), credo.SGLD(num_samples=size, num_warmup=0, thin=1, num_chains=1, batch_size=32)),
        "chains": (
            few,
            _model(10),
            credo.SGLD(num_samples=100, num_warmup=900, thin=1, num_chains=size, batch_size=32),
        ),
        "members": (few, _model(10), credo.DeepEnsemble(credo.MAP(num_steps=1_000, batch_size=32), members=size)),
    }
    data, model, method = cases[what]
    for _ in range(2):
        began = time.perf_counter()
        credo.fit(model, data, method, progress=False)
    return {"seconds": time.perf_counter() - began}


def _case(case: str, factors: dict[str, float]) -> tuple[Any, credo.Model, Any]:
    """A case of `benchmarks.scale.PLANNED`, by so much smaller."""
    rows, steps = factors.get("rows", 1), factors.get("draws", 1)
    many, few = _data(round(20_000 / rows)), _data(2_000)
    cases: dict[str, tuple[Any, credo.Model, Any]] = {
        "sgld": (
            few,
            _model(50, 50),
            credo.SGLD(num_samples=500, num_warmup=5_000, thin=40, num_chains=2, batch_size=128),
        ),
        "vi": (few, _model(50, 50), credo.BayesByBackprop(num_steps=round(30_000 / steps), batch_size=64)),
        "ensemble": (many, _model(20), credo.DeepEnsemble(credo.MAP(num_steps=2_000), members=3)),
        "mclmc": (
            few,
            _model(20),
            credo.MCLMC(num_samples=100, num_warmup=1_000, thin=50, start=credo.MAP(num_steps=1_000)),
        ),
        "nuts": (_data(200), _model(4), credo.NUTS(num_samples=200, num_warmup=200, num_chains=2)),
    }
    return cases[case]


def _plan(case: str, factors: dict[str, float]) -> dict[str, Any]:
    data, model, method = _case(case, factors)
    began = time.perf_counter()
    seconds = credo.plan(model, data, method).at(**factors).seconds
    return {"seconds": seconds, "taken": time.perf_counter() - began}


def _fit(case: str) -> dict[str, Any]:
    data, model, method = _case(case, {})
    began = time.perf_counter()
    credo.fit(model, data, method, progress=False)
    return {"seconds": time.perf_counter() - began}


METHODS = {
    "sgld": credo.SGLD(num_samples=50, num_warmup=NUM_STEPS - 500, thin=10, num_chains=1, batch_size=256),
    "vi": credo.BayesByBackprop(num_steps=NUM_STEPS, batch_size=256),
    "ensemble": credo.DeepEnsemble(credo.MAP(num_steps=NUM_STEPS, batch_size=256), members=2),
    "swag": credo.SWAG(num_steps=NUM_STEPS, num_warmup=NUM_STEPS // 2, batch_size=256),
}


def _files(folder: str) -> dict[str, Any]:
    """All methods, each of which fits twice: the second time compiles nothing, and counts."""
    began = time.perf_counter()
    paths = Path(folder) / "x.npy", Path(folder) / "y.npy"
    data = credo.Data.open(paths)
    found: dict[str, Any] = {"opened": time.perf_counter() - began, "rates": {}}
    for name, method in METHODS.items():
        _fitted(data, method)
        posterior, found["rates"][name] = _fitted(data, method)
    found["fitted"] = _peak()
    began, total = time.perf_counter(), 0.0
    for block in data.blocks(2**18):
        mean = posterior.predict(block.x, num_draws=NUM_DRAWS).mean
        total += float(np.sum((block.y - mean) ** 2))
    found |= {"predicted": time.perf_counter() - began, "rmse": float(np.sqrt(total / data.size))}
    test = credo.Data.open(paths, share=(0, max(1, data.size // NUM_JUDGED)))
    began = time.perf_counter()
    scores = credo.evaluate(posterior, test, num_draws=NUM_DRAWS)
    judged = {"judged_rows": scores.num_rows, "judged_rmse": scores["rmse"].value}
    return found | judged | {"judged": time.perf_counter() - began}


def _turns(folder: str) -> dict[str, Any]:
    """Steps a second from files and from memory, the best of rounds in which both take turns."""
    paths = Path(folder) / "x.npy", Path(folder) / "y.npy"
    sides = credo.Data.open(paths), credo.Data(*map(np.load, paths), standardise=True)
    found = {}
    for name, method in METHODS.items():
        rates = [[_fitted(data, method)[1] for data in sides] for _ in range(NUM_ROUNDS)]
        found[name] = np.max(rates, axis=0).tolist()
    return found


def _fitted(data: Any, method: Any) -> tuple[Any, float]:
    """A posterior, and how many steps a second it took."""
    began = time.perf_counter()
    posterior = credo.fit(_model(50, 50), data, method, progress=False)
    plan = method.plan()
    return posterior, plan.num_chains * plan.num_steps / (time.perf_counter() - began)


def _peak() -> int:
    """The largest resident memory so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
