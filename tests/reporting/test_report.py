"""The report: complete, self-contained, and right in a real browser."""

import base64
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

import credo
from credo import random
from credo.posterior import Draws, Provenance
from credo.reporting.page import Section, page
from tests.browser import BROWSER, in_a_browser
from tests.evaluation import exact

# Runs in the page once everything has loaded, and leaves what it saw where --dump-dom shows it.
PROBE = """<script>window.addEventListener("load", () => {
  const images = [...document.images], seen = document.body.dataset;
  seen.images = images.length;
  seen.broken = images.filter((image) => !image.complete || image.naturalWidth === 0).length;
  seen.sideways = document.documentElement.scrollWidth > window.innerWidth;
});</script></body>"""


def classifier() -> tuple[Draws, credo.Data]:
    """Draws from the prior of a small network: nothing is learned, but everything can be shown."""
    data = replace(credo.datasets.moons(seed=1), classes=("waxing", "waning"))
    model = credo.models.classification(credo.networks.MLP([4], out=2)).bind(data)
    theta = {
        name: np.asarray(leaf).reshape(2, 10, *leaf.shape[1:])
        for name, leaf in model.sample_prior(random.key(0), 20).items()
    }
    return Draws(model, theta, Provenance({"name": "prior"}, 0, 0.1, data.size), probes=data.x[:6]), data


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    train, test = exact.linear_data(50), exact.linear_data(60, seed=1)
    posterior, moons = classifier()
    elsewhere = np.random.default_rng(0).uniform(-6, 6, (40, 2))
    line = credo.Data(train.x[:, :1], train.y, names=["dose"], units=["mg"], target="length", unit="cm")
    mode = credo.fit(credo.models.regression(credo.networks.MLP([3], out=1)), line, credo.MAP(num_steps=30))
    return {
        "regression": credo.report(exact.posterior(train), test, folder),
        "classification": credo.report(posterior, moons, folder / "deep" / "moons.html", outside=elsewhere),
        "point": credo.report(mode, line, folder / "mode.html", title="One <draw> & no more"),
    }


def test_everything_is_in_it(pages: dict[str, Path]) -> None:
    assert pages["regression"].name == "report.html"
    text = pages["regression"].read_text(encoding="utf-8")
    for part in ("At a glance", "RMSE (cm)", "calibration AUC", "R-hat", "w ~ Normal", "exact", "plate data"):
        assert part in text
    for part in ("What it goes by", "fall of R²", "The prediction over x1", "Row ", "sds away", "in plain words"):
        assert part in text
    assert text.count("<img") == len(re.findall(r'src="data:image/svg\+xml;base64,', text)) >= 8
    text = pages["classification"].read_text(encoding="utf-8")
    for part in ("accuracy", "ECE", "True classes", "Foreign inputs", "Epistemic over the inputs", "hidden.0.kernel"):
        assert part in text
    for part in ("Each class against the rest", "The most confident of", "What it goes by", "waxing"):
        assert part in text
    pictures = [base64.b64decode(found).decode() for found in re.findall(r"base64,([^\"]*)", text)]
    assert sum("<!-- waxing -->" in picture for picture in pictures) >= 2, "classes are called by their names"
    text = pages["point"].read_text(encoding="utf-8")
    assert "One &lt;draw&gt; &amp; no more" in text
    assert "A point estimate" in text
    assert "log joint by step" in text
    assert "Prediction with its epistemic" in text


def test_nothing_is_fetched(pages: dict[str, Path]) -> None:
    for path in pages.values():
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
        assert "url(" not in text
        assert "@import" not in text


def test_same_report_from_the_same_posterior(tmp_path: Path) -> None:
    data = exact.linear_data(20)
    first, again = (credo.report(exact.posterior(data), data, tmp_path / name) for name in ("a.html", "b.html"))
    assert first.read_bytes() == again.read_bytes()


