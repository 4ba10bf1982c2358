"""Pickles of what users wrote: by its name where it has one, else its code."""

import pickle
from typing import Any

import cloudpickle


def carried(what: str, value: Any) -> Any:
    """The value, or what stands for it in a pickle and becomes the value again.

    `pickle` knows functions by their name alone, and JAX's not even so: what it refuses is left to cloudpickle, with
    which joblib, Dask and Ray carry functions too.

    Arguments:
        what: the value is, for the error where neither can.
    """
    try:
        pickle.dumps(value)
    except Exception:  # of whatever kind: each refusal has another
        try:
            return _ByCode(cloudpickle.dumps(value))
        except Exception as error:
            raise pickle.PicklingError(
                f"{what} does not pickle: {error}; save the posterior, and load it where it is needed: "
                "credo.load(folder, network=…) or credo.load(folder, model=…)"
            ) from error
    return value


class _ByCode:
    """What pickles as `content`, another pickle, and is what that holds once it is loaded."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.content,)
