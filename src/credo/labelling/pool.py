"""A pool: items that wait for a label, as a model sees them and as a person does."""

import hashlib
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

# Of what an item holds, so many hexadecimal digits tell it from any other: 64 bits.
DIGEST_DIGITS = 16


@dataclass(frozen=True, eq=False)
class Pool:
    """Items that wait for a label.

    Arguments:
        path: of the file or folder that they come from.
        ids: one name for each, the same whenever the pool is read.
        x: what a model sees of them, (items, …).
        digests: of what each holds: a label is kept for what was labelled, not for a name or a place.
        given: labels that some have already, by item.
    """

    path: Path
    ids: tuple[str, ...]
    x: np.ndarray
    digests: tuple[str, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    kind: ClassVar[str]
    # That suits the items, as for `credo.networks.from_text`.
    network: ClassVar[str]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each item stands in `ids` and `x`."""
        return {item: place for place, item in enumerate(self.ids)}

    def place(self, item: str) -> int:
        """Where an item stands; a ValueError if there is none of that name."""
        if item not in self.places:
            raise ValueError(f"item {item!r} is not in {self.path}, which holds {len(self):,} items")
        return self.places[item]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields of a row of a table."""
        return ()

    def fields(self, item: str) -> tuple[tuple[str, str], ...]:
        """The names and values of a row of a table."""
        return ()

    def text(self, item: str) -> str:
        """A line of text."""
        return ""

    def image(self, item: str) -> tuple[bytes, str]:
        """The bytes of an image and their MIME type, such as image/png."""
        raise ValueError(f"{self.path} holds no images, but items of kind {self.kind!r}")


def digest(*parts: bytes | str) -> str:
    """Of what an item holds.

    >>> digest("Bern", "3") == digest("Bern3")
    False
    """
    found = hashlib.sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        # Its length first: parts that are cut elsewhere are others.
        found.update(len(content).to_bytes(8, "big"))
        found.update(content)
    return found.hexdigest()[:DIGEST_DIGITS]


def numbered(num: int) -> tuple[str, ...]:
    """Names of items that have none: 1, 2, …"""
    return tuple(str(number) for number in range(1, num + 1))


def require_items(path: Path, items: Sized, hint: str) -> None:
    """Refuse a pool without items."""
    if not len(items):
        raise ValueError(f"{path} holds nothing to label; {hint}")
