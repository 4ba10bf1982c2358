"""The paper's examples: they run with tiny settings, and their words come from their numbers."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jax
import numpy as np
import pytest
from matplotlib import pyplot
from typer.testing import CliRunner

from credo import datasets, random
from credo.cli.example import example
from credo.examples import (
    EXAMPLES,
    conditions_problems,
    conditions_verdict,
    mnist_images,
    mnist_verdict,
    paperfold_fits,
    paperfold_verdict,
)
from credo.examples.paperfold import flat_parameters, fold_a, fold_b, fold_lines
from credo.models import Model
from credo.plot.beside import beside
from credo.plot.fan_row import fan_row
from credo.plot.images import images
from credo.plot.sections import sections
from credo.plot.surfaces import surfaces
from credo.predictive.tabulated import from_probs
from credo.typing import Batch

ROOT = Path(__file__).parents[1]


@pytest.fixture
def command(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("CREDO_DATA", raising=False)
    return lambda *args: CliRunner().invoke(example, args)


def written(out: Path, *figures: str) -> str:
    """The verdict of a finished example, whose figures must be there."""
    for figure in figures:
        content = (out / f"{figure}.png").read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5000
    return (out / "verdict.md").read_text(encoding="utf-8")


# -- the command --------------------------------------------------------------------------------------------


def test_without_a_name_the_examples_are_listed(command):
    result = command()
    assert result.exit_code == 0
    assert all(f"{name} " in result.output and line in result.output for name, line in EXAMPLES.items())


def test_every_example_is_a_command_and_a_script():
    assert [one.name or one.callback.__name__ for one in example.registered_commands] == list(EXAMPLES)
    of_the_docs = {"augmentation", "graphs", "priors"}
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")} - of_the_docs
    assert [*sorted(scripts), "table"] == list(EXAMPLES)


def test_the_nearest_name_is_suggested(command):
    result = command("paperfolt")
    assert result.exit_code == 2
    assert "Did you mean 'paperfold'?" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mnist", "--data", "/nowhere"), "/nowhere/mnist/train-images-idx3-ubyte.gz does not exist"),
        (("mnist", "--full", "--epochs", "3"), "leave out --quick, --epochs and --members"),
        (("mnist", "--full"), "name the folder that holds mnist/ by --data or CREDO_DATA"),
        (("mnist", "--members", "0"), "--members"),
        (("paperfold", "--prior", "flat"), "'equal', 'split'"),
    ],
)
def test_bad_options_are_explained_and_exit_with_2(command, arguments, said):
    result = command(*arguments)
    assert result.exit_code == 2
    assert said in re.sub(r"[\s│]+", " ", result.output)


def test_nothing_heavy_is_imported_before_an_example_runs():
    script = "import sys, credo.cli.example; sys.exit(str({'jax', 'numpy', 'matplotlib'} & set(sys.modules) or 0))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stderr.strip() == "0"


# -- Bayesian MNIST -----------------------------------------------------------------------------------------


@pytest.mark.full
def test_without_mnist_the_embedded_digits_are_used_and_it_says_so(command, tmp_path):
    result = command("mnist", "--quick", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    text = written(tmp_path, "probabilities", "images", "training")
    assert "8 × 8 digits embedded in scikit-learn" in text
    assert "the numbers mean nothing yet" in text
    assert "members 2 (the paper: 10)" in text
    for file in ("images.png", "probabilities.png", "training.png", "verdict.md"):
        assert file in result.output


def test_the_unseen_class_is_not_trained_on_and_noise_reaches_the_network_as_it_is(monkeypatch):
    monkeypatch.delenv("CREDO_DATA", raising=False)
    given = mnist_images.load(None)
    asked = mnist_images.questions(given.test, seed=0)
    assert len(asked["unseen class 5"]) == np.sum(given.test.y == 5) > 0
    seen_by_network = given.test.scaling.inputs(asked["white noise"])
    assert 0 <= seen_by_network.min() < 0.01
    assert 0.99 < seen_by_network.max() <= 1.0001


def answer(*probabilities: float, spread: float = 0.0) -> mnist_verdict.Answer:
    """Two draws that lie `spread` to either side of probabilities of the classes 0, 3 and 4."""
    base = np.zeros(10)
    base[[0, 3, 4]] = probabilities
    tilt = np.zeros(10)
    tilt[[3, 4]] = spread, -spread
    return mnist_verdict.summarised(from_probs(np.stack([base + tilt, base - tilt])[:, None].repeat(3, axis=1)))


def test_the_verdict_on_digits_depends_on_the_answers():
    sure, torn, flat = answer(0.01, 0.01, 0.98), answer(0, 0.5, 0.5, spread=0.4), answer(0.3, 0.3, 0.4)
    assert mnist_verdict.judged_seen(sure).startswith("recognised: p(4) = 0.98")
    assert mnist_verdict.judged_seen(flat).startswith("not clearly recognised: p(4) = 0.40")
    assert "the draws disagree" in mnist_verdict.judged_unseen(torn, sure)
    assert "overconfident" in mnist_verdict.judged_unseen(sure, sure)
    assert mnist_verdict.judged_noise(flat, sure).startswith("spread out, the largest 0.40")
    assert mnist_verdict.judged_noise(sure, flat).startswith("not spread out, the largest 0.98")
    assert "answers that depend on the input" in mnist_verdict.judged_noise(
        replace(flat, across=np.full(10, 0.3)), sure
    )


# -- paperfold ----------------------------------------------------------------------------------------------


def test_paperfold_runs_and_writes_its_files(command, tmp_path):
    result = command("paperfold", "--quick", "--prior", "split", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    text = written(tmp_path, "parameters", "maps", "lines")
    assert "N(0, 10²) on the biases" in text
    assert all(f"**{name}**" in text for name in paperfold_verdict.IN_PAPER)
    assert "| exact | 0.494 ± 0.477 |" in text
    assert all(file in result.output for file in ("lines.png", "maps.png", "parameters.png", "verdict.md"))


def heights(*centres: float, sd: float = 0.07, num: int = 400) -> np.ndarray:
    """Chains that each stay around their height at the centre, (chains, draws, points)."""
    noise = np.random.default_rng(0).normal(size=(len(centres), num, 5))
    return np.asarray(centres)[:, None, None] + sd * noise


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (heights(0, 0, 1, 1), "finds both folds and weighs them about right (fold A 0.50"),
        (heights(0, 1, 1, 1), "finds both folds but weighs them only roughly (fold A 0.25"),
        (heights(0, *[1] * 19), "finds both folds but weighs them wrongly (fold A 0.05"),
        (heights(0), "finds fold A only, with the right local uncertainty"),
        (heights(1, 1), "finds fold B only"),
        (heights(0, 1, sd=0.0), "with no local uncertainty (sd 0.000"),
        (heights(0, 1, sd=0.03), "with too little local uncertainty (sd 0.03"),
        (heights(0.5), "finds neither fold"),
    ],
)
def test_the_verdict_on_folds_depends_on_the_draws(points, said):
    found = paperfold_verdict.summarised(points, 0.1)
    assert said in paperfold_verdict.judged(found, paperfold_verdict.EXACT)


def test_the_distance_is_between_distributions_of_z():
    surface = {"tempering": np.linspace(0, 1, 200)[:, None], "VI": np.linspace(0.2, 1.2, 200)[::-1, None]}
    found = paperfold_verdict.compared({name: heights(0, 1) for name in surface}, surface)
    assert found["tempering"].distance == 0
    assert found["VI"].distance == pytest.approx(0.2)


def test_members_far_below_the_best_are_left_out():
    assert paperfold_fits.among_best([-51.0, -9.3, -12.5, -24.7, -10.3]).tolist() == [1, 2, 4]


def test_the_folds_meet_the_data_and_the_lines_cross_at_the_centre():
    data = datasets.paperfold()
    np.testing.assert_allclose(fold_a(data.x), data.y, atol=1e-12)
    np.testing.assert_allclose(fold_b(data.x), data.y, atol=1e-12)
    assert all(np.allclose(line[2], 0) for line in fold_lines(np.linspace(-1, 1, 5)).values())


def test_parameters_are_columns_in_their_order():
    order = {
        "gamma": [6.0, 7.0],
        "beta.bias": 5.0,
        "alpha.kernel": [0.0, 1.0],
        "beta.kernel": [3.0, 4.0],
        "alpha.bias": 2.0,
    }
    theta = {name: np.tile(np.asarray(value), (3, *[1] * np.ndim(value))) for name, value in order.items()}
    posterior = SimpleNamespace(sample=lambda key, num: theta)
    np.testing.assert_array_equal(flat_parameters(posterior), np.tile(np.arange(8.0), (3, 1)))


# -- the gallery of graphical models ------------------------------------------------------------------------


@contextmanager
def script(name: str) -> Iterator[ModuleType]:
    """A script of the folder `examples` as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_priors_are_drawn(tmp_path, monkeypatch, capsys):
    with script("priors") as priors:
        monkeypatch.setattr(priors, "NUM_DRAWS", 12)
        priors.main(tmp_path, num_steps=5)
    assert (tmp_path / "priors.png").stat().st_size > 10_000
    assert "distance to the process" in capsys.readouterr().out


