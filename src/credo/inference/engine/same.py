"""What the processes of one fit must have in common before the first step: code, data and settings, as digests."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax

from credo.models.program import Model


def digests(identity: Mapping[str, Any], models: Sequence[Model]) -> dict[str, str]:
    """By name: of what makes a fit the same fit, of what its models compute, and of the source of credo.

    Arguments:
        identity: of the fit, as for its folder.
        models: bound to the data.
    """
    found = {name: _digest(json.dumps(value, sort_keys=True)) for name, value in identity.items()}
    return found | {"program": _digest("".join(map(_computed, models))), "source of credo": _source()}


def _computed(model: Model) -> str:
    """What its log joint density computes, as text."""
    text = str(jax.make_jaxpr(model.log_joint)(model.template, model.example(), key=jax.random.key(0)))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


@cache
def _source() -> str:
    package = Path(__file__).parents[2]
    return _digest("".join(path.read_text() for path in sorted(package.rglob("*.py"))))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
