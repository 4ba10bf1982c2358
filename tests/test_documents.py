"""Floor 4: what the README and the docstrings show, runs."""

import doctest
import importlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from matplotlib import pyplot

from credo.runs import Config, Run
from credo.simplifying import distill

ROOT = Path(__file__).parent.parent
# The settings of the README are for people; a test needs to see that the code runs.
TINY = {
    "credo.NUTS(num_samples=500, num_warmup=500)": "credo.NUTS(num_samples=8, num_warmup=10, max_depth=3)",
    'method="laplace", network="mlp:20"': 'method=credo.MAP(num_steps=20), network="mlp:4"',
    '["linear", "mlp:20"]': '["linear", "mlp:4"]',
}


@pytest.fixture
def brief_students(monkeypatch: pytest.MonkeyPatch) -> None:
    """Students that are left to their defaults learn for a moment."""
    for limit in ("MIN_STEPS", "MAX_STEPS"):
        monkeypatch.setattr(distill, limit, 100)


def test_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for shown, tiny in TINY.items():
        assert shown in text
        text = text.replace(shown, tiny)
    namespace: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, namespace)
    assert (tmp_path / "run" / "manifest.json").is_file()
    assert "R-hat" in capsys.readouterr().out  # the verdict


def test_readme_leads_to_pages_that_exist() -> None:
    linked = re.findall(r"\]\(([\w/.-]+\.(?:md|png))(?:#[\w-]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(linked) > 10
    assert [page for page in linked if not (ROOT / page).is_file()] == []


# What the pages take for granted.
GIVEN = """
import credo
import numpy as np
net = credo.networks.MLP([8], out=1, activation="tanh", inputs=1)
x = np.linspace(-1, 1, 12)[:, None]
"""


# The programs of graphs.md are taken from examples/graphs.py, whose tests run them.
PAGES = [
    page.name
    for page in sorted((ROOT / "docs").glob("*.md"))
    if "```python" in page.read_text(encoding="utf-8") and page.name != "graphs.md"
]


@pytest.fixture(autouse=True)
def _precision_as_before() -> Iterator[None]:
    """A page may choose a precision for the whole process."""
    before = jax.config.values["jax_enable_x64"]
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.usefixtures("brief_students")
@pytest.mark.parametrize("page", PAGES)
def test_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").replace("num_steps=500", "num_steps=20")
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(GIVEN, namespace)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, namespace)


SOURCES = [path for path in sorted((ROOT / "src").rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
MODULES = [".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in SOURCES]


NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d*(?:e[-+]?\d+)?(?!\w)")


class AsPrecisely(doctest.OutputChecker):
    """Numbers agree as precisely as they are written: the last bits of a float differ between machines."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        if " ".join(NUMBER.sub("#", want).split()) != " ".join(NUMBER.sub("#", got).split()):
            return False
        return all(map(as_precisely, NUMBER.findall(want), NUMBER.findall(got)))


def as_precisely(want: str, got: str) -> bool:
    """Whether a number is the one that was written, give or take one in its last digit."""
    mantissa, _, exponent = want.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return math.isclose(float(want), float(got), rel_tol=1e-6, abs_tol=1.01 * unit)


def test_numbers_agree_as_precisely_as_they_are_written() -> None:
    checker = AsPrecisely()
    flags = doctest.NORMALIZE_WHITESPACE
    assert checker.check_output("[0.    1.099]\n", "[0.        1.0990001]\n", flags)
    assert checker.check_output("3.2e-05\n", "3.3e-05\n", flags)
    assert not checker.check_output("1.099\n", "1.102\n", flags)
    assert not checker.check_output("3.2e-05\n", "3.2e-04\n", flags)
    assert not checker.check_output("3\n", "4\n", flags)  # a count is exact
    assert not checker.check_output("loss 1.0\n", "gain 1.0\n", flags)


# What examples of runs take for granted.
HOUSES = [
    "city,size,price",
    *(f"{('Bern', 'Rome', 'Ulm')[n % 3]},{40 + n},{90 + 3 * n + 7 * n**2 % 11}" for n in range(30)),
]


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of houses, and a run that was fitted to it."""
    folder = tmp_path_factory.mktemp("houses")
    (folder / "houses.csv").write_text("\n".join(HOUSES) + "\n")
    few = {"num_samples": 40, "num_warmup": 40, "num_chains": 2}
    config = Config(str(folder / "houses.csv"), "price", network="linear", method="nuts", settings=few)
    Run.fit(config, folder / "run")
    return folder


@pytest.fixture
def _where_it_takes_place(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the folder of the houses, if it needs them; figures are closed again."""
    if name.startswith("credo.runs."):
        monkeypatch.chdir(request.getfixturevalue("houses"))
    yield
    pyplot.close("all")


@pytest.mark.usefixtures("_where_it_takes_place", "brief_students")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(AsPrecisely(), optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(example)
    assert runner.failures == 0
