"""The belief network is read off the program: nodes, edges, plates, and the joint density in words."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from credo.models import Model, regression
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