HOSTILE = "$\\frac{1}$ <b>_^{2} \x1b[31m\x00\u202e"


def test_names_are_only_shown(pages: dict[str, Path], tmp_path: Path) -> None:
    """Formulas that are none, escapes of terminals, marks that turn the text around, and HTML."""
    data = exact.linear_data(20)
    named = replace(data, names=[HOSTILE] * data.x.shape[1], target=HOSTILE, unit="$")
    path = credo.report(exact.posterior(data), named, tmp_path / "page.html", title=HOSTILE, columns=[(HOSTILE, "$")])
    text = path.read_text(encoding="utf-8")
    assert "<b>_" not in text
    pictures = [base64.b64decode(found).decode() for found in re.findall(r"base64,([^\"]*)", text)]
    for shown in (text, *pictures):
        assert not set("\x00\x1b\u202e") & set(shown)
    for picture in pictures:
        ElementTree.fromstring(picture)  # a picture that is not whole XML is not shown
    assert any(r"$\frac{1}$" in picture for picture in pictures), "dollars are drawn"


def test_a_page_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, target = exact.linear_data(20), tmp_path / "page.html"
    target.write_text("the old page")

    def full(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            credo.report(exact.posterior(data), data, target)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert target.read_text() == "the old page"


def test_a_figure_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "figure.png"
    target.write_text("the old figure")

    def full(self: Figure, file: Path, **_: object) -> None:
        Path(file).write_text("half")
        raise OSError(28, "No space left on device")

    ax = credo.plot.objective(np.zeros((1, 5)))
    with monkeypatch.context() as patch:
        patch.setattr(Figure, "savefig", full)
        with pytest.raises(OSError, match="No space left"):
            credo.plot.save(ax, target)
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]
    assert target.read_text() == "the old figure"
    credo.plot.save(ax, tmp_path / "without_suffix")
    assert (tmp_path / "without_suffix.png").read_bytes().startswith(b"\x89PNG")


def test_bad_paths(tmp_path: Path) -> None:
    data = exact.linear_data(20)
    with pytest.raises(ValueError, match=r"name an \.html file"):
        credo.report(exact.posterior(data), data, tmp_path / "report.pdf")


def look(path: Path, folder: Path, width: int = 1100) -> tuple[dict[str, str], list[str]]:
    """Open a page in a browser: what the probe saw, and what the console said."""
    probed = folder / "probed.html"
    probed.write_text(path.read_text(encoding="utf-8").replace("</body>", PROBE), encoding="utf-8")
    command = [
        *(str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
        *(f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=5000"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", probed.as_uri()),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    body = re.search(r"<body([^>]*)>", shown.stdout)
    assert body, shown.stderr
    seen = dict(re.findall(r'data-(\w+)="([^"]*)"', body.group(1)))
    return seen, [line for line in shown.stderr.splitlines() if "CONSOLE" in line]


@in_a_browser
class TestInABrowser:
    @pytest.mark.parametrize("name", ["regression", "classification", "point"])
    @pytest.mark.parametrize("width", [1100, 500])
    def test_renders(self, pages: dict[str, Path], tmp_path: Path, name: str, width: int) -> None:
        seen, console = look(pages[name], tmp_path, width)
        assert int(seen["images"]) == pages[name].read_text(encoding="utf-8").count("<img")
        assert seen["broken"] == "0"
        assert seen["sideways"] == "false"
        assert console == []

    def test_a_broken_page_is_caught(self, tmp_path: Path) -> None:
        section = Section("Broken")
        section.pieces.append('<img src="missing.png"><pre style="width: 3000px">wide</pre><script>nothing()</script>')
        path = tmp_path / "broken.html"
        path.write_text(page("Broken", "", [section]), encoding="utf-8")
        seen, console = look(path, tmp_path)
        assert seen["broken"] == "1"
        assert seen["sideways"] == "true"
        assert any("nothing is not defined" in line for line in console)
