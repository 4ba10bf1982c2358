"""The No-U-Turn sampler: Hamiltonian Monte Carlo that chooses the length of each trajectory by itself.

Paper, "Markov Chain Monte Carlo", the No-U-Turn sampler (Hoffman & Gelman, 2014).
"""

from dataclasses import dataclass
from typing import ClassVar

from credo._checks import require_at_least
from credo.inference.guide import Guide, Reach
from credo.inference.mcmc import trajectory
from credo.inference.mcmc.hmc import Hamiltonian, HamiltonianState
from credo.inference.sampler import START_WHERE_FINITE
from credo.typing import Key


@dataclass(frozen=True, kw_only=True)
class NUTS(Hamiltonian):
    """The No-U-Turn sampler, the exact method to measure others by.

    Arguments:
        num_warmup: steps that tune the sampler, at most: where they have nothing more to learn, the rest goes nowhere.
        max_depth: a trajectory doubles at most this many times.

    >>> NUTS(num_samples=500, num_chains=2).plan().num_steps
    1500
    """

    guide: ClassVar[Guide] = Guide(
        exact="exact",
        benefits="the posterior itself, tuned by itself, with diagnostics that tell when it failed",
        limits="does not scale to large models or data; stays in the modes where its chains start",
        use_cases="small and critical models; the yardstick for the others",
        stores="every kept draw of theta",
        costs="up to 2^max_depth gradients of all data per draw",
        reaches=Reach(0.1, (0.9, 1.1)),
        if_non_finite=START_WHERE_FINITE,
    )

    max_depth: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, max_depth=self.max_depth)

    def transition(
        self, key: Key, state: HamiltonianState, log_density: trajectory.LogDensity
    ) -> tuple[trajectory.Point, trajectory.Transition]:
        tuning = state.tuning
        return trajectory.nuts(key, state.point, log_density, tuning.step_size, tuning.inverse_mass, self.max_depth)
