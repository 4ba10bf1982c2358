"""`credo methods`: every method with its benefits, limits and use cases; or one of them with its settings."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from credo.cli.voice import as_json_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from credo.inference.catalogue import Entry


def methods(
    name: Annotated[str | None, typer.Argument(help="One method with its settings, or auto; all without it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/methods.md, of all methods.")] = False,
) -> None:
    """Every method: what it is good for, what it stores and costs, and whether it is exact."""
    from rich.console import Console

    from credo.inference import auto, catalogue  # lazy: imports JAX

    if markdown and (as_json or name is not None):
        raise typer.BadParameter("it is the page of all methods; leave out NAME and --json", param_hint="--markdown")
    if markdown:
        typer.echo(catalogue.markdown(), nl=False)
    elif name is None:
        everything = catalogue.entries()
        _tell([one.to_dict() for one in everything]) if as_json else Console().print(_table(everything))
    elif name.lower() == "auto":
        _tell(auto.rules()) if as_json else Console().print(_labelled(auto.rules()))
    else:
        one = _entry(name)
        _tell(one.to_dict()) if as_json else Console().print(_page(one))


def _tell(values: Any) -> None:
    typer.echo(as_json_text(values))


def _entry(name: str) -> "Entry":
    from credo.inference.catalogue import entry  # lazy: imports JAX

    try:
        return entry(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from error


def _table(chosen: "list[Entry]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    from credo.inference.catalogue import AUTO, LABELS  # lazy: imports JAX

    table = Table(show_header=False, show_lines=True, caption_justify="left")
    table.caption = f"{AUTO}: credo methods auto. Settings of one: credo methods NAME."
    for one in chosen:
        guide = one.type.guide
        about = {label: getattr(guide, name) for name, label in LABELS.items()}
        table.add_row(Text.assemble((one.name, "bold"), "\n", guide.exact), _labelled(about))
    return table


def _page(one: "Entry") -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    settings = Table()
    for heading in ("setting", "default", "meaning"):
        settings.add_column(heading, no_wrap=heading == "setting")
    for setting in one.settings:
        settings.add_row(*map(Text, setting))
    return Group(Text(one.title, style="bold"), Text(one.what), Text(), _labelled(one.facts), settings)


def _labelled(texts: dict[str, str]) -> "Table":
    """A line for each text, after its label. Texts are not markup: they may have brackets of their own."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for label, text in texts.items():
        grid.add_row(Text(label, style="dim"), Text(text))
    return grid
