"""`credo.compress`: a posterior of draws in a hundredth of its bytes, by what loses least."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from credo import random
from credo._checks import require_one_of
from credo._text import size_in_words
from credo.diagnostics.compression import Compression, Trial, advice_on
from credo.posterior import Draws, Flow, Gaussian, Posterior, Quantised
from credo.posterior.base import at_least_one
from credo.simplifying.budget import as_bytes
from credo.simplifying.compressors import COMPRESSORS, DEFAULT, LeftOut, Source
from credo.simplifying.reference import Reference

# Inputs that compressors look at, and inputs set aside to judge them: a loss of 0.01 nats is then known to about 0.002.
MAX_SEEN, MAX_JUDGED = 500, 200
# Of fewer inputs, the share that is set aside.
SHARE_JUDGED = 0.25
FEWEST_INPUTS = 5


def compress(
    posterior: Posterior,
    to: Any = "1%",
    *,
    inputs: Any = None,
    by: str | Sequence[str] | None = None,
    data: Any = None,
    num_draws: int | None = None,
    seed: int = 0,
) -> Posterior:
    """A posterior in fewer bytes, whose predictions are those of the full one as nearly as can be.

        argmin over what fits:   E[log p(y | x, D) − log q(y | x)] + δ²,      y ~ p(y | x, D)

    with δ the relative error of the epistemic sd, both averaged over inputs that no compressor has seen. The paper,
    "Simplifying Bayesian neural networks": to keep a large set of draws is not practical. `small.describe()` tells the
    bytes before and after, and what each compressor that was tried has lost.

    Arguments:
        posterior: draws, as samplers and ensembles leave them behind.
        to: its new size: "1%", 0.01, a number of bytes, or "200 kB".
        inputs: (rows, …) in the user's units, like those to predict on; no targets are needed. Those of `data` by
            default, else the few training inputs that the posterior has kept.
        by: a compressor, or several to choose from: "bf16" and "int8" keep all draws in fewer bits; "coreset" keeps few
            draws, with weights such that they predict what all do, and "coreset+bf16" or "coreset+int8" more of them in
            fewer bits each; "stein" and "stein+int8" keep those that are closest to the posterior by its gradient
            (which takes `data`); "mixture" fits Gaussians, and "generator" a network against a critic. All but the last
            two by default.
        data: what the posterior was fitted to.
        num_draws: how many draws of a Gaussian or a flow to compress.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([5], out=1))
    >>> data = credo.datasets.gap()
    >>> posterior = credo.fit(model, data, credo.SGLD(num_samples=50, num_warmup=50), progress=False)
    >>> small = compress(posterior, to="10%", inputs=data.x, by="coreset+int8")
    >>> posterior.num_bytes >= 10 * small.num_bytes
    True
    """
    draws, num_bytes = draws_of(posterior, num_draws), as_bytes(to, posterior.num_bytes)
    names = (by,) if isinstance(by, str) else tuple(DEFAULT if by is None else by)
    for name in names:
        require_one_of(COMPRESSORS, by=name)
    known = None if data is None else draws.model.like_training(data)
    seen, judged, where = _split(draws, inputs if inputs is not None or known is None else known.x, seed)
    source = Source(draws, Reference(draws, seen, seed), known, seed)
    reference = Reference(draws, judged, seed + 1)
    tried = [_tried(name, source, reference, num_bytes) for name in names]
    trials = tuple(sorted((trial for trial, _ in tried), key=lambda trial: trial.badness))
    best, small = min(tried, key=lambda one: one[0].badness)
    if small is None:
        raise ValueError(
            f"nothing fits into to={to!r}, which is {size_in_words(num_bytes)} "
            f"({'; '.join(map(str, trials))}); ask for another size, or leave the compressor open"
        )
    record = Compression(
        by=best.by,
        bytes_before=posterior.num_bytes,
        bytes_after=small.num_bytes,
        judged_on=where,
        trials=trials,
        advice=advice_on(best),
    )
    return replace(small, provenance=replace(posterior.provenance, compression=record))


def draws_of(posterior: Any, num_draws: int | None) -> Draws:
    """The draws of a posterior; those of a Gaussian or a flow only where it is said how many."""
    if isinstance(posterior, Quantised):
        return posterior.to_draws()
    if isinstance(posterior, Draws):
        return posterior
    if not isinstance(posterior, Gaussian | Flow):
        raise ValueError(
            f"posterior is a {type(posterior).__name__}, and only draws can be compressed, such as credo.NUTS(), "
            "credo.SGLD() and ensembles of credo.MAP() leave; for others, credo.distill trains a student"
        )
    if num_draws is None:
        raise ValueError(
            f"posterior is a {type(posterior).__name__} of {size_in_words(posterior.num_bytes)} and has no draws to "
            "compress: it is small already; pass num_draws=… to compress as many draws of it"
        )
    theta = posterior.sample(random.key(posterior.provenance.seed), at_least_one(num_draws=num_draws))
    leaves = {name: leaf[None] for name, leaf in theta.items()}
    return Draws(posterior.model, leaves, posterior.provenance, scaling=posterior.scaling, probes=posterior.probes)


def _split(draws: Draws, inputs: Any, seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Inputs that compressors may look at, others to judge them on, and these in words."""
    if inputs is None and draws.probes is None:
        raise ValueError("inputs: the posterior has kept no inputs of its own; pass some, like those to predict on")
    x = draws.inputs(draws.probes if inputs is None else inputs)
    if len(x) < FEWEST_INPUTS:
        raise ValueError(f"inputs has {len(x)} rows; pass at least {FEWEST_INPUTS}, like those to predict on")
    order = np.random.default_rng(seed).permutation(len(x))
    num = min(MAX_JUDGED, round(SHARE_JUDGED * len(x)))
    whose = "of the inputs" if inputs is not None else "of the training inputs that it keeps, since none were passed"
    return x[order[num:][:MAX_SEEN]], x[order[:num]], f"{num} rows {whose}, set aside"


def _tried(name: str, source: Source, judged: Reference, num_bytes: int) -> tuple[Trial, Any]:
    began = time.perf_counter()
    try:
        small = COMPRESSORS[name].compress(source, num_bytes)
    except LeftOut as reason:
        return Trial(name, why=str(reason)), None
    seconds = time.perf_counter() - began
    return Trial(name, small.num_bytes, judged.loss(small), seconds), small
