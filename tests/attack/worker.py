"""One process of the attack; `harness` starts it and reads what it tells through a pipe."""

import json
import math
import os
import sys
from pathlib import Path

import jax.numpy as jnp

from tests.attack.harness import Piece, work


def import_blackjax() -> None:
    """A default argument of it is computed while it is imported, and a process that has computed cannot be forked."""
    log, jnp.log = jnp.log, math.log
    try:
        import blackjax.adaptation  # noqa: F401
    finally:
        jnp.log = log


def main() -> None:
    import_blackjax()
    kind, seed, first, seconds, only_one, folder, pipe = sys.argv[1:]
    piece = Piece(kind, int(seed), int(first), float(seconds), only_one == "1")
    with os.fdopen(int(pipe), "w", buffering=1) as told:
        os.set_inheritable(told.fileno(), False)
        work(piece, Path(folder), lambda report: print(json.dumps(report), file=told))
        told.flush()
        # Threads of a case that hangs, and what forked children share with us, are no reason to wait at the end.
        os._exit(0)


if __name__ == "__main__":
    main()
