"""Labelling in a browser: the server of the page, for this machine or, with a token, for others."""

import errno
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from urllib.parse import urlencode

import uvicorn

from credo._stopping import STOP
from credo.labelling.routes import Page, application
from credo.labelling.session import Labelling

HOST, PORT = "127.0.0.1", 8421


@contextmanager
def running(
    labelling: Labelling, *, host: str = HOST, port: int = PORT, token: str | None = None
) -> Iterator[tuple[str, threading.Thread]]:
    """A server while the block runs: its address, and the thread that it lives in.

    Arguments:
        host: the address to listen at. Other machines reach the server only where it is not 127.0.0.1, and then it
            wants a token.
        port: to listen at; 0 for any that is free.
        token: that browsers must show; made where one is needed and none is given.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from credo.labelling.opening import opened
    >>> with TemporaryDirectory() as folder:
    ...     pool = Path(folder) / "reviews.txt"
    ...     _ = pool.write_text("a fine film\\ntoo long\\n")
    ...     with (
    ...         opened(pool, Path(folder) / "labels.csv", classes=["good", "bad"]) as labelling,
    ...         running(labelling, port=0) as (address, _),
    ...     ):
    ...         print(address[:17])
    http://127.0.0.1:
    """
    token = token or (None if _is_local(host) else secrets.token_urlsafe(24))
    listening = _listen(host, port)
    page = Page(labelling)
    config = uvicorn.Config(
        application(page, token=token), log_level="error", access_log=False, ws="none", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="page", daemon=True)
    thread.start()
    try:
        yield _address(host, listening.getsockname()[1], token), thread
    finally:
        server.should_exit = True
        page.close()
        thread.join()


def serve(
    labelling: Labelling,
    *,
    host: str = HOST,
    port: int = PORT,
    token: str | None = None,
    labeller: str | None = None,
    say: Callable[[str], object] = print,
) -> None:
    """Serve the page until the process is asked to stop; see `running`.

    Arguments:
        labeller: whose name the printed address holds; asked for in the page where it is None.
        say: where the address goes.
    """
    with STOP.heard(), running(labelling, host=host, port=port, token=token) as (address, thread):
        if labeller:
            address += ("&" if "?" in address else "?") + urlencode({"labeller": labeller})
        say(address)
        while thread.is_alive() and STOP.signal is None:
            thread.join(0.2)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise OSError(
                f"port {port} is in use; choose another with --port, or --port 0 for any that is free"
            ) from error
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"host={host!r} and port={port} are no address to listen at ({reason})") from error


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _address(host: str, port: int, token: str | None) -> str:
    """What to open: a server that listens everywhere is reached by the name of its machine."""
    name = socket.gethostname() if host in ("", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?{urlencode({'token': token})}" if token else "")
