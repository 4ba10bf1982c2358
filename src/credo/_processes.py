"""What the processes of one computation tell each other: those that `jax.distributed.initialize` has brought together.

All of them run the same program, so that each of these functions is called by all, in the same order. What is told is
pickled: processes of one computation trust each other, and nothing of it is kept.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

import jax
import numpy as np

T = TypeVar("T")

# In errors of XLA, which come as one kind or another: what the transport says, and what the coordination service does.
SIGNS_OF_LOSS = ("Gloo", "NCCL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "CoordinationService")


class ProcessLostError(RuntimeError):
    """Another process of the same computation has gone."""

    def __init__(self) -> None:
        super().__init__(
            "another process of this fit has ended before its time; what the run folder holds is whole: start all "
            "processes again to go on with it (resume=True)"
        )


def is_first() -> bool:
    """Whether this process writes files and speaks."""
    return jax.process_index() == 0


def exchanged(value: Any) -> list[Any]:
    """What each process has passed, in their order."""
    if jax.process_count() == 1:
        return [value]
    from jax.experimental import multihost_utils  # lazy: a fit by one process has no use for it

    own = np.frombuffer(pickle.dumps(value), np.uint8)
    sizes = multihost_utils.process_allgather(np.array(len(own)))
    # A power of two: few sizes, and few programs.
    room = np.zeros(2 ** int(sizes.max() - 1).bit_length(), np.uint8)
    room[: len(own)] = own
    rows = multihost_utils.process_allgather(room)
    return [pickle.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]


def from_first(make: Callable[[], T]) -> T:
    """make() of the first process, in all of them; or its error."""
    if jax.process_count() == 1:
        return make()
    found: Any = None
    if is_first():
        try:
            found = (True, make())
        except Exception as error:
            found = (False, error)
    succeeded, value = exchanged(found)[0]
    if not succeeded:
        raise value
    return value


def by_one_of(mesh: Any) -> Callable[[Callable[[], T]], T]:
    """How to do what is for one process alone, such as writing files, in a fit on that mesh: without one, directly."""
    return from_first if mesh is not None else lambda do: do()


@contextmanager
def entered_by_first(context: AbstractContextManager[Any]) -> Iterator[None]:
    """What the first process alone opens and closes."""
    with ExitStack() as stack:
        from_first(lambda: stack.enter_context(context) and None)
        yield


def require_same(what: Mapping[str, str]) -> None:
    """Refuse processes of which one differs from the first in something, by its name and its digest."""
    first, *others = exchanged(dict(what))
    for number, other in enumerate(others, start=1):
        different = [name for name in sorted(first | other) if first.get(name) != other.get(name)]
        if different:
            raise ValueError(
                f"process {number} differs from process 0 in its {', '.join(different)}; give all processes the same "
                "code, data and settings"
            )


@contextmanager
def losses_told() -> Iterator[None]:
    """A collective that fails becomes one sentence: a process that took part in it has gone."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if any(sign in str(error) for sign in SIGNS_OF_LOSS):
            raise ProcessLostError from error
        raise
