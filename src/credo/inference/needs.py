"""The memory that a run will need, known before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from credo._html import InNotebook
from credo._machine import memory_limit
from credo._text import size_in_words

# A run that would need more than this share of the memory there is, is refused before it starts: results are copied
# once as they are put together.
MEMORY_SHARE = 0.5


@dataclass(frozen=True)
class Needs(InNotebook):
    """What a run will hold in memory, known before it starts.

    Arguments:
        stored: what is stored, in words.
        num_bytes: of what is stored.
        data_bytes: of the data, in the units of the model.
        activation_bytes: of the networks that run at once, on the rows that they see at once.
    """

    num_parameters: int
    stored: str
    num_bytes: int
    data_bytes: int = 0
    activation_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """What is stored, the data and the activations."""
        return self.num_bytes + self.passing_bytes

    @property
    def passing_bytes(self) -> int:
        """What is only held while the run lasts."""
        return self.data_bytes + self.activation_bytes

    def __str__(self) -> str:
        said = f"{self.num_parameters:,} parameters; stores {self.stored}: {size_in_words(self.num_bytes)}"
        if not self.passing_bytes:
            return said
        return f"{said}; data: {size_in_words(self.data_bytes)}; activations: {size_in_words(self.activation_bytes)}"


def bytes_allowed() -> float:
    """The most that a run may need."""
    return MEMORY_SHARE * memory_limit().num_bytes


def bytes_together(needs: Sequence[Needs]) -> int:
    """What runs one after another need, all of whose results are kept."""
    return sum(one.num_bytes for one in needs) + max(one.passing_bytes for one in needs)


def refusal(method: str, needs: Sequence[Needs], smaller: str) -> ValueError:
    """That runs of a method do not fit into memory.

    Arguments:
        smaller: what to do instead.
    """
    return ValueError(
        f"{method} would need {size_in_words(bytes_together(needs))} of memory ({'; '.join(map(str, needs))}), and may "
        f"take {MEMORY_SHARE:.0%} of {memory_limit()}; {smaller}"
    )
