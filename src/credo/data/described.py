"""Data in one line: how many rows, which columns, which targets."""

from typing import Any


def described(data: Any) -> str:
    """What a set holds, in words."""
    names = data.names or ()
    columns = ", ".join(names) if 0 < len(names) <= 4 else f"shape {data.x.shape[1:]}"
    known = data.y[data.observed]
    kind = "float" if data.y.dtype.kind == "f" else f"labels {known.min()} to {known.max()}"
    target = " ".join(filter(None, [data.target, f"[{data.unit}]" if data.unit else None, kind]))
    outputs = f" × {data.y.shape[1]}" if data.y.ndim == 2 else ""
    scaled = "" if data.scaling.is_identity else "; standardised"
    num_bare, num_censored = data.size - data.num_labelled, 0 if data.censored is None else data.censored.sum()
    rows = f"{data.size} rows" + (f", {num_bare} unlabelled" if num_bare else "")
    rows += f", {num_censored} censored" if num_censored else ""
    return f"Data({rows}; x: {columns}; y: {target}{outputs}{scaled})"
