"""What a notebook shows: the words of `print`, its tables as tables, and nothing that a name could smuggle in."""

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import credo
from credo import _html
from credo.diagnostics.status import Answer, Status
from credo.evaluation import detect, loo
from credo.learning.active import Round
from credo.simplifying.trade_off import FULL, Option, TradeOff
from tests.evaluation import exact

EVIL = "<script>alert('1')</script>"
NEVER_CLOSED = {"meta", "link", "img", "br"}


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order; which elements there were."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in NEVER_CLOSED:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def words_of(html: str) -> list[str]:
    """What is read, word by word."""
    shown = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", shown)).split()


def numbers_of(html: str) -> list[str]:
    """The cells with numbers, row by row."""
    return re.findall(r'<td [^>]*class="number">([^<]*)</td>', html)


def check(one: Any) -> str:
    """The HTML of something, that is well formed, has no scripts, and says what print says."""
    html = one._repr_html_()
    assert Balanced(html).seen <= {"div", "style", "p", "pre", "table", "thead", "tbody", "tr", "th", "td", "b"}
    said = set(words_of(html))
    # Markdown's lines and stars, and the line of a table that words stand beside, are how a terminal has a table.
    for word in re.sub(r"\*\*|\||---|best at ", " ", str(one)).split():
        assert {word, word.strip("()")} & said, f"{word!r} of {one} is not shown"
    return html


@pytest.fixture(scope="module")
def data() -> credo.Data:
    linear = exact.linear_data(40)
    return credo.Data(linear.x, linear.y, target="length", unit=EVIL, names=[EVIL, "b", "c"])


@pytest.fixture(scope="module")
def posterior(data: credo.Data) -> credo.Draws:
    return exact.posterior(data, 200)


def test_posteriors_and_their_diagnostics(posterior: credo.Draws, data: credo.Data) -> None:
    html = check(posterior)
    assert posterior.diagnostics.verdict in unescape(html)
    assert "rows fitted" in html
    check(posterior.diagnostics)
    assert check(credo.recalibrate(posterior, data)).count("by IsotonicQuantiles") == 1


def test_scores_and_verdicts(posterior: credo.Draws, data: credo.Data) -> None:
    scores = credo.evaluate(posterior, data, outside=data.x + 100, num_resamples=5)
    html = check(scores)
    assert f"RMSE ({_html.safe(EVIL)})" in html
    assert "foreign inputs by" in html
    check(scores.calibration)
    check(loo(posterior, data))
    check(detect(posterior.predict(data.x), posterior.predict(data.x + 100)))
    found = credo.check(posterior, held_out=data)
    html = check(found)
    assert f'class="verdict {found.status}"' in html


def test_comparisons_name_the_best_in_bold(posterior: credo.Draws, data: credo.Data) -> None:
    comparison = credo.compare({EVIL: posterior, "other": posterior}, data, num_resamples=5)
    html = check(comparison)
    assert html.count("<b>") == len(comparison.cells()[0]) - 1
    assert html.count(_html.safe(EVIL)) >= 1


def test_trade_offs_name_the_recommended_in_bold(posterior: credo.Draws) -> None:
    full, small = Option(1000, 10.0, -1.0, 0.0, 0.0, 0.0, 0.9), Option(10, 1.0, -1.0, 0.001, 0.001, 0.1, 0.9)
    found = TradeOff({FULL: full, EVIL: small}, {FULL: posterior, EVIL: posterior}, {"other": EVIL}, num_rows=7)
    assert f"<b>{_html.safe(EVIL)}</b></td>" in check(found)


def test_predictions_show_their_first_rows(posterior: credo.Draws, data: credo.Data) -> None:
    prediction = posterior.predict(data.x)
    html = check(prediction)
    assert html.count("<tr>") == 1 + 5
    assert ["0", f"{prediction.mean[0]:.4g}"] == numbers_of(html)[:2]
    assert f"{prediction.std[4]:.4g}" in numbers_of(html)
    assert check(prediction[:2]).count("<tr>") == 1 + 2
    check(credo.recalibrate(posterior, data).predict(data.x))


def test_several_outputs_are_numbered() -> None:
    html = check(credo.from_normal(np.arange(12.0).reshape(1, 3, 4), 1.0))
    assert "row, output" in html
    assert "2, 1 9" in " ".join(numbers_of(html))


def test_classes_show_labels_and_their_probabilities() -> None:
    html = check(credo.from_probs([[0.2, 0.8], [0.9, 0.1]]))
    assert "epistemic (nats)" in html
    assert "1 0.8" in " ".join(numbers_of(html))


def test_models_show_what_they_draw() -> None:
    def program(x: Any, y: Any = None) -> None:
        w = numpyro.sample(EVIL, dist.Normal(0, 1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(w * x[:, 0], 1.0), obs=y)

    model = credo.Model(program)
    assert "program: not bound to data yet" in check(model)
    bound = model.bind((np.zeros((5, 1)), np.zeros(5)))
    assert "Normal(loc=0, scale=1)" in check(bound)
    assert check(bound.describe()) == bound._repr_html_()
    assert "regression: not bound" in str(credo.models.regression(credo.networks.MLP([2], out=1)))


def test_rounds_say_what_they_ask(posterior: credo.Draws, data: credo.Data) -> None:
    one = Round(3, posterior, 30, np.array([4, 8]), np.zeros(40), {"rmse": 0.25}, data)
    assert str(one) == "Round 3: 30 labels, rmse 0.25; asks about rows 4, 8"
    check(one)


def test_words_are_shown_as_they_are() -> None:
    pieces = _html.paragraph(EVIL), _html.verdict(EVIL, Status.RED), _html.code(EVIL), _html.table([EVIL], [[EVIL]])
    html = _html.notebook(*pieces)
    assert "<script" not in html
    assert html.count(_html.safe(EVIL)) == 3 + 4  # a heading and a cell, each of which says whose it is
    assert Answer("fit", Status.RED, EVIL).says in unescape(html)
    assert "\\x1b" in _html.safe("\x1b[31m")
