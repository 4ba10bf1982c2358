"""The page in a real browser: no label is lost and none is there twice, whatever happens to the page or the server."""

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from credo.labelling.opening import opened
from credo.labelling.server import running
from credo.labelling.session import Labelling
from credo.labelling.view import View
from tests.browser import PATIENCE, in_a_browser, launched
from tests.labelling.serving import CLASSES, lines, served, truth

pytestmark = in_a_browser
# What a browser says of a server that was killed.
GONE = ("net::ERR_", "Failed to load resource")

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens pages, each in a browser of its own, in which nothing may go wrong."""
    said: list[str] = []
    contexts = []

    def new(address: str, *, width: int = 1200, labeller: str = "ana", **options: object) -> Page:
        contexts.append(browser.new_context(viewport={"width": width, "height": 860}, **options))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{address}?labeller={labeller}" if labeller else address)
        return page

    yield new
    for context in contexts:
        context.close()
    assert [line for line in said if not any(words in line for words in GONE)] == []


@pytest.fixture
def labelling(tmp_path: Path) -> Iterator[Labelling]:
    with opened(lines(tmp_path), tmp_path / "labels.csv", classes=CLASSES) as found:
        yield found


def shown(page: Page) -> str:
    """The item in front of the person."""
    page.locator("#question:not([hidden])").wait_for()
    return page.locator("#question").get_attribute("data-item")


def label(page: Page) -> str:
    """Answer the item in front by its key; returns it."""
    item, text = shown(page), page.locator("#item").inner_text()
    page.keyboard.press("1" if truth(text) == CLASSES[0] else "2")
    return item


def wait_until_saved(page: Page) -> None:
    page.locator("body[data-waiting='0']").wait_for()


def right(labeller: str, items: list[str]) -> list[tuple[str, str, str, str]]:
    """The answers that a log must hold."""
    return [(labeller, item, "label", truth(item)) for item in items]


# -- nothing is lost, nothing is there twice ---------------------------------------------------------------


def test_thirty_labels_by_keyboard_a_reload_and_a_kill(tmp_path: Path, open_page: Open) -> None:
    with served(lines(tmp_path), tmp_path / "labels.csv") as server:
        page = open_page(f"http://127.0.0.1:{server.port}/")
        items = [label(page) for _ in range(10)]
        page.reload()  # without waiting for the last one
        items += [label(page) for _ in range(8)]
        server.kill()
        items += [label(page) for _ in range(2)]
        expect(page.locator("#trouble")).to_contain_text("kept here and sent again")
        server.start()
        wait_until_saved(page)
        expect(page.locator("#trouble")).to_be_hidden()
        items += [label(page) for _ in range(10)]
        wait_until_saved(page)
        expect(page.locator("#count")).to_have_text("30 of 80 labelled")
        assert sorted(server.answers()) == sorted(right("ana", items))
        assert len(set(items)) == 30


def test_answers_outlive_a_page_that_is_closed_while_the_server_is_gone(tmp_path: Path, open_page: Open) -> None:
    with served(lines(tmp_path), tmp_path / "labels.csv") as server:
        page = open_page(f"http://127.0.0.1:{server.port}/")
        shown(page)
        server.kill()
        items = [label(page) for _ in range(3)]
        address = server.start()
        again = page.context.new_page()
        page.close()
        again.goto(f"{address}?labeller=ana")
        items.append(label(again))
        wait_until_saved(again)
        assert sorted(server.answers()) == sorted(right("ana", items))
        assert len(set(items)) == 4


def test_two_browsers_at_once(labelling: Labelling, open_page: Open) -> None:
    with running(labelling, port=0) as (address, _):
        pages = {name: open_page(address, labeller=name) for name in ("ana", "bo")}
        items: dict[str, list[str]] = {name: [] for name in pages}
        for _ in range(15):
            for name, page in pages.items():
                items[name].append(label(page))
        for page in pages.values():
            wait_until_saved(page)
            expect(page.locator("#by-labeller")).to_have_text("ana\n15\nbo\n15", use_inner_text=True)
    assert len({*items["ana"], *items["bo"]}) == 30
    assert sorted(said.item for said in labelling.recent("ana")) == sorted(items["ana"][-10:])
    assert labelling.progress().num_labels == 30
    assert labelling.progress().disagreements == ()


@pytest.mark.full
def test_two_browsers_through_kills(tmp_path: Path, open_page: Open) -> None:
    """Whoever answers in whatever state of the server: each answer is there once, under its name."""
    with served(lines(tmp_path), tmp_path / "labels.csv") as server:
        pages = {name: open_page(f"http://127.0.0.1:{server.port}/", labeller=name) for name in ("ana", "bo")}
        given: list[tuple[str, str, str, str]] = []
        for turn in range(5):
            for name, page in pages.items():
                given += right(name, [label(page) for _ in range(2)])
            server.kill()
            for name, page in pages.items():
                given += right(name, [label(page) for _ in range(1 + turn % 2)])
            server.start()
            for page in pages.values():
                wait_until_saved(page)
            pages["ana"].reload()
        assert sorted(server.answers()) == sorted(given)


def test_a_page_of_another_origin_cannot_answer(labelling: Labelling, open_page: Open, browser: Browser) -> None:
    with running(labelling, port=0) as (address, _), elsewhere() as other:
        page = browser.new_page()
        page.goto(other)
        for kind in ("application/json", "text/plain"):
            outcome = page.evaluate(
                """([address, kind]) => fetch(`${address}answers`, {
                    method: "POST", headers: {"content-type": kind}, mode: kind === "text/plain" ? "no-cors" : "cors",
                    body: JSON.stringify({labeller: "eve", item: "1", kind: "label", label: "odd", token: "e"})
                }).then((response) => response.type, () => "refused")""",
                [address, kind],
            )
            assert outcome in ("refused", "opaque")
        assert (
            page.evaluate("(address) => fetch(`${address}session`).then(() => 'read', () => 'refused')", address)
            == "refused"
        )
        page.close()
    assert labelling.progress().num_labels == 0


# -- what a person does ------------------------------------------------------------------------------------


def test_every_key_does_what_it_says(labelling: Labelling, open_page: Open) -> None:
    with running(labelling, port=0) as (address, _):
        page = open_page(address)
        items: dict[str, str] = {}
        for key in ("1", "2", "a", "x", "Space", "f", "n", "Control+Space"):
            items[key] = shown(page)
            page.keyboard.press(key)
        last = shown(page)
        for key in ("Control+Enter", "b", "7", "q", "Alt+1", "Escape"):  # nothing to agree with, or no answer at all
            page.keyboard.press(key)
        wait_until_saved(page)
        assert shown(page) == last
        said = {answer.item: answer.label or answer.kind for answer in labelling.recent("ana")}
        kinds = ("even", "odd", "even", "odd", "skip", "flag", "none", "skip")
        assert said == dict(zip(items.values(), kinds, strict=True))
        page.keyboard.press("Backspace")
        assert shown(page) == items["Control+Space"]
        page.keyboard.press("Control+z")
        assert shown(page) == items["n"]
        page.keyboard.press("1")
        assert shown(page) == items["Control+Space"]
        wait_until_saved(page)
        assert [(answer.item, answer.label) for answer in labelling.recent("ana")][:1] == [(items["n"], "even")]
        assert len(labelling.recent("ana")) == 7


def test_the_last_ten_stay_editable_also_after_a_reload(labelling: Labelling, open_page: Open) -> None:
    with running(labelling, port=0) as (address, _):
        page = open_page(address)
        items = [label(page) for _ in range(12)]
        wait_until_saved(page)
        page.reload()
        waiting = shown(page)
        rows = page.locator("#recent button")
        expect(rows).to_have_count(10)
        rows.nth(9).click()
        assert shown(page) == items[2]
        expect(page.locator("#editing")).to_contain_text(truth(items[2]))
        page.keyboard.press("Escape")
        assert shown(page) == waiting
        rows.nth(9).click()
        page.keyboard.press("n")
        assert shown(page) == waiting
        wait_until_saved(page)
        assert (labelling.recent("ana")[0].item, labelling.recent("ana")[0].kind) == (items[2], "none")
        assert labelling.progress().num_labels == 11


def test_a_button_that_was_pressed_is_not_pressed_again(labelling: Labelling, open_page: Open) -> None:
    """Space skips after a click, and presses the button that the Tab key has reached."""
    with running(labelling, port=0) as (address, _):
        page = open_page(address)
        shown(page)
        page.get_by_role("button", name="even").click()
        page.keyboard.press("Space")
        page.get_by_role("button", name="odd").focus()
        page.keyboard.press("Space")
        page.keyboard.down("1")
        page.keyboard.down("1")  # as a key that is held down
        page.keyboard.up("1")
        wait_until_saved(page)
        kinds = [answer.label or answer.kind for answer in labelling.recent("ana")]
        assert kinds == ["even", "odd", "skip", "even"]


def test_everything_is_reached_by_the_tab_key_and_has_a_name(labelling: Labelling, open_page: Open) -> None:
    with running(labelling, port=0) as (address, _):
        page = open_page(address)
        label(page)
        wait_until_saved(page)
        names = []
        for _ in range(12):
            page.keyboard.press("Tab")
            names.append(page.evaluate("document.activeElement.ariaLabel || document.activeElement.innerText"))
            width = page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
            assert width >= 2 or page.evaluate("document.activeElement === document.body"), names
        for wanted in ("even", "odd", "None of these", "Skip", "Flag", "Undo", "Change it"):
            assert any(wanted in name for name in names), names
        tree = page.locator("body").aria_snapshot()
        assert '- group "Classes"' in tree
        assert 'status: "Saved' in tree


def test_the_name_is_asked_once(labelling: Labelling, open_page: Open) -> None:
    with running(labelling, port=0) as (address, _):
        page = open_page(address, labeller="")
        expect(page.get_by_label("Your name")).to_be_focused()
        page.keyboard.type("1 Zoë & <b>")
        page.keyboard.press("Enter")
        label(page)
        wait_until_saved(page)
        page.goto(address)
        label(page)
        wait_until_saved(page)
        assert labelling.progress().by_labeller == {"1 Zoë & <b>": 2}


def test_the_belief_moves_with_the_model_and_can_be_hidden(labelling: Labelling, open_page: Open) -> None:
    probs = np.full((4, len(labelling.pool), 2), 0.5)
    probs[0], probs[1] = (0.9, 0.1), (0.8, 0.2)
    with running(labelling, port=0) as (address, _):
        page = open_page(address)
        shown(page)
        expect(page.locator("#reason")).to_contain_text("no model yet")
        labelling.publish(View(np.arange(len(labelling.pool)), probs, round=1))
        even = page.get_by_role("button", name="even: 68%, between 50% and 89%")
        expect(even).to_be_visible()
        page.keyboard.press("b")
        expect(even).to_have_count(0)
        page.keyboard.press("b")
        page.keyboard.press("Control+Enter")
        wait_until_saved(page)
    assert labelling.recent("ana")[0].label == "even"


def test_a_model_that_comes_while_cards_are_on_their_way_is_believed(labelling: Labelling, open_page: Open) -> None:
    probs = np.tile([0.9, 0.1], (4, len(labelling.pool), 1))
    held, released = [], []

    def hold(route: Any) -> None:
        if released:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    with running(labelling, port=0) as (address, _):
        page = open_page(address)
        shown(page)
        page.route("**/cards", hold)
        label(page)
        wait_until_saved(page)
        while not held:
            page.wait_for_timeout(20)
        labelling.publish(View(np.arange(len(labelling.pool)), probs, round=1))
        expect(page.get_by_text("Learned once.")).to_be_visible()
        released.append(True)
        for route, response in held:
            route.fulfill(response=response)
        expect(page.get_by_role("button", name="even: 90%")).to_be_visible()


def test_when_nothing_is_left(tmp_path: Path, open_page: Open) -> None:
    with (
        opened(lines(tmp_path, 3), tmp_path / "labels.csv", classes=CLASSES) as labelling,
        running(labelling, port=0) as (address, _),
    ):
        page = open_page(address)
        for _ in range(3):
            label(page)
        expect(page.locator("#rest h2")).to_have_text("Nothing is left to ask")
        page.keyboard.press("1")
        page.keyboard.press("Backspace")
        label(page)
        expect(page.locator("#rest h2")).to_have_text("Nothing is left to ask")
        assert labelling.progress().num_labels == 3


# -- what a person sees ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (420, "dark")])
def test_every_kind_of_pool_fits(tmp_path: Path, open_page: Open, width: int, scheme: str) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(6):
        Image.fromarray(np.full((8, 8), 40 * number, np.uint8)).save(pictures / f"{number} & <b>.png")
    table = tmp_path / "table.csv"
    names = ",".join(f"a long name of column {number}" for number in range(12))
    table.write_text(names + "\n" + "\n".join(",".join(["3.14159"] * 11 + [f"<i>{row}"]) for row in range(6)))
    classes = [*(f"class {number}" for number in range(14)), "a class whose name is longer than most of them"]
    for path, seen in ((pictures, "img"), (table, "dd"), (lines(tmp_path), "blockquote")):
        with (
            opened(path, tmp_path / f"{path.stem}.out.csv", classes=classes) as labelling,
            running(labelling, port=0) as (address, _),
        ):
            page = open_page(address, width=width, color_scheme=scheme)
            shown(page)
            page.locator(f"#item {seen}").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            assert page.evaluate("[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
            page.keyboard.press("/")
            page.keyboard.type("ss 12")
            page.keyboard.press("Enter")
            wait_until_saved(page)
            assert labelling.progress().by_class["class 12"] == 1


# -- another origin ----------------------------------------------------------------------------------------


class Quiet(http.server.BaseHTTPRequestHandler):
    """A page of somebody else."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>another origin</title>")

    def log_message(self, *_: object) -> None:
        pass


class elsewhere:
    """A server of another origin, while the block runs."""

    def __enter__(self) -> str:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}/"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
