"""`credo.distill`: a posterior's answers in one network. Paper, "Bayesian teachers"."""

from dataclasses import replace
from typing import Any

import numpy as np

from credo import networks
from credo._checks import require_positive
from credo.data import Data
from credo.diagnostics.student import compare_with_teacher
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.inference.point.map import MAP
from credo.inference.sgmcmc.schedules import Cosine
from credo.models.augmentations import Augmentation, as_augmentation
from credo.models.student import Head
from credo.models.student import student as student_model
from credo.posterior import Posterior, Student
from credo.simplifying.lessons import teach

# Largest noise of inputs beyond D, in standard deviations of each column.
BEYOND = 1.0
# The share of the inputs that judges the student, and how many that are at most.
HELD_OUT, MAX_HELD_OUT = 0.1, 1000
# Training: a small student is cheap, and learns long; of a large one, what a few minutes allow.
BATCH_SIZE, MIN_STEPS, MAX_STEPS, MAX_WORK = 256, 5_000, 30_000, 6e11
# Hidden units that each layer of a student has at least.
UNITS = 50


def distill(
    teacher: Posterior,
    student: Any = None,
    inputs: Any = None,
    *,
    beyond: Any = BEYOND,
    method: Method | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Student:
    """One network that answers as a posterior does, in one pass in place of one for each draw.

        ω̂ = argmin_ω −1/|Θ| Σᵢ E_{p(y | x, thetaᵢ)} log q_ω(f_thetaᵢ(x), y | x),    x in D′, without labels

    Numbers: q = N(f; m, s²) N(y; f, n²), which keeps the mean, the epistemic and the aleatoric variance. Classes: a
    Dirichlet, of which the mean keeps the probabilities, and the precision what the draws disagree about. Outputs of a
    row are taken to be independent of each other.

    Arguments:
        teacher: any posterior: draws, an ensemble, a Gaussian, …
        student: a network with the outputs that q needs (three for each number; one for each class, and one more); text
            such as "mlp:100,100", to which they are added; None for hidden layers like the teacher's, two at least.
        inputs: D′, rows in the user's units: those of the training, and all others there are. `credo.Data` stand for
            their inputs, with and without a label.
        beyond: how far beyond D′ the teacher is asked too: the largest noise, in standard deviations of each column
            (categories stay what they are), around rows and between them; or one of `credo.augmentations`; 0 for not at
            all. D′ itself stays at least half of the lesson.
        method: how to train; `credo.MAP` on minibatches by default.
        seed: the same seed gives the same bits.
        progress: as for `credo.fit`.

    >>> import credo
    >>> data = credo.datasets.gap()
    >>> teacher = credo.fit(credo.models.regression(credo.networks.MLP([10], 1)), data, credo.SGLD(num_samples=20))
    >>> student = credo.distill(teacher, "mlp:10", data, method=credo.MAP(num_steps=100))
    >>> student.predict([[0.0]]).mean.shape
    (1,)

    Reference: Korattikara et al., Bayesian dark knowledge, 2015.
    """
    x = _inputs(teacher, inputs)
    held_out, own = _split(len(x), seed)
    lesson = teach(teacher, x[own], _beyond(beyond), seed=seed, progress=progress)
    data, model = lesson.data, student_model(_network(student, teacher, lesson.head), lesson.head)
    training = _training(method, model.bind(data).num_parameters)
    learned: Any = fit(model, data, training, seed=seed, progress=progress)
    made = replace(learned.provenance, method=_config(teacher, training, len(lesson.x)))
    theta = {name: leaf[0, -1] for name, leaf in learned.theta.items()}
    # Without the trace of the training, which would take many times the bytes of the network.
    columns = teacher.model.rows.columns if teacher.model.rows else None
    own = replace(learned.model, rows=replace(learned.model.rows, columns=columns))
    found = Student(own, theta, made, None, None, lesson.scaling, learned.probes)
    evidence = compare_with_teacher(teacher.predict(x[held_out]), found.predict(x[held_out]), seed)
    return replace(found, evidence=evidence)


def _inputs(teacher: Posterior, inputs: Any) -> np.ndarray:
    """The rows of D′, at least two of them: one to judge by."""
    if inputs is None:
        raise ValueError(
            "inputs: there is nothing to distil on; pass the inputs of the training (data.x), and others like them"
        )
    given = inputs.x if isinstance(inputs, Data) else inputs
    if np.size(given) == 0:
        raise ValueError(f"inputs is empty, of shape {np.shape(given)}; pass rows like those of the training")
    x = teacher.model.inputs_like(inputs)
    if len(x) < 2:
        raise ValueError("inputs has 1 row, and a student needs one to learn from and another to be judged by")
    return x


def _beyond(beyond: Any) -> Any:
    """A number from zero on, or an augmentation."""
    if isinstance(beyond, Augmentation) or callable(beyond):
        return as_augmentation(beyond)
    if beyond != 0:
        require_positive(beyond=beyond)
    return float(beyond)


def _split(num: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to judge by, and rows to learn from."""
    order = np.random.default_rng(seed).permutation(num)
    held_out = min(max(round(HELD_OUT * num), 1), MAX_HELD_OUT)
    return order[:held_out], order[held_out:]


def _network(student: Any, teacher: Posterior, head: Head) -> Any:
    """The network of a student, with outputs for its head where it is left open how many there are."""
    if isinstance(student, str):
        return networks.from_text(student, head.num_outputs)
    return _like(teacher, head) if student is None else student


def _like(teacher: Posterior, head: Head) -> Any:
    """Hidden layers like those of the teacher, at least two of 50 units: a student says more than one draw does."""
    made: dict[str, Any] = teacher.model.config or {}
    config: dict[str, Any] = made.get("network") or {}
    if "features" not in config and "out" in config:
        return networks.from_config(config | {"out": head.num_outputs})
    features = [max(units, UNITS) for units in config.get("features", ())] or [UNITS]
    features = features if len(features) > 1 else features * 2
    return networks.MLP(features, head.num_outputs, activation=config.get("activation", "tanh"))


def _training(method: Method | None, num_parameters: int) -> MAP:
    if method is None:
        num_steps = int(np.clip(MAX_WORK / (num_parameters * BATCH_SIZE), MIN_STEPS, MAX_STEPS))
        return MAP(num_steps=num_steps, learning_rate=Cosine(1e-2, num_steps), batch_size=BATCH_SIZE)
    if not isinstance(method, MAP):
        raise ValueError(
            f"method is {type(method).__name__}, and a student is one network, which credo.MAP() or credo.MLE() trains"
        )
    return method


def _config(teacher: Posterior, method: MAP, num_inputs: int) -> dict[str, Any]:
    """How the student came about, as JSON."""
    training = method.to_config()
    return {"name": "Distillation", "teacher": teacher.provenance.method, "training": training, "inputs": num_inputs}
