"""The site: every public name has a page, and what the pages are made by works without them."""

import doctest
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extensions of the site, which are no part of credo."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))


def test_every_public_name_has_a_page() -> None:
    names = importlib.import_module("extensions.names")
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.rst")]
    shown: list[str] = []
    for module, listed in re.findall(r"^\.\. names:: (\S+)\n(?:\n((?:   .+\n)+))?", "\n\n".join(pages), re.MULTILINE):
        shown += [f"{module}.{name}" for name in listed.split() or names.names_of(module)]
    assert sorted(shown) == sorted(names.public_names())  # each, and each once


def test_every_public_name_has_an_example() -> None:
    """Of classes and functions; values, which are tables and types, have no docstring."""
    names = importlib.import_module("extensions.names")
    called = {name: value for name, value in names.public_names().items() if names.kind_of(value) != "data"}
    assert [name for name, value in called.items() if ">>> " not in (value.__doc__ or "")] == []


def test_every_public_module_is_looked_at() -> None:
    names = importlib.import_module("extensions.names")
    stub = (ROOT / "src" / "credo" / "__init__.pyi").read_text(encoding="utf-8")
    imported = re.findall(r"^from \S+ import (\w+) as \1$", stub, re.MULTILINE)
    modules = {name.removeprefix("credo.") for name in names.public_modules()}
    values = {name.removeprefix("credo.") for name in names.public_names()}
    # `VI` is another name of `BayesByBackprop`.
    assert set(imported) - modules - values == {"__version__", "VI"}


def test_every_page_is_in_the_contents() -> None:
    listed = set(re.findall(r"^([\w/]+)$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {page.stem for page in (ROOT / "docs").glob("*.*") if page.suffix in (".md", ".rst")}
    assert pages - {"index"} <= listed


def test_figures_are_kept_with_what_made_them() -> None:
    kept = [json.loads(file.read_text(encoding="utf-8")) for file in (ROOT / "docs" / "figures").glob("*.json")]
    for one in kept:
        assert one.keys() == {"command", "date", "machine", "tables"}
        assert one["command"].startswith("python -m benchmarks ")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one["date"])
        for table in one["tables"]:
            assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_tables_of_speed_are_not_typed() -> None:
    text = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert not re.search(r"^\|", text, re.MULTILINE)
    named = re.findall(r"^```\{figures\} (\w+)$", text, re.MULTILINE)
    assert len(named) > 5
    assert [name for name in named if not (ROOT / "docs" / "figures" / f"{name}.json").is_file()] == []


@pytest.mark.parametrize("name", ["docstrings", "names"])
def test_examples_of_the_extensions(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"extensions.{name}")).failed == 0


def test_what_is_written_in_a_docstring_is_text() -> None:
    as_rst = importlib.import_module("extensions.docstrings").as_rst
    page = ["One *line*.", "", "    a|b  # an equation", "", "Arguments:", "    x: of `*`.", "", ">>> 2 * 3", "6"]
    said = [r"One \*line\*.", "", "::", "", "    a|b  # an equation", "", ":Arguments:", "  - **x**: of `*`.", ""]
    assert list(as_rst(page)) == [*said, ">>> 2 * 3", "6"]


def test_a_name_that_does_not_exist_is_not_found() -> None:
    names = importlib.import_module("extensions.names")
    assert names.exists("credo.NUTS")
    assert names.exists("credo.Data.x")  # a field
    assert names.exists("credo.models.student.Head")  # in a module that a function hides
    assert not names.exists("credo.read")


@pytest.mark.full
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """As `make docs` does, but in a copy and without running the scripts, which have tests of their own."""
    made = shutil.ignore_patterns("_build", "tutorial", "gallery", "__pycache__")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=made)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "CONTRIBUTING.md", tmp_path)
    strictly = ["-W", "--keep-going", "-n", "-q", "-D", "plot_gallery=0"]
    command = [sys.executable, "-m", "sphinx", *strictly, "docs", "html"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "html").rglob("*.html")]
    fetched = re.compile(
        r"""<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+href="https?:[^>]+rel="stylesheet|@import"""
    )
    assert not [page for page in pages if fetched.search(page)]
