"""The belief network of a program: nodes, edges and plates, in the paper's symbols.

Paper, figure "PGM symbols": a filled circle is observed, an empty one is latent, a dashed one is deterministic, a
rectangle is a parameter, a frame around nodes is a plate; from the figure of models, a half-filled circle is sometimes
observed. A factor that belongs to no variable is a small square.

The edges come from the program itself. It is traced once, with the name of each site tied to its value; what each
density, factor and deterministic value was computed from are the names that reach it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.ad_checkpoint import checkpoint_name
from jax.interpreters import partial_eval
from numpyro import handlers
from numpyro.primitives import Messenger

from credo._concurrency import alone
from credo._dataflow import walk
from credo._precision import working_precision
from credo.models.sites import is_marginalised
from credo.typing import Array, Program

NodeKind = Literal["input", "parameter", "latent", "observed", "partly", "deterministic", "factor"]
Names = frozenset[str]
Sites = dict[str, dict[str, Any]]
# Tells the names of sites from those that a network gives to values of its own.
_TAG = "site: "
# Wrappers that repeat a distribution, or hide some of its values; what they are computed from is no parent.
_WRAPPERS = dist.Independent | dist.ExpandedDistribution | dist.MaskedDistribution


@dataclass(frozen=True)
class Node:
    """One variable or factor: its name, what it is, and the distribution it is drawn from."""

    name: str
    kind: NodeKind
    distribution: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes, directed edges (parent, child), the names inside each plate, and how often each plate repeats them."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    plates: dict[str, tuple[str, ...]]
    sizes: dict[str, int | str] = field(default_factory=dict)

    def parents(self, name: str) -> tuple[str, ...]:
        """The variables that the factor p(v | parents(v)) is conditioned on."""
        return tuple(parent for parent, child in self.edges if child == name)

    def __str__(self) -> str:
        """The joint density as a product over nodes, one factor per line; inputs and parameters have none."""
        return "\n".join(self._line(node) for node in self.nodes if node.kind not in ("input", "parameter"))

    def _line(self, node: Node) -> str:
        given = ", ".join(self.parents(node.name))
        plates = [plate for plate, members in self.plates.items() if node.name in members]
        suffix = f"   [plate {', '.join(plates)}]" if plates else ""
        if node.kind == "deterministic":
            return f"{node.name} = f({given}){suffix}"
        if node.kind == "factor":
            return f"{node.name} ∝ exp(factor({given})){suffix}"
        seen = ", partly observed" if node.kind == "partly" else ""
        return f"{node.name}{' | ' + given if given else ''} ~ {node.distribution}{seen}{suffix}"


def graph_of(program: Program, x: Array, y: Array | None, inputs: Mapping[str, Any] | None = None) -> Graph:
    """p_xi(v₁, …, vₙ) = Π p_xi(vᵢ | parents(vᵢ)), read off a program (paper, "Probabilistic graphical models").

    Arguments:
        x: a few rows; they stand in the plate `data`, and in the plates around it.
        inputs: further arrays, passed on by name; each stands in the plate of its own name, if there is one.

    >>> import numpyro
    >>> def program(x, y=None, *, u):
    ...     w = numpyro.sample("w", dist.Normal(0, 1))
    ...     numpyro.factor("small", -jnp.mean((w * u) ** 2))
    ...     with numpyro.plate("data", x.shape[0]):
    ...         f = numpyro.deterministic("f", w * x[:, 0])
    ...         numpyro.sample("y", dist.Normal(f, 0.1), obs=y)
    >>> print(graph_of(program, jnp.zeros((2, 1)), jnp.zeros(2), {"u": jnp.zeros(5)}))
    w ~ Normal
    small ∝ exp(factor(w, u))
    f = f(w, x)   [plate data]
    y | f ~ Normal   [plate data]
    """
    if "x" in (inputs or {}):
        raise ValueError("inputs: 'x' is the name of the rows of the data, the second argument; rename that input")
    given = {"x": x, **(inputs or {})}
    sites, sources = _joined(*_followed(program, given, y))
    label = {_input(name): f"input {name}" if name in sites else name for name in given}
    params = [name for name, site in sites.items() if site["type"] == "param"]
    others = [name for name in sites if name not in params]
    nodes = [
        *(Node(name, "input") for name in label.values()),
        *(Node(name, "parameter") for name in params),
        *(Node(name, _kind(sites[name]), _distribution(sites[name])) for name in others),
    ]
    for name in others:
        if is_marginalised(sites[name]):  # y depends on it, though no number does: it is integrated out
            sources["y"] = sources["y"] - sources[name] | {name}
    edges = [
        (label.get(parent, parent), child)
        for child in others
        for parent in (*others, *params, *label)
        if parent in sources[child] - {child}
    ]
    plates, sizes = _plates(sites, {"data" if name == "x" else name: label[_input(name)] for name in given})
    return Graph(tuple(nodes), tuple(edges), plates, sizes)


class _Named(Messenger):
    """Ties the name of each site to its value, and keeps the sites and what they were computed from."""

    def __init__(self) -> None:
        super().__init__(None)
        self.sites: Sites = {}
        self.sources: dict[str, Any] = {}

    def process_message(self, msg: dict[str, Any]) -> None:
        # No number is computed, so any value of the right shape will do; not every distribution can be drawn from.
        if msg["type"] == "sample" and msg["value"] is None:
            dtype = jnp.int32 if msg["fn"].support.is_discrete else working_precision()
            msg["value"] = jnp.zeros(msg["fn"].shape(msg["kwargs"]["sample_shape"]), dtype)

    def postprocess_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] not in ("sample", "param", "deterministic"):
            return
        value, name = msg["value"], msg["name"]
        msg["value"] = _tagged(value, name)
        self.sites[name] = msg
        # The initial value of a param is where learning starts: it has no source.
        if msg["type"] != "param":
            self.sources[name] = value if msg["type"] == "deterministic" else _bare(msg["fn"]).log_prob(msg["value"])


def _followed(program: Program, given: Mapping[str, Array], y: Array | None) -> tuple[Sites, dict[str, Names]]:
    """The sites of a program in order, and the names that reach each of those that are not params."""
    named = _Named()

    def sources(given: Mapping[str, Array]) -> dict[str, Any]:
        values = {name: _tagged(value, _input(name)) for name, value in given.items()}
        with alone(), named, handlers.seed(rng_seed=0):
            program(values.pop("x"), y, **values)
        return named.sources

    closed, shapes = jax.make_jaxpr(sources, return_shape=True)(dict(given))
    reached = walk(closed, [frozenset()] * len(closed.jaxpr.invars), _names)
    by_site = jax.tree.unflatten(jax.tree.structure(shapes), map(_as_names, reached))
    return named.sites, {name: frozenset().union(*jax.tree.leaves(parts)) for name, parts in by_site.items()}


def _names(eqn: Any, inputs: Sequence[Any]) -> list[Names]:
    """The names that reach the outputs of an equation, given those that reach its inputs."""
    if eqn.primitive.name == "name" and eqn.params["name"].startswith(_TAG):
        return [frozenset({eqn.params["name"].removeprefix(_TAG)})]
    names = [_as_names(value) for value in inputs]
    # How JAX drops dead code tells what an output needs, also through calls, branches and loops.
    needs = partial_eval.dce_rules.get(eqn.primitive)
    if needs is None:
        return [frozenset().union(*names)] * len(eqn.outvars)
    used = [needs([other is output for other in eqn.outvars], eqn)[0] for output in eqn.outvars]
    return [frozenset().union(*(one for one, is_used in zip(names, row, strict=True) if is_used)) for row in used]


def _as_names(value: Any) -> Names:
    """Constants have none."""
    return value if isinstance(value, frozenset) else frozenset()


def _tagged(value: Any, name: str) -> Any:
    return checkpoint_name(jax.tree.map(jnp.asarray, value), _TAG + name)


def _input(name: str) -> str:
    """The name that follows an input, other than that of any site."""
    return f" {name}"


def _joined(sites: Sites, sources: Mapping[str, Names]) -> tuple[Sites, dict[str, Names]]:
    """`sample(name, …, obs_mask=…)` is three sites in NumPyro; here it is one, with the observed part's density."""
    halves = {name: (f"{name}_observed", f"{name}_unobserved") for name in sites}
    split = {name: half for name, half in halves.items() if half[0] in sites and half[1] in sites}
    dropped = {half for pair in split.values() for half in pair}
    origin = {name: split[name][0] if name in split else name for name in sites if name not in dropped}
    joined = {name: sources[first] for name, first in origin.items() if first in sources}
    return {name: sites[first] for name, first in origin.items()}, joined


