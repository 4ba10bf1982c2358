"""Which pages of other libraries the names are on: lists in text, packed into the form that intersphinx reads.

A build has no network, so that the lists are kept here (`inventories/*.txt`), short: the names that credo's pages use.
"""

import zlib
from pathlib import Path

HEADER = "# Sphinx inventory version 2\n# Project: {name}\n# Version: \n# The remainder is compressed using zlib.\n"


def packed(folder: Path, into: Path) -> dict[str, tuple[str, str]]:
    """The mapping that intersphinx takes, of every list in the folder: its first line is where the pages are."""
    into.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for file in sorted(folder.glob("*.txt")):
        address, *lines = file.read_text(encoding="utf-8").splitlines()
        inventory = into / f"{file.stem}.inv"
        entries = "".join(f"{line}\n" for line in lines)
        inventory.write_bytes(HEADER.format(name=file.stem).encode() + zlib.compress(entries.encode()))
        mapping[file.stem] = (address, str(inventory))
    return mapping
