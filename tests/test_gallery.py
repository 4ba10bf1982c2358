"""Floor 4: every script of the tutorial and of the gallery runs, with tiny settings."""

import re
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot

from credo.simplifying import distill

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "examples").glob("tutorial/*.py")) + sorted((ROOT / "examples").glob("gallery/*.py"))
# The settings of the scripts are for people; a test needs to see that the code runs.
TINY = {
    r"credo\.NUTS\(": "credo.NUTS(max_depth=3, ",
    r"credo\.MAP\(start": "credo.MAP(num_steps=20, start",
    r"credo\.Laplace\((?!.*training)": "credo.Laplace(training=credo.MAP(num_steps=20), ",
    r"credo\.SWAG\(": "credo.SWAG(num_steps=60, num_warmup=20, ",
    r"credo\.Metropolis\(": "credo.Metropolis(thin=1, ",
    r"num_steps=\d{3,}": "num_steps=20",
    r"num_samples=\d+": "num_samples=8",
    r"num_warmup=\d{3,}": "num_warmup=10",
    r"(num_chains|members)=\d+": r"\1=2",
    r"num_evaluations=\d+": "num_evaluations=5",
    r"stop=\d+": "stop=8",
}


# What `make test` has time for: each kind of thing once.
SOME = ("01_what_is_a_bnn", "08_approximations", "heteroscedastic", "long_runs", "own_network", "own_program")
CASES = [pytest.param(one, id=one.stem, marks=() if one.stem in SOME else pytest.mark.full) for one in SCRIPTS]


@pytest.mark.parametrize("script", CASES)
def test_script_runs_and_draws(script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(distill, "MIN_STEPS", 20)
    monkeypatch.setattr(distill, "MAX_STEPS", 20)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    matplotlib.use("Agg")
    text = script.read_text(encoding="utf-8")
    for shown, tiny in TINY.items():
        text = re.sub(shown, tiny, text)
    exec(compile(text, str(script), "exec"), {"__name__": "__main__"})
    assert pyplot.get_fignums(), "a picture is what the page is for"
    assert not list(tmp_path.iterdir()), "a script cleans up after itself"
    pyplot.close("all")


def test_the_gallery_is_worth_a_page() -> None:
    assert len(list((ROOT / "examples" / "gallery").glob("*.py"))) >= 20
