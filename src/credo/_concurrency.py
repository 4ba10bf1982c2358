"""What threads and processes have to respect: programs run one at a time, and JAX does not survive a fork.

NumPyro keeps the handlers of a running program in one list for the whole process, so whoever runs a program must be
alone with it: `with alone(), handlers.trace() as trace: …`. Compiled functions run their program only while they are
traced, hence none of them comes here once it is compiled.

Why nobody waits for ever: JAX lets a thread wait for another that traces the same function, and such a trace may want
the lock. So whoever holds it must not wait for such a trace. Therefore it is held around a run of the program and
nothing else: whatever is compiled, and the cached properties of a model, come before. What a program itself calls
(networks, distributions, functions of JAX) runs no other program.
"""

import os
import sys
from _thread import RLock  # of `threading`, which takes longer to import
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = RLock()
# The processes that were forked after JAX had computed in them: their children inherit this, but not JAX's threads.
_FORKED: set[int] = set()


@contextmanager
def alone() -> Iterator[None]:
    """While it lasts, no other thread runs a program."""
    require_own_jax()
    with _LOCK:
        yield


def require_own_jax() -> None:
    """Refuse to compute where JAX would wait for threads that stayed behind in the parent process."""
    if _FORKED and os.getpid() not in _FORKED:
        raise RuntimeError(
            "this process was forked after JAX had been used in its parent, whose threads it does not have: what is "
            "computed here would hang. Start processes by spawn, multiprocessing.get_context('spawn') or "
            "ProcessPoolExecutor(mp_context=…); the workers of joblib (loky) are fine too"
        )


def _note_fork() -> None:
    jax = sys.modules.get("jax._src.xla_bridge")
    if jax is not None and jax.backends_are_initialized():
        _FORKED.add(os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note_fork)
