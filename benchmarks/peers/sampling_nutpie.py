"""A whole run of nutpie's NUTS on a tanh network, compilation included; prints its seconds and gradients as JSON.

    python sampling_nutpie.py DATA.npz FUNCTIONS.npy SETTINGS

DATA holds x, y and the inputs `probes`; FUNCTIONS becomes the mean at the probes, of axes (chains, draws, probes). The
log density is compiled by JAX, and called by nutpie's threads through Python, which is what it offers for any density
that is not a PyMC or Stan program.
"""

import json
import os
import sys
import time
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import nutpie
from nutpie.compiled_pyfunc import from_pyfunc


def layers(flat, sizes):  # type: ignore[no-untyped-def]
    first = 0
    for inputs, units in pairwise(sizes):
        kernel = flat[first : first + inputs * units].reshape(inputs, units)
        first += inputs * units
        yield kernel, flat[first : first + units]
        first += units


def apply(flat, x, sizes):  # type: ignore[no-untyped-def]
    *hidden, (kernel, bias) = layers(flat, sizes)
    for hidden_kernel, hidden_bias in hidden:
        x = jnp.tanh(x @ hidden_kernel + hidden_bias)
    return (x @ kernel + bias)[:, 0]


def main() -> None:
    data, path, settings = np.load(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    sizes, noise, num = settings["sizes"], settings["noise"], settings["num"]
    ndim = sum((inputs + 1) * units for inputs, units in pairwise(sizes))
    x, y = jnp.asarray(data["x"]), jnp.asarray(data["y"])

    def log_density(flat):  # type: ignore[no-untyped-def]
        return -0.5 * jnp.sum(flat**2) - 0.5 * jnp.sum((y - apply(flat, x, sizes)) ** 2) / noise**2

    began = time.perf_counter()
    compiled = jax.jit(jax.value_and_grad(log_density)).lower(jnp.zeros(ndim)).compile()

    def of_position(position):  # type: ignore[no-untyped-def]
        value, slope = compiled(position.astype(np.float32))
        return float(value), np.asarray(slope, np.float64)

    model = from_pyfunc(
        ndim,
        lambda: of_position,
        lambda *_: lambda position: {"theta": position},
        [np.dtype(np.float64)],
        [(ndim,)],
        ["theta"],
        make_initial_point_fn=lambda seed: np.random.default_rng(seed).normal(size=ndim),
    )
    trace = nutpie.sample(
        model,
        draws=num,
        tune=num,
        chains=4,
        cores=len(os.sched_getaffinity(0)),
        seed=settings["seed"],
        maxdepth=settings["depth"],
        progress_bar=False,
    )
    elapsed = time.perf_counter() - began
    steps = (int(trace[group]["n_steps"].sum()) for group in ("warmup_sample_stats", "sample_stats"))
    theta = jnp.asarray(trace.posterior["theta"].to_numpy(), jnp.float32)
    mean = jax.vmap(jax.vmap(lambda flat: apply(flat, jnp.asarray(data["probes"]), sizes)))(theta)
    np.save(path, np.asarray(mean))
    print(json.dumps({"seconds": elapsed, **dict(zip(("warmup_gradients", "gradients"), steps, strict=True))}))


if __name__ == "__main__":
    main()
