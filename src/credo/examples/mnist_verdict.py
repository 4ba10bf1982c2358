"""The verdict of the example "Bayesian MNIST", in numbers and words, next to that of the paper."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credo.evaluation.classes import class_summary
from credo.examples import page
from credo.examples.mnist_images import SEEN, UNSEEN, Images
from credo.predictive import ClassPredictive

# The paper's settings; the page says where others were used.
PAPER_EPOCHS, PAPER_MEMBERS = 10, 10
# A class is recognised from this mean probability on; an answer is spread out if none exceeds the second.
RECOGNISED, SPREAD_OUT = 0.9, 0.5
# Answers to different inputs count as the same up to this sd.
SAME_FOR_ALL = 0.1
# Classes worth naming.
NAMED = 0.05
# An ELBO that has gained more than this share of itself over the last tenth of the steps is still rising; one that has
# lost more is falling.
STILL_MOVING = 0.01

IN_PAPER = {
    f"seen class {SEEN}": "p(4) = 0.98, sd within an input 0.09, across inputs 0.07",
    f"unseen class {UNSEEN}": "mass on 3 (0.45), 8 (0.30) and 9 (0.18), sd within up to 0.34, across up to 0.28",
    "white noise": "spread out, the largest 0.28, within at most 0.16, across at most 0.02: “I don't know” for all",
}


@dataclass(frozen=True)
class Setup:
    """What was trained: images, sizes, the sds of the prior, and the ELBO, (members, steps)."""

    images: Images
    num_train: int
    num_weights: int
    epochs: int
    members: int
    prior: tuple[float, float]
    elbo: np.ndarray


@dataclass(frozen=True)
class Answer:
    """The answer to one set of inputs: three numbers per class, and two uncertainties in nats, averaged.

    Arguments:
        mean, within, across: as in `credo.evaluation.class_summary`, (classes,).
        entropy: of the prediction.
        epistemic: the mutual information, the part that the draws disagree about.
        num_inputs: in the set.
    """

    mean: np.ndarray
    within: np.ndarray
    across: np.ndarray
    entropy: float
    epistemic: float
    num_inputs: int

    @property
    def aleatoric(self) -> float:
        return self.entropy - self.epistemic


def summarised(answer: ClassPredictive) -> Answer:
    """Summarise the prediction on one set."""
    uncertainties = float(answer.entropy.mean()), float(answer.epistemic.mean())
    return Answer(*class_summary(answer), *uncertainties, num_inputs=len(answer))


def judged_seen(answer: Answer) -> str:
    """Is a class that was seen recognised?"""
    mean, within, across = (float(values[SEEN]) for values in (answer.mean, answer.within, answer.across))
    how = "recognised" if mean >= RECOGNISED else "not clearly recognised"
    return f"{how}: p({SEEN}) = {mean:.2f}, sd within an input {within:.2f}, across inputs {across:.2f}."


def judged_unseen(answer: Answer, seen: Answer) -> str:
    """Is an unseen class less certain than a seen one, because the draws disagree?"""
    named = [label for label in np.argsort(-answer.mean) if answer.mean[label] >= NAMED]
    classes = ", ".join(f"{label} ({answer.mean[label]:.2f})" for label in named)
    factor = answer.epistemic / max(seen.epistemic, 1e-9)
    how = "the draws disagree, as they should" if factor > 2 else "the draws agree on a wrong answer: overconfident"
    return (
        f"mass on {classes}; sd within up to {answer.within.max():.2f}, across up to {answer.across.max():.2f}. Its "
        f"epistemic uncertainty is {answer.epistemic:.2f} nats, {factor:.1f} times that of the seen class: {how}."
    )


def judged_noise(answer: Answer, unseen: Answer) -> str:
    """Is the answer to noise "I don't know", and the same for every input?"""
    largest, across = float(answer.mean.max()), float(answer.across.max())
    spread = "spread out" if largest < SPREAD_OUT else "not spread out"
    same = "the same answer for every input" if across <= SAME_FOR_ALL else "answers that depend on the input"
    more = "more" if answer.entropy > unseen.entropy else "less"
    return (
        f"{spread}, the largest {largest:.2f}; sd within at most {answer.within.max():.2f}, across at most "
        f"{across:.2f}: {same}. The prediction has {answer.entropy:.2f} nats of entropy (of at most "
        f"{np.log(len(answer.mean)):.2f}), {more} than for the unseen class."
    )


def written(setup: Setup, found: Mapping[str, Answer], *, accuracy: float, quick: bool) -> str:
    """The page of the example, in Markdown."""
    seen, unseen, noise = found
    said = {
        seen: judged_seen(found[seen]),
        unseen: judged_unseen(found[unseen], found[seen]),
        noise: judged_noise(found[noise], found[unseen]),
    }
    lines = [
        "# Bayesian MNIST: a digit, an unknown digit, and noise",
        _trained(setup, accuracy),
        *(["**Far too little training (quick): the numbers mean nothing yet.**"] if quick else []),
        "## Verdict",
        "\n".join(f"- **{name}**: {text} *The paper:* {IN_PAPER[name]}." for name, text in said.items()),
        "## Mean probability of each class (sd within an input / sd across inputs)",
        _probabilities(found),
        "## Uncertainty of the prediction, nats",
        _uncertainties(found),
    ]
    return "\n\n".join(lines)


def _trained(setup: Setup, accuracy: float) -> str:
    settings = ("epochs", setup.epochs, PAPER_EPOCHS), ("members", setup.members, PAPER_MEMBERS)
    reduced = [f"{word} {given} (the paper: {paper})" for word, given, paper in settings if given != paper]
    weights, biases = setup.prior
    return (
        f"Images: {setup.images.source}. {setup.num_train:,} for training, without class {UNSEEN}. All "
        f"{setup.num_weights:,} weights are stochastic; prior N(0, {weights:g}²), biases N(0, {biases:g}²); an "
        f"ensemble of {setup.members} mean-field posteriors, {setup.epochs} epoch(s).\n\n"
        + (f"Unlike the paper: {'; '.join(reduced)}.\n\n" if reduced else "")
        + f"{_convergence(setup)} Accuracy on test images of the classes it has seen: {accuracy:.1%}."
    )


def _convergence(setup: Setup) -> str:
    """Whether training has converged."""
    tenth = max(setup.elbo.shape[1] // 10, 1)
    before, after = (
        float(part.mean()) / setup.num_train for part in (setup.elbo[:, -2 * tenth : -tenth], setup.elbo[:, -tenth:])
    )
    figures = f"{after:.2f} nats per image over the last tenth of the steps and {before:.2f} before".replace("-", "−")
    return f"The ELBO, {figures}, {direction(before, after)}."


def direction(before: float, after: float) -> str:
    """Where an ELBO is going, in words.

    >>> direction(-6.27, -7.46)
    'is falling: the steps are too large for the noise of the gradients'
    """
    gain = (after - before) / abs(before)
    if gain > STILL_MOVING:
        return "is still rising: longer training would change the figures"
    if gain < -STILL_MOVING:
        return "is falling: the steps are too large for the noise of the gradients"
    return "has stopped rising"


def _probabilities(found: Mapping[str, Answer]) -> str:
    num_classes = len(next(iter(found.values())).mean)
    rows = [
        [
            str(label),
            *(f"{one.mean[label]:.2f} ({one.within[label]:.2f} / {one.across[label]:.2f})" for one in found.values()),
        ]
        for label in range(num_classes)
    ]
    return page.table(["class", *found], rows)


def _uncertainties(found: Mapping[str, Answer]) -> str:
    rows = [
        [name, f"{one.num_inputs:,}", *(f"{part:.2f}" for part in (one.entropy, one.epistemic, one.aleatoric))]
        for name, one in found.items()
    ]
    return page.table(["inputs", "number", "entropy", "epistemic", "aleatoric"], rows)
