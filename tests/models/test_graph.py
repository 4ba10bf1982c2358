"""The belief network is read off the program: nodes, edges, plates, and the joint density in words."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from matplotlib import pyplot
from matplotlib.patches import Circle, Rectangle
from numpyro import handlers

from credo import plot
from credo.models import Model, activations, regression
from credo.models.graph import graph_of
from credo.networks import MLP

X, Y = jnp.ones((3, 1)), jnp.ones(3)


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
    assert graph.plates == {"data": ("x", "y")}
    assert graph.sizes == {"data": "N"}


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
    assert graph.plates == {"data": ("x", "l1", "l2", "y")}
    ax = plot.graph(graph)
    assert [sum(type(patch) is kind for patch in ax.patches) for kind in (Rectangle, Circle)] == [6, 4]
    pyplot.close(ax.figure)


def kinds(graph):
    return {node.name: node.kind for node in graph.nodes}


def test_a_deterministic_value_stands_between_what_it_is_computed_from_and_what_uses_it():
    def program(x, y=None):
        tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
        scale = numpyro.deterministic("scale", 2 * tau)
        w = numpyro.sample("w", dist.Normal(0.0, scale))
        with numpyro.plate("data", x.shape[0]):
            f = numpyro.deterministic("f", w * x[:, 0])
            numpyro.sample("y", dist.Normal(f, tau), obs=y)

    model = Model(program).bind((X, Y))
    graph = model.graph()
    assert kinds(graph)["scale"] == kinds(graph)["f"] == "deterministic"
    # tau reaches y on a way of its own, w does not.
    assert set(graph.edges) == {
        ("tau", "scale"), ("scale", "w"), ("w", "f"), ("x", "f"), ("f", "y"), ("tau", "y"),
    }  # fmt: skip
    assert "f = f(w, x)   [plate data]" in str(graph).splitlines()
    assert model.hierarchical_sites == {"w"}


def test_a_factor_is_no_variable_and_inputs_stand_in_the_plate_of_their_name():
    def program(x, y=None, *, u, v):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        with numpyro.plate("u", u.shape[0]):
            numpyro.factor("condition", -((w * u) ** 2))
        numpyro.factor("level", -(w**2) * v)
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(w * x[:, 0], 1.0), obs=y)

    graph = graph_of(program, X, Y, {"u": jnp.ones(5), "v": jnp.ones(())})
    assert [node.kind for node in graph.nodes] == [*["input"] * 3, "latent", "factor", "factor", "observed"]
    assert graph.plates == {"u": ("u", "condition"), "data": ("x", "y")}
    assert graph.sizes == {"u": 5, "data": "N"}
    assert graph.parents("condition") == ("w", "u")
    assert all(parent not in ("condition", "level") for parent, _ in graph.edges)
    assert str(graph).splitlines()[1:3] == [
        "condition ∝ exp(factor(w, u))   [plate u]",
        "level ∝ exp(factor(w, v))",
    ]


def masked(x, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]), handlers.mask(mask=x[:, 0] > 0):
        numpyro.sample("y", dist.Normal(w, 1.0), obs=y)


def masked_inside(x, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(jnp.full((x.shape[0], 1), w), 1.0).mask(x > 0).to_event(1), obs=y[:, None])


def imputed(x, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(w, 1.0), obs=y, obs_mask=x[:, 0] > 0)


@pytest.mark.parametrize("program", [masked, masked_inside, imputed])
def test_a_site_observed_under_a_mask_is_partly_observed_and_the_mask_is_no_parent(program):
    graph = graph_of(program, X, Y)
    assert kinds(graph) == {"x": "input", "w": "latent", "y": "partly"}
    assert set(graph.edges) == {("w", "y")}
    assert str(graph).splitlines()[-1] == "y | w ~ Normal, partly observed   [plate data]"


def test_a_mask_that_hides_nothing_and_a_hidden_latent_change_nothing():
    def program(x, y=None):
        with handlers.mask(mask=False):
            w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", x.shape[0]), handlers.mask(mask=True):
            numpyro.sample("y", dist.Normal(w, 1.0), obs=y)

    assert kinds(graph_of(program, X, Y)) == {"x": "input", "w": "latent", "y": "observed"}


def test_what_is_observed_is_not_a_parent_of_its_own_distribution():
    def program(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("pretext", dist.Normal(w, 1.0), obs=x[:, 0])

    assert set(graph_of(program, X, Y).edges) == {("w", "pretext")}


def test_a_site_may_have_the_name_of_an_input():
    def program(x, y=None):
        with numpyro.plate("data", x.shape[0]):
            seen = numpyro.sample("x", dist.Normal(x[:, 0], 1.0))
            numpyro.sample("y", dist.Normal(seen, 1.0), obs=y)

    graph = graph_of(program, X, Y)
    assert set(graph.edges) == {("input x", "x"), ("x", "y")}
    assert graph.plates == {"data": ("input x", "x", "y")}


def test_an_input_may_not_have_the_name_of_the_rows():
    with pytest.raises(ValueError, match="'x' is the name of the rows"):
        graph_of(hierarchical, X, Y, {"x": X})


def test_dependence_is_followed_through_calls_loops_and_branches():
    def program(x, y=None):
        a, b, c = (numpyro.sample(name, dist.Normal(0.0, 1.0)) for name in "abc")
        jitted = jax.jit(lambda a, b: (jnp.exp(a), jnp.exp(b)))(a, b)
        (scanned, _), _ = jax.lax.scan(lambda pair, _: ((2 * pair[0], 3 * pair[1]), None), (a, b), None, length=2)
        branched = jax.lax.cond(c > 0, lambda a: a, lambda a: -a, a)
        for name, value in {
            "jit": jitted[1],
            "scan": scanned,
            "cond": branched,
            "remat": jax.checkpoint(jnp.tanh)(b),
        }.items():
            numpyro.deterministic(name, value)

    graph = graph_of(program, X, Y)
    assert [graph.parents(name) for name in ("jit", "scan", "cond", "remat")] == [("b",), ("a",), ("a", "c"), ("b",)]


def test_nothing_needs_to_be_drawn_from():
    def program(x, y=None):
        level = numpyro.sample("level", dist.ImproperUniform(dist.constraints.real, (), ()))
        count = numpyro.sample("count", dist.Poisson(jnp.exp(level)))
        numpyro.sample("root", dist.LKJCholesky(3, 1.0 + count))

    graph = graph_of(program, X, Y)
    assert set(graph.edges) == {("level", "count"), ("count", "root")}
    assert [node.distribution for node in graph.nodes[1:]] == ["ImproperUniform", "Poisson", "LKJCholesky"]


def test_the_data_stand_in_the_plates_around_theirs_and_crossed_plates_stay_whole():
    def nested(x, y=None):
        with numpyro.plate("task", 4, dim=-1):
            w = numpyro.sample("w", dist.Normal(0.0, 1.0))
            with numpyro.plate("data", x.shape[0], dim=-2):
                numpyro.sample("y", dist.Normal(w * x, 1.0), obs=y)

    def crossed(x, y=None):
        with numpyro.plate("user", 4, dim=-1):
            a = numpyro.sample("a", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", x.shape[0], dim=-2), numpyro.plate("user", 4, dim=-1):
            numpyro.sample("y", dist.Normal(a * x, 1.0), obs=y)

    ys = jnp.ones((3, 4))
    assert graph_of(nested, X, ys).plates == {"task": ("x", "w", "y"), "data": ("x", "y")}
    assert graph_of(crossed, X, ys).plates == {"user": ("a", "y"), "data": ("x", "y")}
    assert graph_of(nested, X, ys).sizes == {"task": 4, "data": "N"}


def test_a_param_is_in_a_plate_only_if_it_has_a_value_for_each_row():
    def program(x, y=None):
        with numpyro.plate("group", 4):
            own = numpyro.param("own", jnp.ones(4), event_dim=0)
            shared = numpyro.param("shared", 1.0)
            numpyro.sample("w", dist.Normal(own, shared))

    assert graph_of(program, X, Y).plates == {"group": ("own", "w")}
