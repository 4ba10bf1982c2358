"""Commands whose help can be read: switches are shown as switches, and each default once."""

from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption


class Command(TyperCommand):
    """A command of typer, but that its switches show no type, and that lines and brackets are as they were meant."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Lines of the source are none of the terminal.
        self.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in (self.help or "").split("\n\n"))
        for one in self.params:
            if isinstance(one, TyperOption) and one.help:
                # Rich takes it for a style of letters, which it does not know, and leaves it out.
                one.help = one.help.replace("[default: ", r"\[default: ")

    def get_params(self, ctx: Any) -> list[Any]:
        return _switches(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands, in the same way."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _switches(super().get_params(ctx))


def _switches(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.display_type_rich = lambda ctx: None
    return parameters
