"""`python -m benchmarks [NAME …]`: run all benchmarks, or those named; one alone may be given its own options.

    python -m benchmarks vi sampling
    python -m benchmarks uci --sets boston,yacht --splits 5
    python -m benchmarks tables --gap --inputs 3
    python -m benchmarks supervision --noisy
    python -m benchmarks --keep docs/figures which noise

The last one keeps the tables as JSON, from which `make docs` makes a page; `--keep FILE.json` names the file of one
benchmark. `uci` and `tables` take hours, `nuts`, `compression`, `active`, `optimise` and `which` half an hour, and
`check` compares with what is recorded: they run only where they are named.
"""

import sys
from importlib import import_module
from inspect import signature
from itertools import takewhile
from pathlib import Path

from benchmarks.printing import keep

BENCHMARKS = (
    "mcmc",
    "nuts",
    "acceptance",
    "vi",
    "vi_quality",
    "vi_defaults",
    "evaluation",
    "sampling",
    "images",
    "torch_zoo",
    "noise",
    "laplace",
    "closed_form",
    "conditions",
    "missing",
    "supervision",
    "semi_supervised",
    "augmentation",
    "tasks",
    "last_layer",
    "ood",
    "compression",
    "distillation",
    "simplify",
    "active",
    "labelling",
    "online",
    "drift",
    "labels",
    "optimise",
    "processes",
    "which",
    "targets",
    "scale",
    "uci",
    "tables",
    "check",
)
LONG = ("check", "nuts", "uci", "tables", "compression", "active", "optimise", "which", "scale")


def main() -> None:
    words = sys.argv[1:]
    kept = Path(words[1]) if words[:1] == ["--keep"] and len(words) > 1 else None
    words = words[2:] if kept else words
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    options = words[len(names) :]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if options and len(names) != 1:
        sys.exit(f"options ({' '.join(options)}) are for one benchmark alone")
    if kept and kept.suffix == ".json" and len(names) != 1:
        sys.exit(f"--keep {kept} is the file of one benchmark; name one, or a folder")
    for name in names or [name for name in BENCHMARKS if name not in LONG]:
        run = import_module(f"benchmarks.{name}").main
        if options and not signature(run).parameters:
            sys.exit(f"benchmark {name!r} takes no options; got {' '.join(options)}")
        run(*([options] if options else []))
        if kept:
            file = kept if kept.suffix == ".json" else kept / f"{name}.json"
            keep(file, " ".join(["python -m benchmarks", name, *options]))


if __name__ == "__main__":
    main()
