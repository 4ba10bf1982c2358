"""How a run ends: with the records of all chains side by side, with a warning, or with an error."""

import warnings

import jax
import numpy as np

from credo.inference.engine.chain import Chain, side_by_side
from credo.inference.method import Method
from credo.inference.outcome import NonFiniteError, Outcome
from credo.inference.plan import Plan
from credo.models.program import Model
from credo.typing import Batch, Tree


def collected(chains: list[Chain], data: Batch, seconds: float, seed: int, interrupted: bool) -> Outcome:
    """Chains side by side, cut to the shortest: an interrupted run must stay a rectangle."""

    def join(pieces: list[list[Tree]]) -> Tree:
        if not all(pieces):
            return None
        whole = [jax.tree.map(lambda *parts: np.concatenate(parts), *piece) for piece in pieces]
        shortest = min(len(jax.tree.leaves(tree)[0]) for tree in whole) if jax.tree.leaves(whole[0]) else 0
        return jax.tree.map(lambda *leaves: np.stack([leaf[:shortest] for leaf in leaves]), *whole)

    states = side_by_side([chain.state for chain in chains])
    draws = join([chain.draws for chain in chains])
    infos = join([chain.infos for chain in chains])
    warmup = join([chain.warmup_infos for chain in chains])
    return Outcome(states, draws, infos, warmup, data, seconds, seed, interrupted)


def tell_interrupted(chains: list[Chain], plan: Plan) -> None:
    """Warn of how much there is; with nothing, say that."""
    kept = min(chain.num_kept for chain in chains)
    if kept == 0:
        raise KeyboardInterrupt("interrupted during warm-up: nothing has been drawn yet")
    warnings.warn(
        f"interrupted: the result holds the {kept} of {plan.num_records_in_all} records per chain that were done",
        stacklevel=4,
    )


def failure(method: Method, model: Model, step: int, result: Outcome) -> NonFiniteError:
    """The error of a run that went non-finite, with what there is of it."""
    posterior = method.posterior(model, result) if result.infos is not None else None
    kept = "error.posterior holds the last good state. " if posterior is not None else ""
    return NonFiniteError(
        f"{type(method).__name__} went non-finite at step {step}. {kept}To mend it: {method.words.if_non_finite}.",
        step,
        posterior,
    )
