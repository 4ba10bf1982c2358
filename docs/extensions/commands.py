"""The command line as a page: a section for each command, with what its `--help` says.

.. commands::
"""

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from extensions.docstrings import escaped
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from credo.cli.commands import app as application


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Commands(SphinxDirective):
    """All commands of credo."""

    def run(self) -> list[nodes.Node]:
        commands = typer.main.get_command(application).commands
        text = "\n".join(line for name, command in commands.items() for line in _section(f"credo {name}", command))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _section(title: str, command: Any) -> Iterator[str]:
    yield from (title, "-" * len(title), "", escaped(command.help), "")
    if command.params:
        yield from (".. list-table::", "")
    for one in command.params:
        yield from (f"   * - ``{_spelling(one)}``", f"     - {escaped(' '.join((one.help or '').split()))}")
    yield ""
    for name, inner in getattr(command, "commands", {}).items():
        yield from _section(f"{title} {name}", inner)


def _spelling(parameter: Any) -> str:
    """`--out, -o` of an option, the name of an argument."""
    if parameter.param_type_name == "argument":
        return parameter.metavar or parameter.name
    return ", ".join([*parameter.opts, *parameter.secondary_opts])
