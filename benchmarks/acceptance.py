"""Does a warm-up end with the acceptance that was asked for? Ten posteriors, NUTS as it comes.

    python -m benchmarks acceptance [--seeds 3] [--only linear,logistic]

The share of proposals that are accepted after the warm-up, all chains together, beside `target_acceptance` (0.8), and
the least effective draws of the functions per thousand gradients, those of the warm-up counted.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from rich.progress import track

import credo
from benchmarks.printing import console, new_table
from benchmarks.problems import Problem
from credo.diagnostics.chains import convergence

# A model, and its rows.
Posterior = tuple[credo.Model, tuple[np.ndarray, np.ndarray]]
NUM_PROBES = 40
# In these networks NUTS takes the longest trajectories there are, and depth sets the time of a run.
MAX_DEPTH = 8


def linear() -> Posterior:
    """A regression whose noise is drawn too."""

    def program(x: Any, y: Any = None) -> None:
        w = numpyro.sample("w", dist.Normal(0, 1).expand([5]).to_event(1))
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(x @ w, noise), obs=y)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 5))
    return credo.Model(program), (x, x @ np.arange(5.0) + rng.normal(size=100))


def logistic() -> Posterior:
    """Thirty weights, two hundred rows."""

    def program(x: Any, y: Any = None) -> None:
        w = numpyro.sample("w", dist.Normal(0, 1).expand([30]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)

    x = np.random.default_rng(0).normal(size=(200, 30))
    return credo.Model(program), (x, (x[:, 0] > 0).astype(int))


def correlated() -> Posterior:
    """A normal in twenty dimensions, neighbours correlated by 0.95."""
    places = np.arange(20)
    root = jnp.asarray(np.linalg.cholesky(0.95 ** np.abs(places[:, None] - places)), jnp.float32)

    def program(x: Any, y: Any = None) -> None:
        z = numpyro.sample("z", dist.MultivariateNormal(jnp.zeros(20), scale_tril=root))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(z[0], 1.0).expand([x.shape[0]]), obs=y)

    return credo.Model(program), _five_rows(0.0)


def skewed() -> Posterior:
    """Ten positive numbers of which the sum is seen."""

    def program(x: Any, y: Any = None) -> None:
        parts = numpyro.sample("parts", dist.Gamma(2.0, 1.0).expand([10]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(parts.sum(), 3.0).expand([x.shape[0]]), obs=y)

    return credo.Model(program), _five_rows(15.0)


def schools() -> Posterior:
    """Eight schools, effects around a common mean, non-centred (Gelman et al., Bayesian Data Analysis)."""
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def program(x: Any, y: Any = None) -> None:
        mean, spread = numpyro.sample("mean", dist.Normal(0, 5)), numpyro.sample("spread", dist.HalfNormal(5.0))
        own = numpyro.sample("own", dist.Normal(0, 1).expand([8]).to_event(1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(mean + spread * own[x[:, 0].astype(int)], x[:, 1]), obs=y)

    return credo.Model(program), (np.column_stack([np.arange(8.0), errors]), effects)


def drawn_noise() -> Posterior:
    """A small network whose noise is drawn too."""
    net = credo.networks.MLP([10], out=1, activation="tanh")
    data = credo.datasets.gap()
    return credo.models.regression(net), (data.x, data.y)


def _five_rows(mean: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 1)), mean + rng.normal(size=5)


def _network(*sizes: int, num_data: int, noise: float) -> Callable[[], Posterior]:
    problem = Problem(sizes, num_data, noise)
    return lambda: (problem.model(), problem.arrays())


POSTERIORS: dict[str, Callable[[], Posterior]] = {
    "linear": linear,
    "logistic": logistic,
    "correlated": correlated,
    "skewed": skewed,
    "schools": schools,
    "1-10-1 and its noise": drawn_noise,
    "10-30-1": _network(10, 30, 1, num_data=442, noise=0.7),
    "8-50-1": _network(8, 50, 1, num_data=300, noise=0.5),
    "2-16-16-1": _network(2, 16, 16, 1, num_data=200, noise=0.5),
    "13-10-1": _network(13, 10, 1, num_data=500, noise=0.7),
}


def main(arguments: Sequence[str] = ()) -> None:
    """The table of all posteriors, and the largest distance from what was asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks acceptance", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(POSTERIORS), help="names of posteriors")
    options = parser.parse_args(list(arguments))
    names = [name for name in POSTERIORS if name in options.only.split(",")] or list(POSTERIORS)
    columns = (f"acceptance, seed {seed}" for seed in range(options.seeds))
    table = new_table("NUTS, acceptance after the warm-up", "problem", *columns, "ESS/1k gradients")
    method, furthest = credo.NUTS(max_depth=MAX_DEPTH), 0.0
    for name in track(names, "posteriors", console=console):
        model, arrays = POSTERIORS[name]()
        found = [_run(model, arrays, method, seed) for seed in range(options.seeds)]
        table.add_row(name, *(f"{one[0]:.3f}" for one in found), f"{np.median([one[1] for one in found]):.2f}")
        furthest = max(furthest, *(abs(one[0] - method.target_acceptance) for one in found))
    console.print(table)
    console.print(f"asked for: {method.target_acceptance}; the furthest is {furthest:.3f} off")


def _run(
    model: credo.Model, arrays: tuple[np.ndarray, np.ndarray], method: credo.NUTS, seed: int
) -> tuple[float, float]:
    """The mean acceptance, and the least effective draws of the functions per thousand gradients."""
    posterior: Any = credo.fit(model, arrays, method, seed=seed, progress=False)
    probes = arrays[0][np.linspace(0, len(arrays[0]) - 1, NUM_PROBES).round().astype(int)]
    functions = posterior.predict(probes).functions.reshape(posterior.num_chains, posterior.num_draws, -1)
    gradients = sum(int(infos["num_leapfrogs"].sum()) for infos in (posterior.trace, posterior.infos))
    return float(posterior.infos["acceptance"].mean()), 1e3 * convergence(functions).ess_bulk / gradients


if __name__ == "__main__":
    main()
