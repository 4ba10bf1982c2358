"""The paper's Practical Example II, the sparse measure: few measurements of nine outputs, one by a broken sensor.

    python examples/sparse.py --out figures

The program is in `credo.examples.sparse`; `credo example sparse` runs it too.
"""

import typer

from credo.cli.example import sparse

if __name__ == "__main__":
    typer.run(sparse)
