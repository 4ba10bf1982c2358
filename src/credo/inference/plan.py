"""How long a run is, and what it needs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """How long a run is: per chain, `num_warmup` steps and then `num_kept` draws, one every `thin` steps.

    With several cycles a chain does that over and over; `num_kept` draws come from each.
    """

    num_kept: int
    num_warmup: int = 0
    thin: int = 1
    num_chains: int = 1
    batch_size: int | None = None
    num_cycles: int = 1

    @property
    def steps_per_cycle(self) -> int:
        return self.num_warmup + self.num_kept * self.thin

    @property
    def num_steps(self) -> int:
        """Steps of one chain."""
        return self.num_cycles * self.steps_per_cycle

    @property
    def num_draws(self) -> int:
        """Draws that one chain keeps."""
        return self.num_cycles * self.num_kept

    def warmup_left(self, step: int) -> int:
        """Steps of warm-up that are still to come in this cycle."""
        return max(self.num_warmup - step % self.steps_per_cycle, 0)
