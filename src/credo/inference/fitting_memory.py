"""Runs that do not fit into memory are refused, with settings that would."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from credo.data import Data, FileData
from credo.inference.method import Method
from credo.inference.needs import bytes_allowed, bytes_together, refusal
from credo.models.densities import FEW_INPUTS
from credo.models.program import Model

# The settings that memory grows with, those first that cost the least to give up.
GROWING = ("batch_size", "num_chains", "members", "num_samples")


def refuse_if_too_large(runs: Sequence[tuple[Method, Model]], data: Data | FileData) -> None:
    """Refuse runs of a method, each on a bound model, that would not fit into memory one after another."""
    # Of a few rows, only what is stored can be large.
    seen = data if isinstance(data, FileData) or data.x.size > FEW_INPUTS else None
    needs = [method.describe(model, seen) for method, model in runs]
    if bytes_together(needs) <= bytes_allowed():
        return
    method, model = runs[0]
    fitting = " or ".join(_that_fit(method, model, seen)) if len(runs) == 1 else ""
    raise refusal(type(method).__name__, needs, f"{fitting} would fit; or " * bool(fitting) + method.words.if_too_large)


def _that_fit(method: Method, model: Model, data: Data | FileData | None) -> Iterator[str]:
    """Settings with which the run would fit, each by itself: the largest among halves of what it has."""
    own = {one.name for one in fields(method)}
    for name in (name for name in GROWING if name in own):
        value: Any = getattr(method, name) or (data.size if data is not None else 1)
        while value > 1:
            value //= 2
            try:
                needs = replace(method, **{name: value}).describe(model, data)
            except ValueError:  # there are methods that need more of it
                break
            if needs.total_bytes <= bytes_allowed():
                yield f"{name}={value}"
                break
