"""`python -m benchmarks [NAME …]`: run all benchmarks, or those named."""

import sys
from importlib import import_module

BENCHMARKS = ("mcmc", "vi", "vi_quality", "evaluation")


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    for name in names:
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
