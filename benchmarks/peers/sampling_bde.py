"""A whole run of sklearn-contrib-bde, compilation included; prints its seconds as JSON.

    python sampling_bde.py DATA.npz FUNCTIONS.npy SETTINGS

DATA holds x, y and the inputs `probes`; FUNCTIONS becomes the mean at the probes, of axes (members, draws, probes).
"""

import json
import os
import sys
import time

# A device per core, before JAX is loaded: the only way in which bde uses them.
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={len(os.sched_getaffinity(0))}"

import jax
import numpy as np
from bde import BdeRegressor


def main() -> None:
    data, (path, text) = np.load(sys.argv[1]), sys.argv[2:]
    settings = json.loads(text)
    regressor = BdeRegressor(
        n_members=settings["members"],
        hidden_layers=settings["hidden"],
        activation="relu",
        epochs=settings["training_steps"],
        warmup_steps=settings["warmup"],
        n_samples=settings["draws"] * settings["thin"],
        n_thinning=settings["thin"],
        lr=1e-2,
    )
    began = time.perf_counter()
    regressor.fit(data["x"], data["y"])
    jax.block_until_ready(regressor.positions_eT_)
    elapsed = time.perf_counter() - began
    forward = regressor._bde.members[0].forward
    mean = jax.vmap(jax.vmap(lambda weights: forward(weights, data["probes"])[:, 0]))(regressor.positions_eT_)
    np.save(path, np.asarray(mean))
    print(json.dumps({"seconds": elapsed}))


if __name__ == "__main__":
    main()
