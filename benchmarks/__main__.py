"""`python -m benchmarks [NAME …]`: run all benchmarks, or those named; one alone may be given its own options.

    python -m benchmarks vi sampling
    python -m benchmarks uci --sets boston,yacht --splits 5
    python -m benchmarks supervision --noisy

`uci` takes hours, `compression`, `active` and `optimise` half an hour: they run only where they are named.
"""

import sys
from importlib import import_module
from itertools import takewhile

BENCHMARKS = (
    "mcmc",
    "vi",
    "vi_quality",
    "evaluation",
    "sampling",
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
    "uci",
)
WITH_OPTIONS = (
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
)
LONG = ("uci", "compression", "active", "optimise")


def main() -> None:
    words = sys.argv[1:]
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    options = words[len(names) :]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if not options:
        for name in names or [name for name in BENCHMARKS if name not in LONG]:
            import_module(f"benchmarks.{name}").main()
        return
    if len(names) != 1 or names[0] not in WITH_OPTIONS:
        sys.exit(f"options ({' '.join(options)}) are for one of {', '.join(WITH_OPTIONS)} alone")
    import_module(f"benchmarks.{names[0]}").main(options)


if __name__ == "__main__":
    main()
