"""The memory that a run will need, known before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from credo._machine import total_memory
from credo._text import size_in_words

# A run that would need more than this share of the machine's memory is refused before it starts.
MEMORY_SHARE = 0.5


@dataclass(frozen=True)
class Needs:
    """What a run will hold in memory, known before it starts."""

    num_parameters: int
    stored: str
    num_bytes: int

    def __str__(self) -> str:
        return f"{self.num_parameters:,} parameters; stores {self.stored}: {size_in_words(self.num_bytes)}"


def refuse_if_too_large(method: str, needs: Sequence[Needs], smaller: str) -> None:
    """Refuse runs of a method whose results would not fit into memory together.

    Arguments:
        smaller: what to do instead.
    """
    num_bytes = sum(one.num_bytes for one in needs)
    available = total_memory()
    if num_bytes > MEMORY_SHARE * available:
        raise ValueError(
            f"{method} would need {size_in_words(num_bytes)} of memory ({'; '.join(map(str, needs))}), and "
            f"this machine has {size_in_words(available)}; {smaller}"
        )
