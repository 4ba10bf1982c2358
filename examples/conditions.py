"""What is known of a function, as a prior: it rises, it is even, it obeys a differential equation.

    python examples/conditions.py --out figures

The program is in `credo.examples.conditions`; `credo example conditions` runs it too.
"""

import typer

from credo.cli.example import conditions

if __name__ == "__main__":
    typer.run(conditions)
