"""The paper's Practical Example I, Bayesian MNIST: a digit, a digit of a class never seen, and white noise.

    CREDO_DATA=folder python examples/mnist.py --out figures

The program is in `credo.examples.mnist`; `credo example mnist` runs it too.
"""

import typer

from credo.cli.example import mnist

if __name__ == "__main__":
    typer.run(mnist)
