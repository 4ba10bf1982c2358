"""How far variational inference is, at its defaults, from what its family can reach, where that is known.

    python -m benchmarks vi_defaults
    python -m benchmarks vi_defaults --steps 30000 --seeds 4
    CREDO_DATA=folder python -m benchmarks vi_defaults --nets

Eleven regressions that are linear in six weights: of different numbers of rows, noises, priors, scales of the inputs,
and condition numbers of their covariance. For a posterior N(m, Σ) the best diagonal Gaussian is N(m, diag(1/(Σ⁻¹)ᵢᵢ)),
and the full family holds Σ. Tables have the largest error over weights and seeds. On networks, where
nothing is known, what was climbed at its end and the test log-likelihood, with a MAP at a constant rate beside.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

import credo
from benchmarks.printing import console, new_table
from credo.inference.method import Method

NUM_STEPS, NUM_FEATURES = 8_000, 5


@dataclass(frozen=True)
class Regression:
    """A linear regression on inputs N(0, C).

    Arguments:
        rows: how many.
        noise, prior: sds of the noise and of each weight.
        condition: number of C.
        scale: root of the mean variance of the inputs.
    """

    rows: int = 300
    noise: float = 0.5
    prior: float = 1.0
    condition: float = 10.0
    scale: float = 1.0

    def posed(self, seed: int) -> "Posed":
        """Rows of data, and the exact posterior."""
        rng = np.random.default_rng(seed)
        turn, _ = np.linalg.qr(rng.normal(size=(NUM_FEATURES, NUM_FEATURES)))
        root = turn * np.geomspace(1, self.condition**-0.5, NUM_FEATURES) @ turn.T
        mixed = rng.normal(size=(self.rows, NUM_FEATURES)) @ root
        x = self.scale * mixed / np.sqrt(np.mean(np.sum(root**2, axis=0)))
        design = np.column_stack([x, np.ones(self.rows)])
        weights = self.prior * rng.normal(size=NUM_FEATURES + 1)
        y = design @ weights + self.noise * rng.normal(size=self.rows)
        precision = np.eye(NUM_FEATURES + 1) / self.prior**2 + design.T @ design / self.noise**2
        net, prior = credo.networks.MLP([], out=1), credo.priors.normal(self.prior)
        model = credo.models.regression(net, noise=self.noise, prior=prior)
        mean = np.linalg.solve(precision, design.T @ y / self.noise**2)
        return Posed(model, credo.Data(x, y), mean, precision)


class Posed(NamedTuple):
    """A model, its data, and the mean and precision of its posterior: of the weights, and then of the bias."""

    model: credo.Model
    data: credo.Data
    mean: np.ndarray
    precision: np.ndarray

    def sds(self, family: str) -> np.ndarray:
        """Of the best q of a family."""
        if family == "full":
            return np.sqrt(np.diag(np.linalg.inv(self.precision)))
        return 1 / np.sqrt(np.diag(self.precision))


PROBLEMS = {
    "plain": Regression(condition=1.0),
    "correlated": Regression(condition=30.0),
    "condition 100": Regression(condition=100.0),
    "30 rows": Regression(rows=30),
    "little noise": Regression(rows=1000, noise=0.05),
    "much noise": Regression(rows=100, noise=3.0),
    "wide prior": Regression(prior=5.0),
    "narrow prior": Regression(noise=0.1, prior=0.1),
    "large inputs": Regression(noise=1.0, scale=10.0),
    "small inputs": Regression(noise=0.3, prior=3.0, condition=100.0, scale=0.3),
    "condition 1,000": Regression(condition=1000.0),
}


def main(words: Sequence[str] = ()) -> None:
    """Known posteriors, or networks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks vi_defaults")
    parser.add_argument("--steps", type=int, default=NUM_STEPS, help="of each fit")
    parser.add_argument("--seeds", type=int, default=1, help="of each problem")
    parser.add_argument("--nets", action="store_true", help="networks of 50 units in place of known posteriors")
    options = parser.parse_args(words)
    if options.nets:
        nets()
    else:
        known_posteriors(options.steps, options.seeds)


def known_posteriors(steps: int, seeds: int) -> None:
    """A table for each method."""
    methods: dict[str, Method] = {
        "diagonal": credo.BayesByBackprop(num_steps=steps),
        "full": credo.BayesByBackprop(family="full", num_steps=steps),
        "IVON": credo.IVON(num_steps=steps),
    }
    for name, method in methods.items():
        columns = ("problem", "means, off by sds", "sds, least", "sds, largest", "seeds called unsettled")
        table = new_table(f"{name}, {steps:,} steps, {seeds} seeds", *columns)
        for place, (problem, regression) in enumerate(PROBLEMS.items()):
            posed = regression.posed(place)
            fits = [credo.fit(posed.model, posed.data, method, seed=seed) for seed in range(seeds)]
            found = [errors(posed, name, posterior) for posterior in fits]
            off, least, largest, unsettled = np.array(found).T
            table.add_row(
                problem, f"{off.max():.3f}", f"{least.min():.3f}", f"{largest.max():.3f}", f"{int(unsettled.sum())}"
            )
        console.print(table)


def errors(posed: Posed, family: str, posterior: credo.Gaussian) -> tuple[float, float, float, bool]:
    """Largest error of means, in posterior sds; least and largest sd beside the best; whether the verdict saw any."""
    means, variances = (np.append(tree["head.kernel"], tree["head.bias"]) for tree in posterior.moments())
    off = np.abs(means - posed.mean) / posed.sds("full")
    ratios = np.sqrt(variances) / posed.sds(family)
    return off.max(), ratios.min(), ratios.max(), "has not settled" in posterior.diagnostics.verdict


def nets() -> None:
    """MAP, VI and IVON on the first split of four sets, with all rows in each step and in minibatches."""
    table = new_table(
        "50 tanh units, first split, seed 0", "problem", "method", "batch", "log joint or ELBO", "test log-likelihood"
    )
    gap = credo.datasets.uci_split(credo.datasets.gap(), 0)
    uci = {name: credo.datasets.uci_split(credo.datasets.uci(name), 0) for name in ("yacht", "boston", "energy")}
    for (name, (train, test)), batch_size in product({"gap": gap, **uci}.items(), (None, 32)):
        methods: dict[str, Method] = {
            "MAP, constant rate": credo.MAP(learning_rate=0.01, batch_size=batch_size),
            "MAP": credo.MAP(batch_size=batch_size),
            "diagonal": credo.BayesByBackprop(batch_size=batch_size),
            "IVON": credo.IVON(batch_size=batch_size),
        }
        for label, method in methods.items():
            model = credo.models.regression(credo.networks.MLP([50], out=1, activation="tanh"))
            posterior = credo.fit(model, train, method)
            score = np.mean(posterior.predict(test.x).log_prob(test.y))
            rows = "all" if batch_size is None else str(batch_size)
            table.add_row(name, label, rows, f"{reached(posterior, train):.1f}", f"{score:.3f}")
    console.print(table)


def reached(posterior: credo.Draws | credo.Gaussian, train: credo.Data) -> float:
    """The log joint of a point, or the ELBO of q."""
    if isinstance(posterior, credo.Gaussian):
        elbo = getattr(posterior.evidence, "elbo", None)
        return float("nan") if elbo is None else elbo
    theta = {name: leaf[0, 0] for name, leaf in posterior.theta.items()}
    return float(posterior.model.log_joint(theta, train.batch()))


if __name__ == "__main__":
    main()
