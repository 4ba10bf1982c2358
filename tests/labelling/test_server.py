"""The server of the page: what it answers, and whom it refuses."""

import errno
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from credo.labelling.answers import Answers
from credo.labelling.guard import HEADERS, MAX_BODY_BYTES
from credo.labelling.opening import opened
from credo.labelling.routes import Page, application
from credo.labelling.server import running
from credo.labelling.session import Labelling
from tests.labelling.serving import CLASSES, lines, served

BASE = "http://127.0.0.1:8421"
OWN = {"origin": BASE}


@pytest.fixture
def labelling(tmp_path: Path) -> Iterator[Labelling]:
    with opened(lines(tmp_path), tmp_path / "labels.csv", classes=CLASSES) as found:
        yield found


@pytest.fixture
def client(labelling: Labelling) -> TestClient:
    return TestClient(application(Page(labelling)), base_url=BASE, headers=OWN, raise_server_exceptions=False)


def answer(**changes: object) -> dict[str, object]:
    return {"labeller": "ana", "item": "1", "kind": "label", "label": "odd", "token": "t1"} | changes


# -- what it answers ---------------------------------------------------------------------------------------


def test_a_label_from_the_card_to_the_log(client: TestClient, labelling: Labelling) -> None:
    assert client.get("/session").json()["classes"] == list(CLASSES)
    cards = client.post("/cards", json={"labeller": "ana", "count": 3}).json()
    assert [card["kind"] for card in cards] == ["text"] * 3
    said = client.post("/answers", json=answer(item=cards[0]["item"])).json()
    assert (said["label"], said["labeller"]) == ("odd", "ana")
    [recent] = client.get("/recent", params={"labeller": "ana"}).json()
    assert recent["answer"]["item"] == recent["card"]["item"] == cards[0]["item"]
    assert labelling.progress().by_class["odd"] == 1


def test_what_is_sent_twice_counts_once(client: TestClient, labelling: Labelling) -> None:
    for _ in range(2):
        assert client.post("/answers", json=answer()).status_code == 200
    assert client.post("/answers", json=answer(item="2", token="t2")).status_code == 200
    for _ in range(2):
        assert client.post("/answers", json=answer(kind="undo", item="2", label=None, token="t3")).status_code == 200
    assert labelling.progress().num_labels == 1
    assert [said.item for said in labelling.recent("ana")] == ["1"]


def test_a_window_has_its_cards_again_after_a_restart(tmp_path: Path) -> None:
    pool, out = lines(tmp_path), tmp_path / "labels.csv"
    wanted = {"labeller": "ana", "window": "w", "count": 3}
    with opened(pool, out, classes=CLASSES) as before:
        held = [card.item for card in before.next("ana", 3, window="w")]
    with opened(pool, out, classes=CLASSES) as after:
        client = TestClient(application(Page(after)), base_url=BASE, headers=OWN)
        taken = after.next("bo", 1)[0].item
        mine = client.post("/cards", json=wanted | {"holding": [*reversed(held), "no such item"]}).json()
        assert [card["item"] for card in mine][:2] == [item for item in reversed(held) if item != taken]
        assert taken not in [card["item"] for card in mine]
        assert len(mine) == 3


def test_the_page_and_what_it_loads(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "style=" not in page.text
    assert "onclick" not in page.text
    for name in ("page.css", "page.js", "view.js", "outbox.js", "curve.js", "storage.js"):
        found = client.get(f"/{name}")
        assert found.status_code == 200
        assert "http://" not in found.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in found.text
    for response in (page, client.get("/nothing"), client.get("/", headers={"host": "evil.example"})):
        for name, value in HEADERS.items():
            assert response.headers[name] == value


# -- whom it refuses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:8421", "origin": "http://evil.example:8421"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "[::1"}, 421),
        ({"host": ""}, 421),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
    ],
)
def test_requests_of_others_are_refused(
    client: TestClient, labelling: Labelling, headers: dict[str, str], status: int
) -> None:
    body = json.dumps(answer()).encode()
    found = client.post("/answers", content=body, headers={"content-type": "application/json"} | headers)
    assert found.status_code == status
    assert labelling.progress().num_labels == 0


def test_a_post_without_an_origin_is_refused(labelling: Labelling) -> None:
    client = TestClient(application(Page(labelling)), base_url=BASE)
    assert client.post("/answers", json=answer()).status_code == 403
    assert client.get("/session").status_code == 200
    assert client.get("/session", headers={"origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "192.168.1.7", socket.gethostname()])
def test_its_own_names_are_known_at_every_port(labelling: Labelling, name: str) -> None:
    client = TestClient(application(Page(labelling)), base_url=f"http://{name}:9000")
    assert client.post("/answers", json=answer(), headers={"origin": f"http://{name}:9000"}).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"{",
        b"[]",
        b"\xff",
        json.dumps(answer(item="81")).encode(),
        json.dumps(answer(label="blue")).encode(),
        json.dumps(answer(label=None)).encode(),
        json.dumps(answer(kind="shout")).encode(),
        json.dumps(answer(labeller=" ")).encode(),
        json.dumps(answer(labeller=7)).encode(),
        json.dumps(answer(more="than asked")).encode(),
        json.dumps({"labeller": "ana"}).encode(),
    ],
)
def test_answers_that_are_none(client: TestClient, labelling: Labelling, sent: bytes) -> None:
    found = client.post("/answers", content=sent, headers={"content-type": "application/json"})
    assert found.status_code == 422
    assert len(found.text) > 10
    assert labelling.progress().num_labels == 0


def test_too_much_is_not_read(client: TestClient) -> None:
    assert client.post("/answers", json=answer(item="x" * MAX_BODY_BYTES)).status_code == 413
    assert client.post("/cards", json={"labeller": "ana", "count": 0}).status_code == 422
    assert len(client.post("/cards", json={"labeller": "ana", "count": 1_000_000}).json()) == 20


