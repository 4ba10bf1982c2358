"""`python -m benchmarks [NAME …]`: run all benchmarks, or those named; one alone may be given its own options.

    python -m benchmarks vi sampling
    python -m benchmarks uci --sets boston,yacht --splits 5
    python -m benchmarks tables --gap --inputs 3
    python -m benchmarks supervision --noisy
    python -m benchmarks --keep docs/figures which noise

The last one keeps the tables as JSON, from which `make docs` makes a page. `uci` and `tables` take hours, `nuts`,
`compression`, `active`, `optimise` and `which` half an hour: they run only where they are named.
"""

import sys
from importlib import import_module
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
    "which",
    "uci",
    "tables",
)
WITH_OPTIONS = (
    "nuts",
    "acceptance",
    "vi_defaults",
    "uci",
    "ood",
    "semi_supervised",
    "supervision",
    "last_layer",
    "closed_form",
    "compression",
    "distillation",
    "simplify",
    "active",
    "labelling",
    "online",
    "drift",
    "labels",
    "optimise",
    "tables",
)
LONG = ("nuts", "uci", "tables", "compression", "active", "optimise", "which")


def main() -> None:
    words = sys.argv[1:]
    kept = Path(words[1]) if words[:1] == ["--keep"] and len(words) > 1 else None
    words = words[2:] if kept else words
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    options = words[len(names) :]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if options and (len(names) != 1 or names[0] not in WITH_OPTIONS):
        sys.exit(f"options ({' '.join(options)}) are for one of {', '.join(WITH_OPTIONS)} alone")
    for name in names or [name for name in BENCHMARKS if name not in LONG]:
        import_module(f"benchmarks.{name}").main(*([options] if options else []))
        if kept:
            keep(kept, name, " ".join(["python -m benchmarks", name, *options]))


if __name__ == "__main__":
    main()
