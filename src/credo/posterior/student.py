"""Students: one network in place of all draws, whose outputs are a whole p(y | x, D)."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo._files import named
from credo._precision import working_precision
from credo._schema import checked
from credo.data import Scaling
from credo.diagnostics import Diagnostics
from credo.diagnostics.student import StudentEvidence, diagnose_student
from credo.models.program import Model
from credo.models.student import Head, head_from_config
from credo.posterior.base import BasePosterior, Provenance, at_least_one
from credo.posterior.saving import Parts, Stored
from credo.posterior.student_predictive import student_predictive
from credo.predictive import Predictive
from credo.predictive.marginal import rows_by_block
from credo.typing import Array, Key, Theta


@dataclass(frozen=True, eq=False)
class Student(BasePosterior):
    """A network that has learned a teacher's answers: one pass in place of one for each draw. See `credo.distill`.

    Its weights are a point; what it knows of its teacher's uncertainty is in its outputs, row by row. How the functions
    of the teacher go together at several rows it does not know.

    Arguments:
        model: `credo.models.student`, bound to what the teacher said.
        theta: the weights.
        provenance: the teacher's method stands in it.
        trace: figures of the training by step, each (1, steps).
        evidence: how far its answers are from the teacher's; None where nobody has compared them.
        scaling: between the user's units and those of the network.
        probes: a few inputs, in the user's units.

    >>> import credo
    >>> model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.3)
    >>> teacher = credo.fit(model, credo.datasets.gap(20), credo.ClosedForm())
    >>> student = credo.distill(teacher, "linear", credo.datasets.gap(20), method=credo.MAP(num_steps=20))
    >>> type(student).__name__, student.predict([[0.0]]).mean.shape
    ('Student', (1,))
    """

    stored_as: ClassVar[str] = "student"

    model: Model
    theta: dict[str, np.ndarray]
    provenance: Provenance
    trace: dict[str, np.ndarray] | None = None
    evidence: StudentEvidence | None = None
    scaling: Scaling = field(default_factory=Scaling)
    probes: np.ndarray | None = None

    @property
    def head(self) -> Head:
        """What the outputs mean."""
        return head_from_config(self.model.config["head"])  # type: ignore[index]

    @property
    def num_bytes(self) -> int:
        """What the weights take to keep, in memory."""
        return sum(leaf.nbytes for leaf in self.theta.values())

    def __repr__(self) -> str:
        return f"Student({self.model.num_parameters:,} numbers, {self._made})"

    def sample(self, key: Key, num: int) -> Theta:
        """The weights, `num` times: a student is one network."""
        num = at_least_one(num=num)
        return {name: np.broadcast_to(leaf, (num, *leaf.shape)) for name, leaf in self.theta.items()}

    def outputs(self, x: Any) -> np.ndarray:
        """The outputs of the network, (rows, outputs): everything that it says of each row."""
        inputs = np.asarray(self.scaling.inputs(self.inputs(x)), working_precision())
        return rows_by_block(partial(_outputs, self.model, self.theta), [inputs], num_passes=1)

    def predict(self, x: Any, *, num_draws: int | None = None, of: str | None = None) -> Predictive:
        """What the student says of p(y | x, D), from one pass of the network.

        Arguments:
            x: inputs in the user's units, (rows, …) as in training.
            num_draws: a student has none to choose from; taken so that it answers as other posteriors do.
            of: "y", the only site that a student has.
        """
        if of is not None:
            return self.about(of).predict(x)
        at_least_one(num_draws=num_draws, default=1)
        return student_predictive(self.head, self.outputs(x), self.scaling)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """How far the student is from its teacher, and a verdict."""
        return diagnose_student(self.model.num_parameters, self.evidence)

    # -- storage -------------------------------------------------------------------------------------------

    def to_parts(self) -> Parts:
        evidence = None if self.evidence is None else self.evidence._asdict()
        return {"evidence": evidence}, named(theta=self.theta, trace=self.trace)

    @classmethod
    def from_parts(cls, stored: Stored, **common: Any) -> Self:
        found = stored.field("evidence", dict[str, Any] | None)
        evidence = None
        if found is not None:
            # A named tuple is a list to whoever checks it.
            values = [found.get(name) for name in StudentEvidence._fields]
            evidence = checked(stored.source, values, StudentEvidence)
        return cls(theta=stored.theta("theta", common["model"]), evidence=evidence, **common)


@partial(jax.jit, static_argnums=0)
def _outputs(model: Model, theta: Theta, x: Array) -> Array:
    found: Any = model.predictive(theta, x)
    return jnp.asarray(found.outputs)
