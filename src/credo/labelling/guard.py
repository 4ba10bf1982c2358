"""Who may ask the page's server: requests that name it, from its own pages, with its token where it wants one.

A page of another site can make a browser send requests to this machine, and can let its own name point here (DNS
rebinding). The first are told by their Origin, the second by their Host: a name that is not ours. An address in
numbers has no name that could point elsewhere.
"""

import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from socket import getfqdn, gethostname
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 64_000
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True)
class Guard:
    """An ASGI application behind a door.

    Arguments:
        app: what is behind it.
        token: what a browser must show, once in the address (`/?token=…`) and then as a cookie; None for no token.
        names: host names of this server, besides `localhost` and addresses in numbers.
    """

    app: ASGIApp
    token: str | None = None
    names: tuple[str, ...] = field(default_factory=lambda: (gethostname(), getfqdn()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self.refusal(request) or self.entry(request) or self.app
        await answer(scope, receive, send_marked)

    def refusal(self, request: Request) -> Response | None:
        """The answer to a request that is none of ours; None to one that is."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not self._is_ours(host):
            return _refused(HTTPStatus.MISDIRECTED_REQUEST, f"no server of this name is here: {host!r}")
        if origin is not None and urlsplit(origin).netloc != host:
            return _refused(HTTPStatus.FORBIDDEN, f"a page of {origin!r} may not ask here")
        if request.method not in ("GET", "HEAD"):
            if origin is None:
                return _refused(HTTPStatus.FORBIDDEN, "only a page of this server may post here: no Origin was sent")
            if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return _refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "post JSON, as application/json")
        if not self._is_known(request):
            return _refused(
                HTTPStatus.UNAUTHORIZED, "open the link that credo printed: its token is missing or not valid"
            )
        return None

    def entry(self, request: Request) -> Response | None:
        """A browser that came with the token goes on with a cookie, and without the token in its address."""
        given = request.query_params.get("token")
        if given is None or self.token is None:
            return None
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        response = RedirectResponse(f"{request.url.path}?{urlencode(rest)}", HTTPStatus.SEE_OTHER)
        response.set_cookie(self._cookie(request), given, httponly=True, samesite="strict", max_age=30 * 24 * 3600)
        return response

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in ("localhost", *map(str.lower, self.names)) or _is_number(name)

    def _is_known(self, request: Request) -> bool:
        shown = request.query_params.get("token") or request.cookies.get(self._cookie(request), "")
        return self.token is None or secrets.compare_digest(shown.encode(), self.token.encode())

    def _cookie(self, request: Request) -> str:
        """Browsers give the cookies of one port to all ports of a machine."""
        return f"credo-{(request.scope.get('server') or ('', 0))[1]}"


def _is_number(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _refused(status: HTTPStatus, reason: str) -> Response:
    return PlainTextResponse(f"{reason}\n", status)
