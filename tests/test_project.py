"""What stands beside the code says of it what is true."""

import re
import tomllib

import pytest
import yaml

import credo
from tests.test_documents import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_one() -> None:
    assert yaml.safe_load(read("CITATION.cff"))["version"] == credo.__version__
    assert re.search(rf"^## \[{credo.__version__}\]|will be {credo.__version__},", read("CHANGELOG.md"), re.MULTILINE)


def test_the_citation_has_what_the_format_asks_for() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
    assert citation["references"][0]["doi"] in "".join(PROJECT["urls"].values())


def test_every_python_of_the_classifiers_is_tested_on_both_systems() -> None:
    strategy = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]["test"]["strategy"]["matrix"]
    named = [one.rsplit(" ", 1)[1] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert strategy["python"] == named
    assert f">={named[0]}" == PROJECT["requires-python"]
    assert {system.split("-")[0] for system in strategy["os"]} == {"ubuntu", "macos"}


def test_pre_commit_runs_what_make_check_runs() -> None:
    hooks = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    recipe = re.search(r"^check: .*\n((?:\t.*\n)+)", read("Makefile"), re.MULTILINE)[1]
    assert [hook["entry"] for hook in hooks] == recipe.replace("\t$(BIN)/", ".venv/bin/").splitlines()


@pytest.mark.parametrize("name", ["bug", "uncertainty", "wish"])
def test_issue_forms_have_what_a_form_needs(name: str) -> None:
    found = yaml.safe_load(read(f".github/ISSUE_TEMPLATE/{name}.yml"))
    assert {"name", "description", "body"} <= set(found)
    assert all(field["attributes"]["label"] for field in found["body"])
    names = [field["id"] for field in found["body"]]
    assert len(names) == len(set(names))


def test_every_dependency_is_pinned() -> None:
    pinned = {re.split(r"[=;\[ ]", line)[0].lower().replace("_", "-") for line in CONSTRAINTS.splitlines()}
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(one for extra in extras.values() for one in extra)]
    names = {re.split(r"[<>=\[ ]", one)[0].lower().replace("_", "-") for one in asked} - {"credo"}
    assert names <= pinned
