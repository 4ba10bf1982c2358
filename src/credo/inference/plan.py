"""What the engine must know of a method before it runs: counts and flags."""

from dataclasses import dataclass
from typing import Any, Literal

from credo._checks import LARGEST_COUNT

# Chains in lock-step hold at most this many parameters together: their theta, its gradient and two moments, 16 bytes
# per parameter, then stay in a core's second-level cache (512 kB). Measured on MLPs with minibatches of 64, processor
# time per member beside that of a chain alone: 0.3 for 50 parameters, 0.75 for 3,000, 0.9 to 1 from 5,000 on. Past
# 16,000, where no two chains fit, nothing is left to gain.
PARAMETERS_PER_GROUP = 2**15


@dataclass(frozen=True)
class Plan:
    """How long a run is: per chain, `num_warmup` steps and then `num_records` records, one every `thin` steps.

    A record is the figures of a step, and what the method keeps of the state after it: a draw, or nothing.

    Arguments:
        num_cycles: a chain does all of that so many times.
        independent_batches: whether a minibatch may hold the rows of the one before. Those of an epoch are disjoint
            otherwise, and their gradient noise is not white: much of it cancels.
        start: where chains start: "prior" (a draw), "network" (its own values), or a method to run first.
        rows: which rows a chain sees: "all"; "numbered", all with their numbers in the batches; or "resampled", as many
            as there are, drawn with replacement.
        lockstep: whether all steps cost the same, so that chains may run as one axis of one program.
        uses_held_out: whether held-out data can end the run early.
        learns_xi: whether the method itself learns the parameters xi of a prior (`param` sites).
        learns_points: whether it learns the weights of point layers (`credo.priors.point`) as well.
        fixed_density: whether all steps must see the same density: what the likelihood averages over (augmentations) is
            drawn once and for all then, and not afresh in each step.
        sees_all_rows: whether the posterior is made from all rows at once, whatever the steps see.
        acts_inside: whether the method acts inside the network, as masks of dropout do, so that it must be whole.
        leaves_draws: whether the posterior is made of draws of theta, from which another method can start.
    """

    num_records: int
    num_warmup: int = 0
    thin: int = 1
    num_chains: int = 1
    batch_size: int | None = None
    num_cycles: int = 1
    independent_batches: bool = False
    start: Any = "prior"
    rows: Literal["all", "numbered", "resampled"] = "all"
    lockstep: bool = False
    uses_held_out: bool = False
    learns_xi: bool = False
    learns_points: bool = False
    leaves_draws: bool = False
    fixed_density: bool = False
    acts_inside: bool = False
    sees_all_rows: bool = False

    def __post_init__(self) -> None:
        if self.num_steps > LARGEST_COUNT:
            raise ValueError(
                f"a chain would have {self.num_steps:,} steps, and at most {LARGEST_COUNT:,} can be numbered; ask for "
                "fewer steps or samples, or keep them less far apart"
            )

    @property
    def steps_per_cycle(self) -> int:
        return self.num_warmup + self.num_records * self.thin

    @property
    def num_steps(self) -> int:
        """Steps of one chain."""
        return self.num_cycles * self.steps_per_cycle

    @property
    def num_records_in_all(self) -> int:
        """Records of one chain, over all cycles."""
        return self.num_cycles * self.num_records

    def group_size(self, num_parameters: int, num_workers: int) -> int:
        """How many chains share a program: one, unless they can run in lock-step and it pays."""
        if not self.lockstep:
            return 1
        share = -(-self.num_chains // num_workers)
        return max(1, min(share, PARAMETERS_PER_GROUP // max(num_parameters, 1)))

    def chains_at_once(self, num_parameters: int, num_workers: int) -> int:
        """How many chains run at the same time."""
        return min(self.num_chains, num_workers * self.group_size(num_parameters, num_workers))

    def warmup_left(self, step: int) -> int:
        """Steps of warm-up that are still to come in this cycle."""
        return max(self.num_warmup - step % self.steps_per_cycle, 0)

    def num_kept(self, step: int) -> int:
        """Records of a chain that has made so many steps."""
        cycles, own = divmod(step, self.steps_per_cycle)
        return cycles * self.num_records + max(own - self.num_warmup, 0) // self.thin
