"""A model in words: what is drawn, from which prior, and how many numbers that is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpyro.distributions as dist

from credo import _html
from credo.models.sites import constraint_of, is_factor, is_local, is_marginalised, is_summed, stripped


@dataclass(frozen=True)
class Site:
    """One variable of a program: its name, its unconstrained shape and its prior in words."""

    name: str
    shape: tuple[int, ...]
    prior: str

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Description:
    """What a model draws and what it learns: printable, one row per site.

    Arguments:
        sites: the latents, which make up theta.
        xi: the params.
        local: what is drawn for each row, with the shape of one row.
        factors: what else the prior says, with the shape of the inputs that it looks at.
    """

    sites: tuple[Site, ...]
    xi: tuple[Site, ...] = ()
    local: tuple[Site, ...] = ()
    factors: tuple[Site, ...] = ()

    @property
    def num_parameters(self) -> int:
        """How many numbers theta holds."""
        return sum(site.size for site in self.sites)

    @property
    def num_xi(self) -> int:
        """How many numbers xi holds."""
        return sum(site.size for site in self.xi)

    def cells(self) -> tuple[list[str], list[tuple[str, str, str, str]]]:
        """Headings, and the text of the cells of each site and of the totals."""
        rows = [(site.name, str(site.shape), f"{site.size:,}", site.prior) for site in (*self.sites, *self.xi)]
        rows += [(site.name, str(site.shape), "per row", site.prior) for site in self.local]
        rows += [(site.name, str(site.shape or ""), "factor", site.prior) for site in self.factors]
        rows.append(("total", "", f"{self.num_parameters:,}", ""))
        rows += [("total xi", "", f"{self.num_xi:,}", "")] if self.xi else []
        return ["site", "shape", "numbers", "prior"], rows

    def _repr_html_(self) -> str:
        return _html.notebook(_html.table(*self.cells(), numbers=(2,)))

    def __str__(self) -> str:
        headings, rows = self.cells()
        lines = [headings, *rows]
        widths = [max(len(row[column]) for row in lines) for column in range(4)]
        padded = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in lines]
        return "\n".join(line.rstrip() for line in padded)


def describe(
    trace: Mapping[str, Any],
    latents: Mapping[str, tuple[int, ...]],
    xi: Mapping[str, tuple[int, ...]],
    frozen: Mapping[str, Any],
    inputs: Mapping[str, tuple[int, ...]],
    local: str,
) -> Description:
    """A description from a trace of the program and the unconstrained shapes of theta and xi.

    Arguments:
        frozen: the xi that are constants.
        inputs: the shapes of the model's own inputs.
        local: what local latents are, "aleatoric" or "epistemic".
    """
    return Description(
        sites=tuple(Site(name, shape, in_words(trace[name]["fn"])) for name, shape in latents.items()),
        xi=tuple(
            Site(name, shape, f"{'fixed' if name in frozen else 'learned'} (param), {_constraint(trace[name])}")
            for name, shape in xi.items()
        ),
        local=tuple(
            Site(name, np.shape(site["value"])[1:], f"{in_words(site['fn'])}, {local}")
            for name, site in trace.items()
            if is_local(site)
        )
        + tuple(
            Site(name, (), f"{in_words(site['fn'])}, {'summed' if is_summed(site) else 'integrated'} out")
            for name, site in trace.items()
            if is_summed(site) or is_marginalised(site)
        ),
        factors=tuple(
            Site(name, _inputs_of(site, inputs), site["infer"].get("words", "exp(factor)"))
            for name, site in trace.items()
            if is_factor(site)
        ),
    )


def _inputs_of(site: Mapping[str, Any], inputs: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the inputs in whose plate a site stands."""
    return next((inputs[frame.name] for frame in site["cond_indep_stack"] if frame.name in inputs), ())


def in_words(distribution: dist.Distribution) -> str:
    """A distribution and its parameters; an array of different values only by its size."""
    distribution = stripped(distribution)
    numbers = []
    for name in type(distribution).arg_constraints:
        value = vars(distribution).get(name)
        if value is None:
            continue
        value = np.unique(np.asarray(value))
        numbers.append(f"{name}={value[0]:.4g}" if value.size == 1 else f"{name}=[{value.size} values]")
    return f"{type(distribution).__name__}({', '.join(numbers)})"


def _constraint(param: Mapping[str, Any]) -> str:
    """The name of a constraint as words: UnitInterval is "unit interval"."""
    words = re.findall(r"[A-Z][a-z]*", type(constraint_of(param)).__name__)
    return " ".join(words).lower()
