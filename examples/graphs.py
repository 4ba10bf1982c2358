"""Every graphical model of the paper: a NumPyro program of a few lines, and its belief network drawn from it.

    python examples/graphs.py --out docs

writes the page `graphs.md` and its pictures, `images/graphs/*.svg`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import typer

import credo
from credo.models.graph import Graph, Node

WEIGHTS = dist.Normal(jnp.zeros(3), 1.0).to_event(1)
MISSING = -1.0  # stands for a label that nobody gave


def network(θ, x):
    """Stands for any network."""
    return jnp.tanh(jnp.sum(θ * x, axis=-1))


def labelled(y):
    """Which rows have a label."""
    return True if y is None else y != MISSING


def stochastic_weights(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def stochastic_activations(x, y=None):
    model = credo.models.activations([3, 3], out=1, noise=0.1)
    model.program(x, y)


def learned_prior(x, y=None):
    ξ = numpyro.param("ξ", 1.0, constraint=dist.constraints.positive)
    θ = numpyro.sample("θ", dist.Normal(jnp.zeros(3), ξ).to_event(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def consistency_condition(x, y=None, *, u):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("u", len(u)):
        step = network(θ, u + 0.1) - network(θ, u)
        numpyro.factor("C", -jax.nn.relu(-step))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def noisy_labels(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(θ, x), 0.1))
        numpyro.sample("y", dist.Normal(t, 0.5), obs=y)


def noise_completely_at_random(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(θ, x), 0.1))
        σ = numpyro.sample("σ", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(t, σ), obs=y)


def noise_at_random(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(θ, x), 0.1))
        σ = numpyro.sample("σ", dist.LogNormal(t, 0.5))
        numpyro.sample("y", dist.Normal(t, σ), obs=y)


def noise_not_at_random(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(θ, x), 0.1))
        σ = numpyro.sample("σ", dist.LogNormal(t + x[:, 0], 0.5))
        numpyro.sample("y", dist.Normal(t, σ), obs=y)


def semi_supervised(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)), numpyro.handlers.mask(mask=labelled(y)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def data_augmentation(x, y=None):
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        augmented = numpyro.sample("x′", dist.Normal(x, 0.1).to_event(1))
        numpyro.sample("y", dist.Normal(network(θ, augmented), 0.1), obs=y)


def meta_learning(x, y=None):
    ξ = numpyro.sample("ξ", WEIGHTS)
    with numpyro.plate("task", 5, dim=-1):
        θ = numpyro.sample("θ", dist.Normal(ξ, 0.3).to_event(1))
        with numpyro.plate("data", len(x), dim=-2):
            numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def transfer_learning(x, y=None):
    ξ = numpyro.param("ξ", jnp.array([0.7, -0.2, 1.1]))
    σ = numpyro.param("σ", 0.3, constraint=dist.constraints.positive)
    selected = jnp.array([1.0, 1.0, 0.0]) * ξ
    θ = numpyro.sample("θ", dist.Normal(selected, σ).to_event(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(network(θ, x), 0.1), obs=y)


def self_supervised(x, y=None):
    θ_s = numpyro.sample("θₛ", WEIGHTS)
    θ_p = numpyro.sample("θₚ", WEIGHTS)
    θ_t = numpyro.sample("θₜ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        l = numpyro.deterministic("l", jnp.tanh(θ_s * x))  # noqa: E741
        numpyro.sample("yₚ", dist.Normal(network(θ_p, l), 0.1), obs=x[:, 0])
        with numpyro.handlers.mask(mask=labelled(y)):
            numpyro.sample("y", dist.Normal(network(θ_t, l), 0.1), obs=y)


def last_layer(x, y=None):
    w = numpyro.param("w", jnp.ones(3))
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("data", len(x)):
        l = numpyro.deterministic("l", jnp.tanh(w * x))  # noqa: E741
        numpyro.sample("y", dist.Normal(network(θ, l), 0.1), obs=y)


def sparse_measure(x, y=None, *, u):
    ξ, s = numpyro.param("ξ", jnp.ones(3)), numpyro.param("s", -2.0)
    numpyro.factor("p(s)", dist.Normal(0, 50).log_prob(s))
    θ = numpyro.sample("θ", WEIGHTS)
    with numpyro.plate("u", len(u)):
        numpyro.factor("C", -(network(ξ * θ, u) ** 2))
    with numpyro.plate("data", len(x)):
        t = numpyro.sample("t", dist.Normal(network(ξ * θ, x), 0.1))
        o = numpyro.sample("o", dist.Bernoulli(logits=s))
        with numpyro.handlers.mask(mask=labelled(y)):
            numpyro.sample("y", dist.Normal(t, jnp.where(o == 1, 5.0, 0.1)), obs=y)


@dataclass(frozen=True)
class Picture:
    """A program, the data that it is for, where the paper has it, and what to see."""

    program: Callable[..., None]
    place: str
    words: str
    row: tuple[int, ...] = (3,)
    inputs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.program.__name__

    @property
    def code(self) -> str:
        return inspect.getsource(self.program).strip()

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """A few rows: the graph needs their shape alone."""
        return np.zeros((4, *self.row)), np.zeros((4, *self.row[:-1]))

    def graph(self) -> Graph:
        inputs = {name: np.zeros((12, *self.row)) for name in self.inputs}
        return credo.Model(self.program, inputs=inputs).bind(self.data()).graph()


SYMBOLS = Graph(
    (
        Node("observed", "observed"),
        Node("latent", "latent"),
        Node("deterministic", "deterministic"),
        Node("partly observed", "partly"),
        Node("parameter", "parameter"),
        Node("factor", "factor"),
        Node("v", "latent"),
    ),
    edges=(),
    plates={"plate": ("v",)},
    sizes={"plate": "size"},
)

PICTURES = (
    Picture(
        stochastic_weights,
        'figure "BBNs", a',
        "The weights θ are drawn once, and shared by all rows of the data.",
    ),
    Picture(
        stochastic_activations,
        'figure "BBNs", b',
        "The layers are drawn, once for each row; the weights are parameters, learned without a prior.",
    ),
    Picture(
        learned_prior,
        'section "Learning the prior"',
        "The scale of the prior is a parameter ξ, learned together with the posterior of θ.",
    ),
    Picture(
        consistency_condition,
        'section "Prior with a consistency condition"',
        "p(θ | u) ∝ p(θ) exp(−Σ C(θ, u)): a factor for each of the model's own inputs u, which stand in the plate of "
        "their name: `credo.Model(program, inputs={'u': points})`. Here C is how far the function falls where it "
        "should rise.",
        inputs=("u",),
    ),
    Picture(
        noisy_labels,
        'figure "PGM models", a',
        "The site `y` is what the data hold, the noisy label, which the paper calls ỹ; the true one is `t`, the "
        "paper's y.",
    ),
    Picture(
        noise_completely_at_random,
        "figure of noise models, a",
        "The scale σ of the noise of each label depends on nothing.",
    ),
    Picture(noise_at_random, "figure of noise models, b", "It depends on the true label."),
    Picture(noise_not_at_random, "figure of noise models, c", "It depends on the input too."),
    Picture(
        semi_supervised,
        'figure "PGM models", b',
        "A label that is missing adds nothing to the likelihood: the circle is half filled. The paper leaves out the "
        "plate for models whose labels depend on each other; here they are independent given θ.",
    ),
    Picture(
        data_augmentation,
        'figure "PGM models", c',
        "What the network sees is x′, drawn afresh around x: the augmentation is a part of the model.",
    ),
    Picture(
        meta_learning,
        'figure "PGM models", d',
        "Each task has weights of its own, around ξ, which the tasks share; each has data of its own.",
        row=(5, 3),
    ),
    Picture(
        transfer_learning,
        'section "Meta-learning, transfer learning, and self-supervised learning"',
        "p(θ | ξ) = N((sel(ξ), 0), σ² I): some weights start from those of the main task, ξ. `model.freeze` fixes ξ "
        "and σ; left free, they are learned.",
    ),
    Picture(
        self_supervised,
        'figure "PGM models", e',
        "The pretext task takes its labels `yₚ` from the inputs themselves; the layer l serves both tasks. `y` is the "
        "paper's yₜ.",
    ),
    Picture(
        last_layer,
        'figure "PGM and BNN corresponding to a last-layer model"',
        "The weights w of all layers but the last are parameters, points that are learned or given; the features l are "
        "what they make of x. `credo.models.last_layer(model)` makes such a model of any other: see "
        "[last layers](last_layers.md).",
    ),
    Picture(
        sparse_measure,
        "Practical Example II of the supplement",
        "The first layers ξ and the log-odds s of an outlier o are points, the last layers θ are stochastic; what is "
        "known of the function is a factor for each input u; measurements y may be missing, or those of a broken "
        "sensor. `credo example sparse` fits it, and [a page](sparse.md) tells what it finds.",
        inputs=("u",),
    ),
)

PIXELS = 120  # for an inch of the drawing
HEAD = """# The paper's graphical models