def test_views_are_drawn(tmp_path):
    with script("augmentation") as augmentation:
        augmentation.main(tmp_path)
    assert (tmp_path / "augmentation.png").stat().st_size > 5_000


@pytest.fixture(scope="module")
def gallery():
    with script("graphs") as module:
        yield module


def test_the_gallery_in_the_docs_is_what_the_script_makes(gallery, tmp_path):
    gallery.main(tmp_path)
    assert _page(tmp_path) == _page(ROOT / "docs")
    made, kept = (sorted((folder / "images" / "graphs").glob("*.svg")) for folder in (tmp_path, ROOT / "docs"))
    assert [file.name for file in made] == [file.name for file in kept]
    for one, other in zip(made, kept, strict=True):
        assert _words(one) == _words(other) != []


def _page(folder: Path) -> str:
    """The page without the widths of its pictures, which fonts decide."""
    return re.sub(r'width="\d+"', "", (folder / "graphs.md").read_text(encoding="utf-8"))


def _words(svg: Path) -> list[str]:
    return re.findall(r">([^<>]+)</text>", svg.read_text(encoding="utf-8"))


def test_every_model_of_the_gallery_has_a_density(gallery):
    for picture in gallery.PICTURES:
        x, y = picture.data()
        inputs = {name: np.zeros((12, *picture.row)) for name in picture.inputs}
        model, batch = Model(picture.program, inputs=inputs).bind((x, y)), Batch(x, y, len(x))
        theta = {name: np.zeros(leaf.shape) for name, leaf in (model.template | model.xi_template).items()}
        log_joint = jax.jit(partial(model.log_joint, batch=batch, key=random.key(0)))
        assert np.isfinite(log_joint(theta)), picture.name


