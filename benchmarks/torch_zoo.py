"""Networks of PyTorch at full size, beside what `credo.networks.from_torch` makes of them.

    python -m benchmarks --keep docs/figures torch_zoo

Random weights and inputs, two rows; differences of the values and of the gradients of a random sum, beside their size.
"""

from tests.networks.torch_zoo.agreement import FULL, agreement

from benchmarks.printing import console, new_table


def main() -> None:
    columns = ("network", "parameters", "values", "gradients")
    table = new_table("Largest relative differences from PyTorch, of two rows", *columns)
    for name, case in FULL.items():
        found = agreement(*case)
        table.add_row(name, f"{found.num_parameters:,}", f"{found.values:.1e}", f"{found.gradients:.1e}")
        console.print(name, found)
    console.print(table)