def test_other_methods_and_paths(client: TestClient) -> None:
    for path in ("/answers", "/cards"):
        assert client.get(path).status_code == 405
    for path in ("/page.py", "/..%2fserver.py", "/%2e%2e/server.py", "/page/index.html", "/docs"):
        assert client.get(path).status_code == 404


def test_a_full_disk_is_no_label(client: TestClient, labelling: Labelling, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Answers, "append", full)
        assert client.post("/answers", json=answer()).status_code == 503
    assert labelling.progress().num_labels == 0
    assert client.post("/answers", json=answer()).status_code == 200


# -- the token ---------------------------------------------------------------------------------------------


def test_a_token_opens_the_door_once_and_then_a_cookie(labelling: Labelling) -> None:
    client = TestClient(application(Page(labelling), token="s3cret"), base_url=BASE, headers=OWN)
    for path in ("/", "/session", "/events", "/?token=wrong", "/?token=", "/?token=%C3%A9"):
        assert client.get(path, follow_redirects=False).status_code == 401
    assert client.post("/answers", json=answer()).status_code == 401
    entered = client.get("/?token=s3cret&labeller=ana", follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "/?labeller=ana")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/session").status_code == 200
    assert client.post("/answers", json=answer()).status_code == 200
    assert client.post("/answers", json=answer(), headers={"origin": "http://evil.example"}).status_code == 403


def test_other_machines_need_a_token(labelling: Labelling) -> None:
    with running(labelling, host="0.0.0.0", port=0) as (address, _):
        parts = urlsplit(address)
        [token] = parse_qs(parts.query)["token"]
        assert len(token) >= 32
        here = f"http://127.0.0.1:{parts.port}/session"
        assert httpx2.get(here).status_code == 401
        assert httpx2.get(here, params={"token": token}).status_code == 303
    with running(labelling, port=0) as (address, _):
        assert not urlsplit(address).query
        assert urlsplit(address).hostname == "127.0.0.1"
        assert httpx2.get(f"{address}session").status_code == 200
    with running(labelling, port=0, token="mine") as (address, _):
        assert httpx2.get(f"{address}").status_code == 303


# -- pictures ----------------------------------------------------------------------------------------------


def test_pictures_by_name_and_by_what_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(b"secret")
    pixels = np.random.default_rng(0).integers(0, 255, (8, 8), np.uint8)
    Image.fromarray(pixels).save(folder / "a.png")
    Image.fromarray(pixels).save(folder / "b.png", format="JPEG")
    Image.fromarray(pixels).save(folder / "c.png")
    with opened(folder, tmp_path / "labels.csv", classes=CLASSES) as labelling:
        client = TestClient(application(Page(labelling)), base_url=BASE)
        for item, kind in (("a.png", "image/png"), ("b.png", "image/jpeg")):
            found = client.get("/image", params={"item": item})
            assert (found.status_code, found.headers["content-type"]) == (200, kind)
            assert found.headers["x-content-type-options"] == "nosniff"
        for item in ("../secret.png", str(tmp_path / "secret.png"), "a.png/../a.png", "", "a.png\0"):
            assert client.get("/image", params={"item": item}).status_code == 404
        (folder / "c.png").write_text('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>')
        assert client.get("/image", params={"item": "c.png"}).status_code == 503


# -- the server itself -------------------------------------------------------------------------------------


def test_progress_comes_by_itself_and_ends_with_the_server(labelling: Labelling) -> None:
    seen: list[int] = []
    with running(labelling, port=0) as (address, thread), httpx2.stream("GET", f"{address}events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: "))["num_labels"])
                if len(seen) == 3:
                    break
                labelling.answer("ana", str(len(seen)), "label", "odd")
    assert seen == [0, 1, 2]
    assert not thread.is_alive()


def test_no_request_waits_for_the_session(labelling: Labelling) -> None:
    """While one answer hangs, as at a slow disk, other requests are answered."""
    held, free = threading.Event(), threading.Event()
    take = labelling.answer

    def slow(*args: object, **options: object) -> object:
        held.set()
        free.wait()
        return take(*args, **options)

    labelling.answer = slow
    with running(labelling, port=0) as (address, _):
        origin = address.rstrip("/")
        options = {"json": answer(), "headers": {"origin": origin}}
        waiting = threading.Thread(target=httpx2.post, args=(f"{address}answers",), kwargs=options)
        waiting.start()
        held.wait()
        assert httpx2.get(f"{address}session").status_code == 200
        free.set()
        waiting.join()
    assert labelling.progress().num_labels == 1


def test_a_port_in_use_is_said(labelling: Labelling) -> None:
    with (
        running(labelling, port=0) as (address, _),
        pytest.raises(OSError, match=r"port \d+ is in use; choose another"),
        running(labelling, port=urlsplit(address).port),
    ):
        pass


@pytest.mark.parametrize("where", [{"host": "256.1.1.1"}, {"port": 70_000}, {"port": -1}])
def test_no_address_at_all(labelling: Labelling, where: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no address to listen at"), running(labelling, **where):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_politely(tmp_path: Path, number: signal.Signals) -> None:
    with served(lines(tmp_path), tmp_path / "labels.csv") as server:
        address = f"http://127.0.0.1:{server.port}"
        httpx2.post(f"{address}/answers", json=answer(), headers={"origin": address})
        with httpx2.stream("GET", f"{address}/events"):
            os.kill(server.process.pid, number)
            server.process.wait()
        assert server.answers() == [("ana", "1", "label", "odd")]
        assert "odd" in (tmp_path / "labels.csv").read_text()
