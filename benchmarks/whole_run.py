"""One whole run of one side in a process of its own; prints seconds, and the worst function-space ESS and R-hat."""

import json
import sys
import time

import numpy as np


def main() -> None:
    settings = json.loads(sys.argv[1])
    if settings["side"] == "parallel":
        import numpyro

        numpyro.set_host_device_count(4)
    from benchmarks.problems import Problem
    from credo.diagnostics.chains import convergence

    problem = Problem(tuple(settings["sizes"]), settings["num_data"])
    run = _numpyro if settings["side"] in ("parallel", "vectorized") else _credo
    elapsed, functions = run(problem, settings)
    found = convergence(functions)
    print(json.dumps({"seconds": elapsed, "ess": found.ess_bulk, "rhat": found.rhat}))


def _credo(problem, settings):  # type: ignore[no-untyped-def]
    import credo

    side = settings["side"]
    model = problem.model_of_bde() if side == "mclmc, as bde" else problem.model()
    method = _nuts(settings) if side == "credo" else _mclmc(settings)
    began = time.perf_counter()
    posterior = credo.fit(model, problem.arrays(), method, seed=settings.get("seed", 0), progress=False)
    elapsed = time.perf_counter() - began
    functions = posterior.predict(problem.probes()).functions
    return elapsed, functions.reshape(posterior.num_chains, posterior.num_draws, -1)


def _nuts(settings):  # type: ignore[no-untyped-def]
    import credo

    return credo.NUTS(num_samples=settings["num"], num_warmup=settings["num"], max_depth=settings["depth"])


def _mclmc(settings):  # type: ignore[no-untyped-def]
    import credo

    return credo.MCLMC(
        num_samples=settings["draws"],
        num_warmup=settings["warmup"],
        num_chains=settings["members"],
        thin=settings["thin"],
        start=credo.MAP(num_steps=settings["training_steps"]),
    )


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
    return elapsed, np.asarray(predict(flat, problem.probes()))


if __name__ == "__main__":
    main()
