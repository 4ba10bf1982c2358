"""The command line: one small file per command. Nothing heavy is imported before a command runs."""

import lazy_loader  # type: ignore[import-untyped]

from credo.cli.signals import watch
from credo.cli.streams import closing, mend
from credo.cli.together import leaving_at_once

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"commands": ["app"]})


def main() -> None:
    """What `credo` runs: signals are answered before anything else is imported."""
    watch()
    mend()
    from credo.cli.commands import app

    with closing(), leaving_at_once():
        app()
