"""One whole run of one side in a process of its own; prints seconds and the least function-space ESS as JSON."""

import json
import sys
import time

import numpy as np

NUM_PROBES = 40


def main() -> None:
    settings = json.loads(sys.argv[1])
    if settings["side"] == "parallel":
        import numpyro

        numpyro.set_host_device_count(4)
    from benchmarks.problems import Problem
    from credo.evaluation.diagnostics import convergence

    problem = Problem(tuple(settings["sizes"]), settings["num_data"])
    run = _credo if settings["side"] == "credo" else _numpyro
    elapsed, functions = run(problem, settings)
    print(json.dumps({"seconds": elapsed, "ess": convergence(functions).ess_bulk}))


def _probes(x: np.ndarray) -> np.ndarray:
    return x[np.linspace(0, len(x) - 1, NUM_PROBES).round().astype(int)]


def _credo(problem, settings):  # type: ignore[no-untyped-def]
    import credo

    x, y = problem.arrays()
    model, data = problem.model(), credo.Data(x, y)
    method = credo.NUTS(num_samples=settings["num"], num_warmup=settings["num"], max_depth=settings["depth"])
    began = time.perf_counter()
    posterior = credo.fit(model, data, method, progress=False)
    elapsed = time.perf_counter() - began
    functions = posterior.predict(_probes(x)).functions
    return elapsed, functions.reshape(4, settings["num"], -1)


def _numpyro(problem, settings):  # type: ignore[no-untyped-def]
    import jax
    from numpyro.infer import MCMC, NUTS, init_to_sample

    x, y = problem.arrays()
    kernel = NUTS(problem.numpyro_program(), max_tree_depth=settings["depth"], init_strategy=init_to_sample)
    mcmc = MCMC(
        kernel, num_warmup=settings["num"], num_samples=settings["num"], num_chains=4,
        chain_method=settings["side"], progress_bar=False,
    )  # fmt: skip
    began = time.perf_counter()
    mcmc.run(jax.random.key(0), x, y)
    samples = jax.block_until_ready(mcmc.get_samples(group_by_chain=True))
    elapsed = time.perf_counter() - began
    names = [f"{kind}{layer}" for layer in range(len(problem.sizes) - 1) for kind in ("kernel", "bias")]
    flat = np.concatenate([np.reshape(samples[name], (4, settings["num"], -1)) for name in names], axis=-1)
    predict = jax.vmap(jax.vmap(problem.apply, (0, None)), (0, None))
    return elapsed, np.asarray(predict(flat, _probes(x)))


if __name__ == "__main__":
    main()
