"""The public names of credo: pages of reference that cannot forget one, and a link wherever a name is written.

    .. names:: credo.priors        every public name of a module; with names below it, these alone

In any page or docstring, `credo.NUTS(num_samples=100)` between backticks links to `credo.NUTS`. A name that credo does
not have is a warning, and so an error of the strict build.
"""

import importlib
import inspect
import re
from functools import cache, reduce
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

import credo
from credo.evaluation.metric import Metric
from credo.inference.method import Method

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_SHOWN = 4
ORDER = ("function", "class", "exception", "data")
# A name of credo or of a library beside it, and what may follow: a call, an index.
NAME = re.compile(r"((?:credo|numpyro|jax|arviz|optax|blackjax|flax)(?:\.[A-Za-z]\w*)+)(?:[(\[].*)?", re.DOTALL)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("names", Names)
    app.add_transform(Links)
    # After intersphinx, which knows the names of other libraries.
    app.connect("missing-reference", _resolve, priority=600)
    app.connect("autodoc-process-bases", _keep_public_bases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# -- which names there are -----------------------------------------------------------------------------------


@cache
def public_modules() -> dict[str, ModuleType]:
    """The modules that users import, by the shortest name: those of `credo`, and those that these export."""
    modules: dict[str, ModuleType] = {}
    waiting = [("credo", credo)]
    for name, module in waiting:
        if module not in modules.values():
            modules[name] = module
            waiting += [(f"{name}.{one}", value) for one, value in _exports(module) if isinstance(value, ModuleType)]
    return modules


@cache
def public_names() -> dict[str, Any]:
    """Every public class, function and value by the shortest name that it has."""
    known: set[int] = set()
    names: dict[str, Any] = {}
    for prefix, module in public_modules().items():
        for name, value in _exports(module):
            if not isinstance(value, ModuleType) and id(value) not in known:
                known.add(id(value))
                names[f"{prefix}.{name}"] = value
    return names


def names_of(module: str) -> list[str]:
    """The public names of one module that have no shorter one: functions, then classes, then values."""
    mine = [name for name in public_names() if name.rpartition(".")[0] == module]
    return [
        name.rpartition(".")[2] for name in sorted(mine, key=lambda name: ORDER.index(kind_of(public_names()[name])))
    ]


def _exports(module: ModuleType) -> list[tuple[str, Any]]:
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    names = getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]
    # How objects are pickled is the house's own business.
    return [(name, getattr(module, name)) for name in names if name not in ("__version__", "pickling")]


def kind_of(value: Any) -> str:
    """What autodoc calls it; metrics are functions too, aliases of types are not."""
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isfunction(value) or isinstance(value, Metric) else "data"


# -- pages of reference --------------------------------------------------------------------------------------


class Names(SphinxDirective):
    """A table of names, and then each of them with its signature and its docstring."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        names = " ".join(self.content).split() or names_of(module)
        table = [".. autosummary::", "   :nosignatures:", "", *(f"   ~{module}.{name}" for name in names), ""]
        return self.parse_text_to_nodes("\n".join([*table, *(_entry(f"{module}.{name}") for name in names)]))


def _entry(name: str) -> str:
    """A class or a function with its docstring; a table or a type, which has none, as it is."""
    value = public_names()[name]
    kind = kind_of(value)
    if kind == "data":
        listed = isinstance(value, dict | tuple)
        return f".. py:data:: {name}\n\n   {', '.join(f'`{one!r}`' for one in value) if listed else f'`{value}`'}\n"
    options = ""
    if kind == "class":
        # Of a method people use its settings; how it steps is the engine's business.
        options += "   :members: from_trained\n" if issubclass(value, Method) else ""
        options += "   :show-inheritance:\n" if any(map(canonical, value.__bases__)) else ""
    return f".. auto{kind}:: {name}\n{options}\n{_shown_in(name)}"


def _shown_in(name: str) -> str:
    """Some of the scripts that use a name: most have a picture."""
    uses = re.compile(rf"{re.escape(name)}\b")
    pages = [f":doc:`/{page}`" for page, text in _scripts().items() if uses.search(text)]
    return f"   *In use:* {', '.join(pages[-MOST_SHOWN:])}\n" if pages else ""


@cache
def _scripts() -> dict[str, str]:
    """The text of each script, by the page that is made of it."""
    found = [*(EXAMPLES / "tutorial").glob("*.py"), *(EXAMPLES / "gallery").glob("*.py")]
    return {f"{file.parent.name}/{file.stem}": file.read_text(encoding="utf-8") for file in sorted(found)}


def _keep_public_bases(app: Sphinx, name: str, obj: type, options: Any, bases: list[type]) -> None:
    bases[:] = [base for base in bases if canonical(base)]


# -- links ---------------------------------------------------------------------------------------------------


class Links(SphinxTransform):
    """Code between backticks that begins with a name becomes a link to it."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            match = NAME.fullmatch(literal.astext())
            linked = isinstance(literal.parent, addnodes.pending_xref | nodes.reference | nodes.title)
            if match and not linked and match[1] not in public_modules():
                link = addnodes.pending_xref(refdomain="py", reftype="obj", reftarget=match[1], refdoc=self.env.docname)
                literal.replace_self(link)
                link += literal


def _resolve(app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Node) -> nodes.Node | None:
    """A name that has no entry of its own: of an object that has another name, or that belongs to one which has."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    if not target.startswith("credo."):
        # What other libraries do not list is code like any other; in a signature it would be a hole.
        return content if node.get("reftype") == "obj" else None
    while target and exists(target):
        entry = env.domains["py"].objects.get(canonical(found(target)) or target)
        if entry:
            return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content)
        target = target.rpartition(".")[0]
    return content if exists(node["reftarget"]) else None


def canonical(value: Any) -> str | None:
    """The public name of an object."""
    return next((name for name, known in public_names().items() if known is value), None)


def exists(name: str) -> bool:
    try:
        found(name)
    except AttributeError:
        return False
    return True


def found(name: str) -> Any:
    """What a dotted name stands for: a module, or an attribute of one; a module may be hidden behind a function."""
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        try:
            return reduce(_attribute, parts[depth:], importlib.import_module(".".join(parts[:depth])))
        except (ImportError, AttributeError):
            continue
    raise AttributeError(f"there is no {name}")


def _attribute(value: Any, name: str) -> Any:
    """Fields of a dataclass count, though the class has no such attribute."""
    return None if name in getattr(value, "__dataclass_fields__", {}) else getattr(value, name)
