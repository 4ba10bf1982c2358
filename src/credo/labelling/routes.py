"""The routes of the page: a session behind HTTP.

No request waits for the learner: what may block (the disk, the session's lock) runs in a thread, and what is new comes
by server-sent events.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from io import BytesIO
from typing import Any

import msgspec
from PIL import Image
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from credo.labelling.answers import Answer, Kind
from credo.labelling.guard import MAX_BODY_BYTES, Guard
from credo.labelling.keys import class_keys
from credo.labelling.pool import Pool, digest
from credo.labelling.session import Labelling

FILES = ("index.html", "page.css", "page.js", "curve.js", "outbox.js", "storage.js", "view.js")
MIME = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
# Kinds of pictures that browsers show and that run no script, as SVG would.
PICTURES = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
MAX_CARDS = 20
# A stream that is silent for longer is taken for dead by what lies between.
SECONDS_OF_SILENCE = 15.0
Handler = Callable[[Request], Awaitable[Response]]


class Sent(msgspec.Struct, forbid_unknown_fields=True):
    """An answer as a browser sends it."""

    labeller: str
    item: str
    kind: Kind
    token: str
    label: str | None = None
    window: str = ""


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """A request for the next cards."""

    labeller: str
    count: int = 1
    window: str = ""
    holding: tuple[str, ...] = ()


class Feed:
    """Wakes all who follow the progress, from whatever thread it is made in."""

    def __init__(self) -> None:
        self.is_closed = False
        self._lock = threading.Lock()
        self._followers: set[Callable[[], object]] = set()

    def wake(self) -> None:
        with self._lock:
            for follower in self._followers:
                follower()

    def close(self) -> None:
        """Wake all for the last time."""
        self.is_closed = True
        self.wake()

    @contextmanager
    def followed(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever something is new."""
        event, loop = asyncio.Event(), asyncio.get_running_loop()

        def follower() -> None:
            loop.call_soon_threadsafe(event.set)

        with self._lock:
            self._followers.add(follower)
        try:
            yield event
        finally:
            with self._lock:
                self._followers.discard(follower)


class Page:
    """The routes of the page of one session."""

    def __init__(self, labelling: Labelling) -> None:
        self.labelling = labelling
        self.feed = Feed()
        self._unsubscribe = labelling.subscribe(self.feed.wake)

    def close(self) -> None:
        """End all streams, which the end of the server would wait for."""
        self._unsubscribe()
        self.feed.close()

    def routes(self) -> list[Route]:
        return [
            *(Route("/" if name == "index.html" else f"/{name}", _file(name)) for name in FILES),
            Route("/session", self.session),
            Route("/recent", self.recent),
            Route("/image", self.image),
            Route("/events", self.events),
            Route("/cards", self.cards, methods=["POST"]),
            Route("/answers", self.answer, methods=["POST"]),
        ]

    async def session(self, request: Request) -> Response:
        """What does not change: the pool and its classes."""
        pool, classes = self.labelling.pool, self.labelling.classes
        fingerprint, keys = digest(*pool.digests), class_keys(classes)
        return _json({"pool": pool.path.name, "fingerprint": fingerprint, "classes": classes, "keys": keys})

    async def cards(self, request: Request) -> Response:
        """The most informative items that nobody else has in hand."""
        wanted = msgspec.json.decode(await request.body(), type=Wanted)
        deal = partial(self.labelling.next, window=wanted.window, holding=wanted.holding[:MAX_CARDS])
        return _json(await run_in_threadpool(deal, wanted.labeller, min(wanted.count, MAX_CARDS)))

    async def answer(self, request: Request) -> Response:
        """An answer, on disk before the browser is told."""
        sent = msgspec.json.decode(await request.body(), type=Sent)
        take: Callable[[], Answer | None]
        if sent.kind == "undo":
            take = partial(self.labelling.undo, sent.labeller, sent.token, item=sent.item, window=sent.window)
        else:
            take = partial(self.labelling.answer, sent.labeller, sent.item, sent.kind, sent.label, sent.token)
        return _json(await run_in_threadpool(take))

    async def recent(self, request: Request) -> Response:
        """The last answers of a labeller, with their cards, newest first."""
        labeller = request.query_params.get("labeller", "")

        def found() -> list[dict[str, Any]]:
            recent = self.labelling.recent(labeller)
            return [{"answer": answer, "card": self.labelling.card(answer.item)} for answer in recent]

        return _json(await run_in_threadpool(found))

    async def image(self, request: Request) -> Response:
        """The picture of an item, which is a name in the pool and never a path."""
        item = request.query_params.get("item", "")
        if item not in self.labelling.pool.places:
            return _error(HTTPStatus.NOT_FOUND, f"no item {item!r} is in this pool")
        content, kind = await run_in_threadpool(_picture, self.labelling.pool, item)
        return Response(content, media_type=kind, headers={"cache-control": "private, max-age=3600"})

    async def events(self, request: Request) -> Response:
        """The progress, now and whenever it changes."""
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._events(), media_type="text/event-stream", headers=headers)

    async def _events(self) -> AsyncIterator[bytes]:
        with self.feed.followed() as news:
            while not self.feed.is_closed:
                news.clear()
                progress = msgspec.json.encode(await run_in_threadpool(self.labelling.progress))
                yield b"event: progress\ndata: " + progress + b"\n\n"
                while not news.is_set():
                    try:
                        await asyncio.wait_for(news.wait(), SECONDS_OF_SILENCE)
                    except TimeoutError:
                        yield b": still here\n\n"


def application(page: Page, *, token: str | None = None) -> Guard:
    """The page behind its guard, as an ASGI application."""
    behind = Starlette(
        routes=page.routes(),
        middleware=[Middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES)],
        exception_handlers={msgspec.DecodeError: _refuse, ValueError: _refuse, OSError: _fail},
    )
    return Guard(behind, token)


def _file(name: str) -> Handler:
    content = files("credo.labelling").joinpath("page", name).read_bytes()

    async def handler(request: Request) -> Response:
        return Response(content, media_type=MIME[name.rpartition(".")[2]])

    return handler


def _picture(pool: Pool, item: str) -> tuple[bytes, str]:
    """A picture, and its type as it decodes, whatever its name says."""
    content, _ = pool.image(item)
    with Image.open(BytesIO(content), formats=PICTURES) as image:
        return content, image.get_format_mimetype() or "application/octet-stream"


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")


def _error(status: HTTPStatus, reason: str) -> Response:
    return PlainTextResponse(f"{reason}\n", status)


async def _refuse(request: Request, error: Exception) -> Response:
    """What was asked is wrong, and asking again does not help."""
    return _error(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


async def _fail(request: Request, error: Exception) -> Response:
    """What was asked is right, but cannot be done now, as on a full disk."""
    return _error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
