"""Attack credo for a while, and say what broke.

    python -m tests.attack --minutes 60 [--seed N] [--only kind,kind] [--markdown FILE]
    python -m tests.attack --only folders --seed 0 --case 123      plays one case again

Prints a table of the cases by kind, and every distinct failure with the command that repeats it. The exit code is 1 if
there was any.
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.attack import harness
from tests.attack.kinds import KINDS


def main() -> None:
    options = _options()
    names = options.only.split(",") if options.only else list(KINDS)
    if unknown := [name for name in names if name not in KINDS]:
        sys.exit(f"unknown kind {', '.join(unknown)}; there are {', '.join(KINDS)}")
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    results = harness.Results(seed)
    # Memory is the quickest disk, and the one that does not mind.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="credo-attack-", dir=memory))
    try:
        os.environ |= compiled(folder)
        subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.attack.corpus", str(folder)], check=True)
        if options.case is None:
            todo = harness.pieces(seed, options.minutes, names, options.processes)
        else:
            todo = iter([harness.Piece(names[0], seed, options.case, 0.0, only_one=True)])
        harness.run(todo, folder, results, options.processes)
    finally:
        harness.remove(folder)
    _tell(results)
    if options.markdown:
        options.markdown.write_text(harness.markdown(results), encoding="utf-8")
    sys.exit(bool(results.faults))


def compiled(folder: Path) -> dict[str, str]:
    """Where programs are kept once they are compiled: not among those of others, since we kill who writes there."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="of all cases; another one each time by default")
    parser.add_argument("--only", default="", metavar="KIND,KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--case", type=int, help="play this one again, of the only kind")
    parser.add_argument("--processes", type=int, default=2, help="side by side (default: 2)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there, too")
    return parser.parse_args()


def _tell(results: harness.Results) -> None:
    console = Console(width=max(Console().width, 100))
    table = Table(*harness.HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in harness.rows(results):
        table.add_row(*row)
    console.print(table)
    print(f"seed {results.seed}; {len(results.faults)} distinct failures")
    for found in sorted(results.faults.values(), key=lambda one: (one.kind, -one.times)):
        print(f"\n{'-' * 100}\n{found.kind}: {found.fault.name} ({found.times} times)")
        print(f"    {harness.replay(results, found)}\n{found.fault.text.rstrip()}")


if __name__ == "__main__":
    main()
