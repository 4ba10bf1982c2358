"""Columns of a belief network: as near to each other as the room of all boxes allows, by a linear program."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np
from scipy.optimize import linprog

from credo.plot.layout import Rows

# In inches: room between boxes in a row or outside a frame, and between a frame and what is inside it.
GAP, PADDING = 0.16, 0.1
# What an inch costs. Edges that skip a row shall be straight, then chains inside a plate, as the paper's are, then
# what enters them from inside the plate.
JOINT, CHAIN, INSIDE, EDGE = 8.0, 5.0, 4.0, 1.0
# Small terms decide between columns that are equally near: symmetric, with narrow frames, narrow as a whole.
SYMMETRY, FRAME, WHOLE = 0.1, 0.05, 0.02
# Plates that overlap in a ring have no frames that hold their members alone; all others have.
INTRUDER = 100.0


@dataclass(frozen=True)
class Box:
    """How far something reaches from its centre to each side."""

    left: float
    right: float
    up: float
    down: float


def aligned(
    rows: Rows, order: Mapping[str, float], boxes: Mapping[str, Box], widths: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """The columns x that keep the order and the room of all boxes and make Σ_edges w |x_parent − x_child| smallest.

    Returns the columns of nodes and joints, and the left and right side of each plate's frame.

    Arguments:
        order: rough columns of nodes and joints, from `layout.ordered`.
        boxes: of the nodes and joints.
        widths: the least width of the frame of each plate.
    """
    program = _Program()
    for left, right, room in _rooms(rows, order, boxes, widths):
        program.apart(left, right, room)
    for left, right, room in _outside(rows, order, boxes):
        program.apart(left, right, room, cost=INTRUDER)
    ends: dict[Hashable, list[Hashable]] = defaultdict(list)
    for above, below in rows.steps:
        length = program.distance(above, below, _weight(rows, above, below))
        ends["parents", below].append(length)
        ends["children", above].append(length)
    for end, lengths in ends.items():
        if len(lengths) > 1:
            program.maximum(end, lengths, SYMMETRY)
    for plate in rows.plates:
        program.costs |= {("right", plate): FRAME, ("left", plate): -FRAME}
    program.maximum("whole", list(rows.row), WHOLE)
    solution = program.solved()
    sides = {plate: (solution["left", plate], solution["right", plate]) for plate in rows.plates}
    return {name: solution[name] for name in rows.row}, sides


def _weight(rows: Rows, above: str, below: str) -> float:
    joints = len({above, below} & rows.joints)
    if joints or not any({above, below} <= members for members in rows.plates.values()):
        return JOINT * joints or EDGE
    return CHAIN if any(child == above for _, child in rows.steps) else INSIDE


def _rooms(
    rows: Rows, order: Mapping[str, float], boxes: Mapping[str, Box], widths: Mapping[str, float]
) -> Iterator[tuple[Hashable, Hashable, float]]:
    """What stands left of what, and how far apart at least: neighbours, members and their frame, frame in frame."""
    for level in sorted(set(rows.row.values())):
        names = sorted((name for name in rows.row if rows.row[name] == level), key=order.__getitem__)
        for one, other in pairwise(names):
            yield one, other, boxes[one].right + boxes[other].left + GAP
    for plate, members in rows.plates.items():
        yield ("left", plate), ("right", plate), widths[plate]
        for name in _among(rows, members):
            yield ("left", plate), name, boxes[name].left + PADDING
            yield name, ("right", plate), boxes[name].right + PADDING
        for other in rows.inside(plate):
            yield ("left", plate), ("left", other), PADDING
            yield ("right", other), ("right", plate), PADDING


def _outside(
    rows: Rows, order: Mapping[str, float], boxes: Mapping[str, Box]
) -> Iterator[tuple[Hashable, Hashable, float]]:
    """Frames hold their members and no others, and plates without common members stand side by side."""
    centre = {plate: np.mean([order[name] for name in _among(rows, members)]) for plate, members in rows.plates.items()}
    for plate, members in rows.plates.items():
        for name in _among(rows, rows.row.keys() - members):
            if rows.row[name] in rows.span(members):
                if order[name] < centre[plate]:
                    yield name, ("left", plate), boxes[name].right + GAP
                else:
                    yield ("right", plate), name, boxes[name].left + GAP
    for one, other in combinations(sorted(rows.plates, key=centre.__getitem__), 2):
        spans = rows.span(rows.plates[one]), rows.span(rows.plates[other])
        if not rows.plates[one] & rows.plates[other] and set(spans[0]) & set(spans[1]):
            yield ("right", one), ("left", other), PADDING


def _among(rows: Rows, names: Set[str]) -> list[str]:
    """Names in the order of the graph: the same graph makes the same program, and so the same drawing."""
    return [name for name in rows.row if name in names]


@dataclass
class _Program:
    """min costs · v over numbers v ≥ 0 by name, with sums that are at least some number."""

    costs: dict[Hashable, float] = field(default_factory=lambda: defaultdict(float))
    sums: list[tuple[dict[Hashable, float], float]] = field(default_factory=list)

    def apart(self, left: Hashable, right: Hashable, room: float, *, cost: float | None = None) -> None:
        """right − left ≥ room; with a cost, what is missing has that price."""
        missing: dict[Hashable, float] = {} if cost is None else {("missing", left, right): 1.0}
        self.costs |= dict.fromkeys(missing, cost or 0.0)
        self.sums.append(({right: 1.0, left: -1.0, **missing}, room))

    def distance(self, one: Hashable, other: Hashable, cost: float) -> Hashable:
        """A number that is at least |one − other|."""
        name = ("distance", one, other)
        self.costs[name] = cost
        self.sums += [({name: 1.0, one: sign, other: -sign}, 0.0) for sign in (1.0, -1.0)]
        return name

    def maximum(self, name: Hashable, parts: list[Hashable], cost: float) -> None:
        """A number that is at least each of the parts."""
        self.costs[name] = cost
        self.sums += [({name: 1.0, part: -1.0}, 0.0) for part in parts]

    def solved(self) -> dict[Hashable, float]:
        names = list(dict.fromkeys([*self.costs, *(name for coefficients, _ in self.sums for name in coefficients)]))
        number = {name: index for index, name in enumerate(names)}
        matrix = np.zeros((len(self.sums), len(names)))
        for row, (coefficients, _) in enumerate(self.sums):
            for name, coefficient in coefficients.items():
                matrix[row, number[name]] = coefficient
        least = np.array([room for _, room in self.sums])
        found = linprog([self.costs.get(name, 0.0) for name in names], A_ub=-matrix, b_ub=-least)
        return dict(zip(names, found.x.round(3).tolist(), strict=True))
