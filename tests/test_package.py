"""What is built installs where nothing else is, and works there."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.test_documents import ROOT

pytestmark = pytest.mark.full

LARGEST = 2**20
TEN_LINES = """
import credo
data = credo.datasets.gap()
model = credo.models.regression(credo.networks.MLP(features=[5], out=1), prior=credo.priors.normal(1.0))
posterior = credo.fit(model, data, credo.NUTS(num_samples=8, num_warmup=10, max_depth=3), seed=0)
print(posterior.diagnostics, posterior._repr_html_())
prediction = posterior.predict(data.x)
print(prediction.mean[0], prediction.std[0], prediction.interval(0.95)[0][0])
posterior.save("run/")
assert (credo.load("run/").predict(data.x).mean == prediction.mean).all()
credo.report(posterior, data, "report.html")
print(credo.__file__)
"""
FIT = ("fit", "houses/train.csv", "--target", "price", "--method", "map", "--set", "num_steps=20", "--out", "fitted")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is made of it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, capture_output=True)
    return folder


def one(folder: Path, suffix: str) -> Path:
    (found,) = folder.glob(f"*{suffix}")
    return found


def test_the_sdist_has_all_that_make_test_needs_and_no_more(built: Path) -> None:
    with tarfile.open(one(built, ".tar.gz")) as archive:
        sizes = {str(Path(*Path(file.name).parts[1:])): file.size for file in archive.getmembers()}
    needed = ["LICENSE", "Makefile", "constraints.txt", "pyproject.toml", "tests/conftest.py", "docs/verdict.md"]
    assert set(needed) <= set(sizes)
    assert not [name for name in sizes if name.startswith(("benchmarks/results", ".venv", ".git/"))]
    assert not [name for name in sizes if "__pycache__" in name]
    assert max(sizes.values()) < LARGEST


def test_the_wheel_has_every_file_of_the_package_and_no_more(built: Path) -> None:
    with zipfile.ZipFile(one(built, ".whl")) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.is_file()}
    own = {str(file) for file in files if not {"__pycache__", "credo.egg-info"} & set(file.parts)}
    assert inside == own
    assert "credo/py.typed" in inside


@pytest.mark.parametrize("suffix", [".whl", ".tar.gz"])
def test_it_works_where_nothing_else_is_installed(built: Path, suffix: str, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    commands = tmp_path / "env" / "bin"
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(name: str, *arguments: str | Path) -> str:
        done = subprocess.run([commands / name, *arguments], cwd=tmp_path, env=bare, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", one(built, suffix))
    assert run("python", "-c", TEN_LINES).splitlines()[-1].startswith(str(tmp_path / "env"))
    assert " fit " in run("credo", "--help")
    run("credo", "example", "table", "--out", "houses")
    run("credo", *FIT)
    run("credo", "predict", "fitted", "houses/test.csv", "-o", "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("mean,sd,")
