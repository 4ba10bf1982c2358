"""Bayesian MNIST: what does a network say about a digit that it has never seen, and about white noise?

Paper, "Practical Example I: Bayesian MNIST". An ensemble of mean-field posteriors over all weights of a small
convolutional network is trained without one class, and asked about a class it knows, about the class it does not, and
about noise.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import credo
from credo.examples import mnist_verdict, page
from credo.examples.mnist_images import UNSEEN, Images, load, questions
from credo.plot.fan_row import fan_row
from credo.plot.images import images

BATCH_SIZE, LEARNING_RATE, NUM_DRAWS = 64, 5e-3, 50
# Standard deviations of the prior, of weights and of biases.
PRIORS = {"wide": (5.0, 25.0), "narrow": (1.0, 5.0)}
# q starts almost as a point: it first finds a mode, then widens.
INITIAL_SCALE = 1e-3


@dataclass(frozen=True)
class Settings:
    """How much to compute, and under which prior.

    Arguments:
        epochs: passes over the training images; None takes the number that suits them.
        members: of the ensemble.
        prior: "wide" is N(0, 5²) on weights and N(0, 25²) on biases, "narrow" N(0, 1) and N(0, 5²).
        max_rows: the most training images to use; None uses all.
    """

    epochs: int | None = None
    members: int = 10
    prior: Literal["wide", "narrow"] = "wide"
    max_rows: int | None = None

    def reduced(self) -> "Settings":
        """Far too little, just to see that it works."""
        return replace(self, epochs=1, members=2, max_rows=20 * BATCH_SIZE)


def main(
    out: Path, *, data: Path | None = None, quick: bool = False, seed: int = 0, settings: Settings | None = None
) -> list[Path]:
    """Train, predict, draw and judge; returns the files written.

    Arguments:
        out: folder for the figures and the verdict.
        data: folder that holds `mnist/`; by default that of the environment variable CREDO_DATA, and without it the
            digits embedded in scikit-learn.
        quick: far too little training, just to see that it works.
        settings: how much to compute.
    """
    chosen = settings or Settings()
    chosen = chosen.reduced() if quick else chosen
    given = load(data)
    # Fail before the training if the folder cannot be written.
    out.mkdir(parents=True, exist_ok=True)
    page.say(f"Images: {given.source}.")
    began = time.perf_counter()
    posterior, setup = trained(given, chosen, seed)
    page.say(f"Trained in {time.perf_counter() - began:.0f} s; asking …")

    asked = questions(given.test, seed=seed)
    answers: dict[str, Any] = {name: posterior.predict(x, num_draws=NUM_DRAWS) for name, x in asked.items()}
    known = given.test.select(given.test.y != UNSEEN)
    accuracy = credo.evaluation.accuracy(posterior.predict(known.x, num_draws=NUM_DRAWS), known.y)

    credo.plot.save(fan_row(answers)[0], out / "probabilities.png")
    credo.plot.save(images(asked, answers)[0, 0], out / "images.png")
    credo.plot.save(credo.plot.objective(posterior.trace["elbo"]), out / "training.png")
    found = {name: mnist_verdict.summarised(answer) for name, answer in answers.items()}
    return page.finish(out, mnist_verdict.written(setup, found, accuracy=accuracy, quick=quick))


def trained(given: Images, settings: Settings, seed: int) -> tuple[credo.Mixture, mnist_verdict.Setup]:
    """The ensemble, and what it was trained with."""
    train = given.train.select(given.train.y != UNSEEN)
    if settings.max_rows is not None:
        train = train.select(np.arange(min(settings.max_rows, train.size)))
    weights, biases = PRIORS[settings.prior]
    prior = {"*.bias": credo.priors.normal(biases), "*.kernel": credo.priors.normal(weights)}
    model = credo.models.classification(given.network, prior=prior)
    epochs = settings.epochs or given.epochs
    member = credo.BayesByBackprop(
        num_steps=epochs * train.size // BATCH_SIZE,
        learning_rate=LEARNING_RATE,
        batch_size=BATCH_SIZE,
        initial_scale=INITIAL_SCALE,
        # One draw of the weights for each batch, as in the paper; the quieter "local" takes twice as long here.
        estimator="weights",
    )
    posterior: Any = credo.fit(model, train, credo.DeepEnsemble(member, members=settings.members), seed=seed)
    setup = mnist_verdict.Setup(
        images=given,
        num_train=train.size,
        epochs=epochs,
        members=settings.members,
        prior=(weights, biases),
        num_weights=posterior.model.num_parameters,
        elbo=posterior.trace["elbo"],
    )
    return posterior, setup
