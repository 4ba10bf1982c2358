"""The belief network is read off the program: nodes, edges, plates, and the joint density in words."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from matplotlib import pyplot
from matplotlib.patches import Circle, Rectangle

from credo import plot
from credo.models import Model, activations, regression
from credo.networks import MLP


def hierarchical(x, y=None):
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    w = numpyro.sample("w", dist.Normal(0.0, tau))
    numpyro.sample("alone", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(w * x[:, 0], 1.0), obs=y)


@pytest.fixture(scope="module")
def graph():
    return Model(hierarchical).bind((np.ones((3, 1)), np.ones(3))).graph()


def test_nodes_know_what_they_are(graph):
    assert {node.name: (node.kind, node.distribution) for node in graph.nodes} == {
        "x": ("input", ""),
        "tau": ("latent", "HalfCauchy"),
        "w": ("latent", "Normal"),
        "alone": ("latent", "Normal"),
        "y": ("observed", "Normal"),
    }


def test_edges_follow_the_computation_and_nothing_else(graph):
    # tau reaches y only through w: an edge tau → y would be a wrong factor.
    assert set(graph.edges) == {("tau", "w"), ("w", "y"), ("x", "y")}
    assert len(graph.edges) == 3
    assert graph.parents("y") == ("w", "x")
    assert graph.parents("tau") == graph.parents("alone") == ()


def test_plates_hold_their_members(graph):
    assert graph.plates == {"data": ("y",)}


def test_the_text_is_the_joint_density_factor_by_factor(graph):
    assert str(graph).splitlines() == [
        "tau ~ HalfCauchy",
        "w | tau ~ Normal",
        "alone ~ Normal",
        "y | w, x ~ Normal   [plate data]",
    ]


def test_all_weights_and_the_noise_of_a_regression_are_parents_of_y():
    model = regression(MLP(features=[2], out=1)).bind((np.ones((3, 1)), np.ones(3)))
    latents = {node.name for node in model.graph().nodes if node.kind == "latent"}
    assert latents == set(model.template)
    assert set(model.graph().parents("y")) == latents | {"x"}


def test_params_are_parents_of_what_is_computed_from_them_and_have_no_factor():
    def program(x, y=None):
        scale = numpyro.param("scale", lambda key: jax.random.uniform(key), constraint=dist.constraints.positive)
        numpyro.param("unused", 1.0)
        w = numpyro.sample("w", dist.Normal(0.0, scale))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(w * x[:, 0], 1.0), obs=y)

    graph = Model(program).bind((np.ones((3, 1)), np.ones(3))).graph()
    assert {node.name for node in graph.nodes if node.kind == "parameter"} == {"scale", "unused"}
    assert set(graph.edges) == {("scale", "w"), ("w", "y"), ("x", "y")}
    assert str(graph).splitlines() == ["w | scale ~ Normal", "y | w, x ~ Normal   [plate data]"]


def test_stochastic_activations_are_a_chain_and_their_weights_are_drawn_as_squares():
    graph = activations([3, 2], 1, noise=0.1).bind((np.ones((3, 1)), np.ones(3))).graph()
    assert set(graph.parents("l1")) == {"x", "hidden.0.kernel", "hidden.0.bias"}
    assert set(graph.parents("l2")) == {"l1", "hidden.1.kernel", "hidden.1.bias"}
    assert set(graph.parents("y")) == {"l2", "head.kernel", "head.bias"}
    assert graph.plates == {"data": ("l1", "l2", "y")}
    ax = plot.graph(graph)
    assert [sum(type(patch) is kind for patch in ax.patches) for kind in (Rectangle, Circle)] == [6, 4]
    pyplot.close(ax.figure)
