"""Chains on several processes: each has those of its lanes, and now and then all tell each other how far they are.

Between two meetings no chain waits for another. After one, every process knows the records of all chains, as if it had
run them itself: the first writes them down, and all end with the same outcome.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from credo._processes import exchanged
from credo.inference.engine.chain import Chain
from credo.inference.engine.checkpoint import RECORDS, filled, named
from credo.typing import Tree

# Between two meetings. A process waits at each for the chunk that another has begun: at most a twentieth of this.
SECONDS_PER_ROUND = 5.0
COUNTS = ("step", "num_kept", "records_per_chunk", "failed_at", "finished")


class Told(NamedTuple):
    """What a process tells of a chain: where it stands, its state, and its records since the last time."""

    counts: dict[str, Any]
    state: dict[str, np.ndarray]
    records: dict[str, list[Tree]]


class Meeting:
    """The meetings of one run."""

    def __init__(self, chains: Sequence[Chain]) -> None:
        self.chains = chains
        # How many pieces of its records all know, of each chain.
        self.known = [dict.fromkeys(RECORDS, 0) for _ in chains]

    def share(self, own: Sequence[Chain], interrupted: bool = False) -> bool:
        """Tell all about some chains, and hear about the others; whether any process was interrupted.

        Arguments:
            own: those that no other process tells about.
        """
        mine = {chain.index for chain in own}
        told = exchanged((interrupted, {chain.index: self._told(chain) for chain in own}))
        for _, parts in told:
            for index, part in parts.items():
                chain = self.chains[index]
                # What a lane of several processes does, each of them knows; not what a folder held.
                is_known = chain.lane.is_mine and chain.step == part.counts["step"]
                if index not in mine and not is_known:
                    self._hear(chain, part)
        self.known = [{kind: len(getattr(chain, kind)) for kind in RECORDS} for chain in self.chains]
        return any(was_interrupted for was_interrupted, _ in told)

    def _told(self, chain: Chain) -> Told:
        state = dict(named(chain.state))
        records = {kind: getattr(chain, kind)[self.known[chain.index][kind] :] for kind in RECORDS}
        return Told({name: getattr(chain, name) for name in COUNTS}, state, records)

    def _hear(self, chain: Chain, told: Told) -> None:
        for name, value in told.counts.items():
            setattr(chain, name, value)
        chain.state = filled(Path("another process"), chain.state, told.state)
        for kind, pieces in told.records.items():
            getattr(chain, kind).extend(pieces)
