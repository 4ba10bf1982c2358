"""Low-rank adapters: the network itself at first, W₀ + A B afterwards, and nothing but A and B to learn."""

import numpy as np
import pytest
import torch

import credo
from credo.covariance.layers import layers_of
from credo.networks import MLP, from_torch, functional, lora, to_torch
from tests.networks.torch_zoo import simple, text

X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)


def random_theta(network):
    rng = np.random.default_rng(1)
    return {path: rng.normal(size=array.shape).astype(np.float32) for path, array in network.params.items()}


def module():
    torch.manual_seed(0)
    return simple.mlp()


NETS = {
    "flax": (lambda: MLP([6, 6], 2, inputs=5), ("hidden.0.kernel", "hidden.1.kernel", "head.kernel")),
    "PyTorch": (lambda: functional(module(), X), ("0.weight", "4.weight", "7.weight")),
    "a matrix on the left": (lambda: (lambda p, x: (p["w"] @ x.T).T, {"w": np.ones((2, 5), np.float32)}), ("w",)),
}


@pytest.mark.parametrize("name", NETS)
def test_adapters_are_what_they_add_to_the_weights(name):
    make, paths = NETS[name]
    base, adapted = functional(make()), lora(make(), rank=2)
    assert adapted.params.keys() == {f"{path}.lora_{letter}" for path in paths for letter in "ab"}
    np.testing.assert_array_equal(adapted.apply(adapted.params, X), base.apply(base.params, X))
    theta = random_theta(adapted)
    whole = dict(base.params)
    for path in paths:
        whole[path] = whole[path] + theta[f"{path}.lora_a"] @ theta[f"{path}.lora_b"]
    expected = np.asarray(base.apply(whole, X))
    # Sums of some ten products, through three layers.
    np.testing.assert_allclose(adapted.apply(theta, X), expected, atol=1e-5 * np.abs(expected).max())


def test_both_factors_can_learn_after_a_step():
    """One factor is zero and the other is not: the first has a gradient, and the function is that of the network."""
    adapted = lora(MLP([6], 2, inputs=5), rank=3)
    assert np.any(adapted.params["head.kernel.lora_a"])
    assert not np.any(adapted.params["head.kernel.lora_b"])
    assert adapted.fan_in["head.kernel.lora_a"] == 6
    assert adapted.fan_in["head.kernel.lora_b"] == 3


def test_select_takes_patterns():
    net = from_torch(text.GPT(), torch.ones(2, 9, dtype=torch.int64))
    adapted = lora(net, rank=2, select="attn.*")
    assert {path.rpartition(".")[0] for path in adapted.params} == {"attn.c_attn.weight", "attn.c_proj.weight"}
    with pytest.raises(ValueError, match=r"select: 'attn.q' matches no dense layer.*attn.c_attn.weight"):
        lora(net, select="attn.q")
    with pytest.raises(ValueError, match="rank must be"):
        lora(net, rank=0)


def test_an_array_that_is_no_layer_is_refused_by_its_name():
    adapted = lora(from_torch(text.GPT(), torch.ones(2, 9, dtype=torch.int64)), select="wte.*")
    with pytest.raises(ValueError, match=r"'wte.weight' is no matrix of a dense layer"):
        adapted.apply(adapted.params, np.ones((2, 9), np.float32))


def test_curvature_sees_two_layers_for_each():
    adapted = lora(module(), rank=2, select="0.*", x=X)
    found = layers_of(lambda theta: adapted.apply(theta, X), adapted.params)
    assert [layer.names for layer in found] == [("0.weight.lora_b",), ("0.weight.lora_a",)]


METHODS = {
    "Laplace": credo.Laplace(training=credo.MAP(num_steps=5)),
    "VI": credo.BayesByBackprop(num_steps=5),
    "SGLD": credo.SGLD(num_samples=4, num_warmup=4, num_chains=1, thin=1, batch_size=6),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_run_on_adapters_and_go_back_into_the_module(name, tmp_path):
    own = module()
    net = lora(own, rank=2, select=["0.*", "7.*"], x=X)
    posterior = credo.fit(credo.models.classification(net), (X, np.arange(12) % 2), METHODS[name], progress=False)
    state = to_torch(posterior, own)
    changed = {path for path, tensor in own.state_dict().items() if not torch.equal(state[path], tensor)}
    assert changed == {"0.weight", "7.weight"}
    posterior.save(tmp_path / "run")
    with pytest.raises(credo.LoadError, match="network=net"):
        credo.load(tmp_path / "run")
    again = credo.load(tmp_path / "run", network=net)
    np.testing.assert_array_equal(again.predict(X).probs, posterior.predict(X).probs)
