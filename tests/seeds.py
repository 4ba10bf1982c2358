"""All statistical tests with other seeds and both compile modes: prints the share of runs in which each one fails.

    python -m tests.seeds [--num-seeds 20] [files and options for pytest]

A test that keeps its budget fails in none of them, and neither does a negative control: there it is the broken twin
that must be caught, whatever the seed.
"""

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

# What XLA does by itself, and what the Makefile asks for to compile in less time; results differ in their last bits.
MODES = {"default": "", "quick": "--xla_cpu_use_fusion_emitters=false"}

# Of each test, for each mode: whether it failed, seed by seed.
Outcomes = dict[str, dict[str, list[bool]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-seeds", type=int, default=20)
    options, for_pytest = parser.parse_known_args()
    outcomes: Outcomes = defaultdict(lambda: {mode: [] for mode in MODES})
    for mode, flags in MODES.items():
        # The seed of the other commands is 0.
        seeds = ["--seed", "1", "--num-seeds", str(options.num_seeds)]
        for name, failed in run([*seeds, *for_pytest], flags):
            outcomes[name][mode].append(failed)
    print(table(outcomes))
    sys.exit(any(share(by_mode) for by_mode in outcomes.values()))


def run(arguments: list[str], flags: str) -> list[tuple[str, bool]]:
    """The name of each test, without its seed, and whether it failed. A process holds one compile mode."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-m", "statistical", "--tb=line", f"--junitxml={report}", *arguments]
        subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, check=False)
        cases = ElementTree.parse(report).iter("testcase")
    found = [case for case in cases if case.find("skipped") is None]
    return [(name_of(case), any(case.find(kind) is not None for kind in ("failure", "error"))) for case in found]


def name_of(case: ElementTree.Element) -> str:
    file = case.get("classname", "").removeprefix("tests.").replace(".", "/")
    return f"{file}::{re.sub(r'seed[0-9]+-?|-seed[0-9]+', '', case.get('name', ''))}".replace("[]", "").replace(
        "-]", "]"
    )


def share(by_mode: dict[str, list[bool]]) -> float:
    failed = [one for runs in by_mode.values() for one in runs]
    return sum(failed) / len(failed)


def table(outcomes: Outcomes) -> str:
    """A row per test, those that fail most often first."""
    ordered = sorted(outcomes.items(), key=lambda item: (-share(item[1]), item[0]))
    width = max(map(len, outcomes))
    head = f"{'test':{width}}  " + "".join(f"{mode:>9}" for mode in MODES) + "    share"
    rows = [
        f"{name:{width}}  " + "".join(f"{f'{sum(runs)}/{len(runs)}':>9}" for runs in by_mode.values())
        + f"  {share(by_mode):7.1%}"
        for name, by_mode in ordered
    ]  # fmt: skip
    total = sum(len(runs) for by_mode in outcomes.values() for runs in by_mode.values())
    return "\n".join([head, *rows, f"{len(outcomes)} tests, {total} runs"])


if __name__ == "__main__":
    main()
