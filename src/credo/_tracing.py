"""One NumPyro program at a time, in whatever threads they run.

NumPyro keeps the handlers of a running program in one list for the whole process, so whoever runs a program must be
alone with it: `with alone, handlers.trace() as trace: …`. Compiled functions run their program only while they are
traced, hence none of them takes the lock once it is compiled.

Why nobody waits for ever. JAX lets a thread wait for another that traces the same function, and such a trace may want
this lock; so whoever holds the lock must not wait for such a trace. Therefore it is held around a run of the program and
nothing else: not around a trace, a compilation or the cached properties of a model, all of which come before. What a
program calls (networks, distributions, functions of JAX) runs no program itself, or is re-entrant here.
"""

import threading

alone = threading.RLock()