Each picture is drawn from the program beside it, and the joint density below the program is what the same graph prints:

```python
model = credo.Model(program).bind((x, y))
print(model.graph())
credo.plot.save(credo.plot.graph(model), "graph.svg")
```

No arrow is written by hand: it says that the distribution of its target was computed from its source. A frame repeats
what is inside; that of the data does so for each of the N rows. `python examples/graphs.py --out docs` makes this page.

![observed, latent, deterministic, partly observed, parameter, factor, plate](images/graphs/symbols.svg)

The programs share a network, which may be any, a prior, and a number that stands for a missing label:

```python
{shared}
```
"""


def shared() -> str:
    """The lines above that all programs use."""
    source = Path(__file__).read_text(encoding="utf-8")
    return source[source.index("WEIGHTS = ") : source.index("def stochastic_weights")].strip()


def section(picture: Picture, width: int) -> str:
    """The program beside its picture, in Markdown."""
    title = picture.name.replace("_", " ").capitalize()
    image = f'<img src="images/graphs/{picture.name}.svg" width="{width}" alt="{title}">'
    code = f"```python\n{picture.code}\n```\n\n```text\n{picture.graph()}\n```"
    return (
        f"## {title}\n\nPaper, {picture.place}. {picture.words}\n\n"
        f"<table><tr><td>\n\n{code}\n\n</td><td>\n\n{image}\n\n</td></tr></table>\n"
    )


def draw(graph: Graph, file: Path) -> int:
    """Save the picture of a graph in its own size; its width in pixels."""
    ax = credo.plot.graph(graph)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    ax.figure.set_layout_engine("none")
    ax.figure.set_size_inches(right - left, top - bottom)
    ax.set_position((0.0, 0.0, 1.0, 1.0))
    credo.plot.save(ax, file)
    return round(PIXELS * (right - left))


def main(out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("docs")) -> None:
    """Write the page and its pictures."""
    images = out / "images" / "graphs"
    images.mkdir(parents=True, exist_ok=True)
    draw(SYMBOLS, images / "symbols.svg")
    sections = [section(picture, draw(picture.graph(), images / f"{picture.name}.svg")) for picture in PICTURES]
    page = "\n".join([HEAD.format(shared=shared()), *sections])
    (out / "graphs.md").write_text(page, encoding="utf-8")
    typer.echo(f"{out / 'graphs.md'}: {len(PICTURES) + 1} pictures")


if __name__ == "__main__":
    typer.run(main)