# -- conditions ---------------------------------------------------------------------------------------------


@pytest.mark.full
def test_conditions_run_and_write_their_files(command, tmp_path):
    result = command("conditions", "--quick", "--sets", "2", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    text = written(tmp_path, "rising", "even", "oscillator")
    assert "the numbers mean nothing yet" in text
    assert "Means over 2 data set(s)" in text
    assert all(f"**{name}**" in text for name in conditions_verdict.MEASURES)


class Known:
    """A posterior of functions that are given, all of them straight: y = slope · x₁ + offset, one for each pair."""

    def __init__(self, slopes: list[float], offset: float = 0.0) -> None:
        self.slopes, self.offset = np.array(slopes), offset

    def predict(self, x: np.ndarray) -> SimpleNamespace:
        values = self.slopes[:, None] * x[:, 0] + self.offset
        return SimpleNamespace(functions=values, log_prob=lambda y: -((values.mean(axis=0) - y) ** 2))


def test_falls_are_measured_in_sds_where_a_function_should_rise():
    problem = conditions_problems.rising(0)
    unit = problem.train.y.std() / problem.train.x.std()
    found = conditions_verdict.of_rising(Known([2 * unit, -unit, -3 * unit, unit]), problem)
    assert found["fall"] == pytest.approx((1 + 3) / 4)
    assert found["share of falls"] == 0.5
    with pytest.raises(ValueError, match="this one is 'invariant'"):
        conditions_verdict.of_rising(Known([1.0]), conditions_problems.even(0))


def test_the_truth_keeps_its_equation_and_its_symmetry():
    t = np.linspace(0, 6, 601)
    y = conditions_problems.swing(t[:, None])
    speed = np.gradient(y, t)
    left = np.gradient(speed, t) + 2 * 0.15 * 2 * speed + 4 * y
    assert np.abs(left[5:-5]).max() < 1e-3
    assert (y[0], round(speed[0], 1)) == (1.0, 0.0)
    x = conditions_problems.even(0).test.x
    np.testing.assert_allclose(conditions_problems.bowl(-x), conditions_problems.bowl(x))


def test_intervals_and_errors_are_of_the_functions():
    problem = conditions_problems.oscillator(0)
    wide = conditions_verdict.of_oscillator(Known(np.linspace(-9, 9, 101).tolist()), problem)
    off = conditions_verdict.of_oscillator(Known([0.0, 1e-9], offset=5.0), problem)
    assert wide["coverage of 90% intervals"] == 1
    assert wide["width of 90% intervals"] == pytest.approx(18 * 0.9 * problem.test.x.mean(), rel=1e-3)
    assert off["coverage of 90% intervals"] == 0
    assert off["error beyond the data"] == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize(
    ("name", "plain", "conditioned", "said"),
    [
        (
            "rising",
            (1.0, -0.8),
            (0.05, -0.81),
            "as claimed: falls are 20.0 × smaller, and log-likelihood changes by -0",
        ),
        ("rising", (1.0, -0.8), (0.05, -0.9), "NOT as claimed"),
        ("diabetes", (1.0, -0.8), (0.2, -0.7), "NOT as claimed: falls are 5.0 × smaller"),
        ("even", (0.9,), (0.3,), "as claimed: the test error is 3.0 × smaller"),
        ("even", (0.4,), (0.3,), "NOT as claimed"),
        ("oscillator", (0.5, 1.0, 4.0), (0.05, 0.9, 0.1), "as claimed: beyond the data the error is 10.0 × smaller"),
        ("oscillator", (0.5, 1.0, 4.0), (0.05, 0.2, 0.1), "NOT as claimed"),
    ],
)
def test_the_verdict_on_conditions_depends_on_the_figures(name, plain, conditioned, said):
    names = {
        "even": ["test error"],
        "oscillator": ["error beyond the data", "coverage of 90% intervals", "width of 90% intervals"],
    }.get(name, ["fall", "held-out log-likelihood"])
    pair = (dict(zip(names, values, strict=True)) for values in (plain, conditioned))
    assert conditions_verdict.judged(name, *pair).startswith(said)


# -- their plots --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: sections({}, {}), "nothing to draw"),
        (lambda: sections({"NUTS": np.zeros((3, 5))}, {"y = 0": np.zeros((5, 2))}), r"\(draws, 1, 5\), got \(3, 5\)"),
        (lambda: surfaces({}, (np.zeros((2, 2)),) * 2), "nothing to draw"),
        (lambda: surfaces({"VI": (np.zeros(4), np.zeros(3))}, (np.zeros((2, 2)),) * 2), "each of the 4 points"),
        (lambda: fan_row({}), "nothing to draw"),
        (lambda: beside(np.zeros(3), {}), "nothing to draw"),
        (lambda: beside(np.zeros(3), {"plain": np.zeros((5, 4))}), r"got \(5, 4\) and \(3,\)"),
        (lambda: images({"noise": np.zeros((2, 8))}, {"noise": from_probs([[1.0, 0.0]] * 2)}), "height, width"),
    ],
)
def test_plots_refuse_what_they_cannot_draw(draw, said):
    with pytest.raises(ValueError, match=said):
        draw()


def test_a_section_shows_the_data_on_its_line_and_the_middle_is_zero():
    axis = np.linspace(-2, 2, 5)
    data = datasets.paperfold()
    lines = {"y = 0": np.column_stack([axis, 0 * axis])}
    (ax,) = sections({"NUTS": np.zeros((3, 1, 5))}, lines, known={"fold A": fold_a}, data=data).ravel()
    drawn = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(drawn["fold A"].get_xdata(), axis)
    np.testing.assert_allclose(np.sort(drawn["data"].get_xdata()), [-(2**0.5), 2**0.5])
    pyplot.close("all")
