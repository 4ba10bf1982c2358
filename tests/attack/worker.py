"""One process of the attack; `harness` starts it and reads what it tells through a pipe."""

import json
import os
import sys
from pathlib import Path

from tests.attack.harness import Piece, work


def main() -> None:
    kind, seed, first, seconds, only_one, folder, pipe = sys.argv[1:]
    piece = Piece(kind, int(seed), int(first), float(seconds), only_one == "1")
    with os.fdopen(int(pipe), "w", buffering=1) as told:
        os.set_inheritable(told.fileno(), False)
        work(piece, Path(folder), lambda report: print(json.dumps(report), file=told))
        told.flush()
        # Threads of a case that hangs, and what forked children share with us, are no reason to wait at the end.
        os._exit(0)


if __name__ == "__main__":
    main()
