"""One whole run of one side in a process of its own; prints seconds, and the worst function-space ESS and R-hat.

The standard deviations of the functions tell whether it was the posterior that was drawn from. Of credo and blackjax
also how many of the seconds went into tracing and compiling, and how many gradients into warm-up and draws.
"""

import json
import os
import sys
import time

import numpy as np


def main() -> None:
    settings = json.loads(sys.argv[1])
    # From cold: credo would find the programs of the run before on disk, and the others would not.
    os.environ["CREDO_CACHE"] = "off"
    if settings["side"] == "parallel":
        import numpyro

        numpyro.set_host_device_count(4)
    from benchmarks.problems import NOISE, Problem
    from credo.diagnostics.chains import convergence

    problem = Problem(tuple(settings["sizes"]), settings["num_data"], settings.get("noise", NOISE))
    sides = {"parallel": _numpyro, "vectorized": _numpyro, "blackjax": _blackjax}
    found, functions = sides.get(settings["side"], _credo)(problem, settings)
    agreement = convergence(functions)
    found |= {"ess": agreement.ess_bulk, "tail": agreement.ess_tail, "rhat": agreement.rhat}
    print(json.dumps(found | {"sds": functions.std(axis=(0, 1)).tolist()}))


def _credo(problem, settings):  # type: ignore[no-untyped-def]
    import credo

    side = settings["side"]
    model = problem.model_of_bde() if side == "mclmc, as bde" else problem.model()
    method = _nuts(settings) if side == "credo" else _mclmc(settings)
    compiling = _Compiling()
    began = time.perf_counter()
    posterior = credo.fit(model, problem.arrays(), method, seed=settings.get("seed", 0), progress=False)
    found = {"seconds": time.perf_counter() - began, "compiling": compiling.seconds}
    if side == "credo":
        gradients = (infos["num_leapfrogs"].sum() for infos in (posterior.trace, posterior.infos))
    else:
        # Two for each step.
        gradients = (2 * method.num_chains * num for num in (method.num_warmup, method.num_samples * method.thin))
    found |= zip(("warmup_gradients", "gradients"), map(int, gradients), strict=True)
    functions = posterior.predict(problem.probes()).functions
    return found, functions.reshape(posterior.num_chains, posterior.num_draws, -1)


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


def _blackjax(problem, settings):  # type: ignore[no-untyped-def]
    from functools import partial

    import credo
    from benchmarks import blackjax_runs

    compiling = _Compiling()
    seed = settings.get("seed", 0)
    began = time.perf_counter()
    target = blackjax_runs.Target.of(problem.model(), problem.arrays())
    if "depth" in settings:
        theta = target.model.sample_prior(credo.random.key(seed), 4)
        sampler = partial(blackjax_runs.nuts, num=settings["num"], depth=settings["depth"])
    else:
        # What credo's chains start from: as many networks, trained from draws of the prior.
        members = credo.DeepEnsemble(
            credo.MAP(num_steps=settings["training_steps"], start="prior"), settings["members"]
        )
        theta = credo.fit(target.model, problem.arrays(), members, seed=seed, progress=False).theta
        theta = {name: leaf[:, 0] for name, leaf in theta.items()}
        counts = {name: settings[name] for name in ("warmup", "draws", "thin")}
        sampler = partial(blackjax_runs.mclmc, **counts)
    chains = blackjax_runs.run_chains(
        sampler, target, target.positions(theta), seed=seed, chain_method=settings["chain_method"]
    )
    found = {"seconds": time.perf_counter() - began, "compiling": compiling.seconds}
    found |= {name: int(np.sum(getattr(chains, name))) for name in ("warmup_gradients", "gradients")}
    return found, target.functions(chains.draws, problem.probes())


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
    mcmc.run(jax.random.key(settings.get("seed", 0)), x, y)
    samples = jax.block_until_ready(mcmc.get_samples(group_by_chain=True))
    elapsed = time.perf_counter() - began
    names = [f"{kind}{layer}" for layer in range(len(problem.sizes) - 1) for kind in ("kernel", "bias")]
    flat = np.concatenate([np.reshape(samples[name], (4, settings["num"], -1)) for name in names], axis=-1)
    predict = jax.vmap(jax.vmap(problem.apply, (0, None)), (0, None))
    return {"seconds": elapsed}, np.asarray(predict(flat, problem.probes()))


class _Compiling:
    """How long JAX has been tracing and compiling: the union of the times, as one may be part of another."""

    def __init__(self):  # type: ignore[no-untyped-def]
        import jax

        self.spans: list[tuple[float, float]] = []
        jax.monitoring.register_event_duration_secs_listener(self.note)

    def note(self, event, duration, **_):  # type: ignore[no-untyped-def]
        if event.startswith("/jax/core/compile/"):
            self.spans.append((time.perf_counter() - duration, time.perf_counter()))

    @property
    def seconds(self):  # type: ignore[no-untyped-def]
        total, last = 0.0, 0.0
        for began, ended in sorted(self.spans):
            total += max(ended - max(began, last), 0.0)
            last = max(last, ended)
        return total


if __name__ == "__main__":
    main()
