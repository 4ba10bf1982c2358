"""What the command `credo` runs first: signals wait until there is someone to answer them.

It is no part of the package, whose import takes some milliseconds in which Ctrl-C would end in a traceback.
"""

import signal

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def main() -> None:
    """The command line."""
    from credo import cli

    cli.main()
