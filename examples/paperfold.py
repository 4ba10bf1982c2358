"""The paper's Practical Example III, paperfold: a posterior with two modes, and which methods find and weigh them.

    python examples/paperfold.py --out figures

The program is in `credo.examples.paperfold`; `credo example paperfold` runs it too.
"""

import typer

from credo.cli.example import paperfold

if __name__ == "__main__":
    typer.run(paperfold)
