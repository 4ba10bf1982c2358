"""Methods on a mesh of virtual devices, beside the same on one of them: a process of its own, which prints JSON.

In double precision, where the order of sums moves the sixteenth digit: what chaotic chains make of that is still small.

    python -m tests.on_a_mesh 8 nuts sgld
"""

import json
import sys
import warnings
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh


def main(num_devices: int, names: list[str]) -> None:
    """Each method on one device, with a lane for each chain, and with the rows divided over what is left."""
    jax.config.update("jax_num_cpu_devices", num_devices)
    jax.config.update("jax_enable_x64", True)
    from credo import testing
    from credo.inference.registry import METHODS
    from tests.contract.test_methods import PRIORS, TINY

    warnings.simplefilter("ignore")
    devices = np.array(jax.devices())
    for name in names:
        method = METHODS[name](**TINY[name])
        case, num_chains = testing.Case(method, PRIORS.get(name)), method.plan().num_chains
        alone = case.fit(mesh=Mesh(devices[:1], ("chains",)))
        lanes = case.fit(mesh=Mesh(devices[:num_chains], ("chains",)))
        whole = devices[: num_devices // num_chains * num_chains].reshape(num_chains, -1)
        shared = case.fit(mesh=Mesh(whole, ("chains", "data")))
        # Programs of several chains in lock-step are other programs than those of one.
        is_same_program = num_chains == 1 or not method.plan().lockstep
        print(
            json.dumps(
                {
                    "name": name,
                    "lanes": testing.same_bits(lanes, alone) if is_same_program else difference(lanes, alone) < 1e-6,
                    "shared": difference(shared, alone),
                    "predictions": predicts_the_same_in_blocks(alone),
                }
            ),
            flush=True,
        )


def difference(one: Any, other: Any) -> float:
    """The largest between their predictions, in units of their spread."""
    x = np.linspace(-2, 2, 9)
    ours, theirs = one.predict(x), other.predict(x)
    return float(
        max(np.max(np.abs(getattr(ours, name) - getattr(theirs, name)) / theirs.std) for name in ("mean", "std"))
    )


def predicts_the_same_in_blocks(posterior: Any) -> bool:
    """Whether rows in many blocks, which all devices predict, have the bits that they have in the first block alone."""
    x = np.random.default_rng(0).normal(size=20_000)
    return bool(np.array_equal(posterior.predict(x).mean[-100:], posterior.predict(x[-100:]).mean))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