def _plates(sites: Sites, inputs: Mapping[str, str]) -> tuple[dict[str, tuple[str, ...]], dict[str, int | str]]:
    """The members and sizes of the plates; an input stands in the plate that it is given for, and in those around."""
    members: dict[str, list[str]] = {}
    around: dict[str, list[str]] = {}
    sizes: dict[str, int | str] = {}
    for name, site in sites.items():
        # A param without an event_dim is one for all rows, wherever it is declared.
        shared = site["type"] == "param" and site["kwargs"].get("event_dim") is None
        frames = [] if shared else site["cond_indep_stack"]  # the innermost plate is first
        for number, frame in enumerate(frames):
            members.setdefault(frame.name, []).append(name)
            around.setdefault(frame.name, [outer.name for outer in frames[number:]])
            # A model sees a few rows of the data only.
            sizes[frame.name] = "N" if frame.name == "data" else frame.size
    for plate, label in inputs.items():
        for outer in around.get(plate, ()):
            members[outer].insert(0, label)
    return {plate: tuple(names) for plate, names in members.items()}, sizes


def _kind(site: Mapping[str, Any]) -> NodeKind:
    if site["type"] == "deterministic":
        return "deterministic"
    if isinstance(_bare(site["fn"]), dist.Unit):
        return "factor"
    if not site["is_observed"]:
        return "latent"
    return "partly" if _is_masked(site["fn"]) else "observed"


def _distribution(site: Mapping[str, Any]) -> str:
    return type(_bare(site["fn"])).__name__ if _kind(site) in ("latent", "observed", "partly") else ""


def _bare(distribution: Any) -> Any:
    return _bare(distribution.base_dist) if isinstance(distribution, _WRAPPERS) else distribution


def _is_masked(distribution: Any) -> bool:
    if isinstance(distribution, dist.MaskedDistribution):
        return True
    return isinstance(distribution, _WRAPPERS) and _is_masked(distribution.base_dist)
