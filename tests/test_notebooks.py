"""Floor 4: the notebooks run, cell by cell, and each cell shows what it ends with.

Cells are run here as a kernel runs them, but for the kernel: that needs no packages, and takes no time to start.
"""

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes

from tests.test_documents import ROOT, TINY

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def code_of(notebook: Path) -> list[str]:
    """The code cells, with tiny settings."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for shown, tiny in TINY.items():
        codes = [code.replace(shown, tiny) for code in codes]
    return codes


def run(code: str, namespace: dict[str, Any]) -> Any:
    """The value of a cell: that of its last line, an expression."""
    *lines, last = ast.parse(code).body
    exec(compile(ast.Module(lines, type_ignores=[]), "<cell>", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    codes = code_of(notebook)
    assert any("credo.NUTS(num_samples=8" in code for code in codes), "the settings are those of a real run"
    namespace: dict[str, Any] = {}
    values = [run(code, namespace) for code in codes]
    assert values[0] is namespace["data"]
    for value in values[1:]:
        assert isinstance(value, Axes) or value._repr_html_().startswith('<div class="credo">')
    plt.close("all")
    assert (tmp_path / "run" / "manifest.json").is_file()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(notebook: Path) -> None:
    found = json.loads(notebook.read_text(encoding="utf-8"))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in found["cells"]}) == len(found["cells"])
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in found["cells"] if "outputs" in cell)
