"""Parameters from elsewhere arrive by name, in the right layout, or not at all."""

import equinox as eqx
import jax
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import save_file

from credo.networks import CNN, MLP, functional, load_params
from credo.networks.trained import matched
from tests.networks.test_masks import NETS, EquinoxNet, LinenNet, NnxNet, X


def values(scale: float = 1.0) -> dict[str, np.ndarray]:
    """Parameters of `MLP([4], 1, inputs=3)` that no network starts with."""
    rng = np.random.default_rng(5)
    params = functional(MLP([4], 1, inputs=3)).params
    return {name: (scale * rng.normal(size=leaf.shape)).astype(np.float32) for name, leaf in params.items()}


def nested(flat: dict) -> dict:
    tree: dict = {}
    for name, leaf in flat.items():
        *path, last = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = leaf
    return tree


def assert_same(found: dict, expected: dict) -> None:
    assert list(found) == list(expected)
    for name, leaf in expected.items():
        np.testing.assert_array_equal(found[name], leaf)
        assert found[name].dtype == leaf.dtype


NET = MLP([4], 1, inputs=3)
SOURCES = {
    "flat dict": lambda params: params,
    "nested dict": nested,
    "slashes": lambda params: {name.replace(".", "/"): leaf for name, leaf in params.items()},
    "params prefix": lambda params: {f"params.{name}": leaf for name, leaf in params.items()},
    "long prefix": lambda params: {f"model/net/{name}": leaf for name, leaf in params.items()},
    "linen variables": lambda params: {"params": nested(params), "batch_stats": {"norm": {"mean": np.ones(3)}}},
    "double precision": lambda params: {name: leaf.astype(np.float64) for name, leaf in params.items()},
    "lists": lambda params: {name: leaf.tolist() for name, leaf in params.items()},
    "with a counter": lambda params: {**params, "num_batches": np.array(7)},
    "pytorch": lambda params: {name.replace("kernel", "weight"): leaf.T for name, leaf in params.items()},
}


@pytest.mark.parametrize("name", SOURCES)
def test_names_are_matched(name):
    assert_same(load_params(NET, SOURCES[name](values())), values())


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_a_safetensors_file(tmp_path, as_path):
    save_file(values(), tmp_path / "net.safetensors")
    assert_same(load_params(NET, as_path(tmp_path / "net.safetensors")), values())


def test_a_network_that_meets_its_data_later():
    assert_same(load_params(MLP([4], 1), values(), X), values())


def test_modules_and_states_of_the_frameworks():
    net = NnxNet()
    own = functional(net).params
    for source in (net, nnx.state(net), nnx.state(net, nnx.Param)):
        assert_same(load_params(NnxNet(), source), own)
    module, variables = NETS["linen"]()
    for source in (variables, variables["params"]):
        assert_same(load_params((module, variables), source), functional((module, variables)).params)
    trained = EquinoxNet(jax.random.key(8))
    for source in (trained, eqx.filter(trained, eqx.is_inexact_array)):
        assert_same(load_params(EquinoxNet(jax.random.key(0)), source), functional(trained).params)
    assert isinstance(module, LinenNet)


def test_layers_in_lists_have_their_numbers():
    net = CNN(3, inputs=(12, 12), kernel_size=3, channels=(2, 3), features=(4,))
    assert_same(load_params(net, nnx.to_pure_dict(nnx.state(net, nnx.Param))), functional(net).params)


def test_kernels_of_pytorch_are_turned_and_flattening_is_told():
    net = CNN(3, inputs=(12, 12), kernel_size=3, channels=(2, 3), features=(4,))
    params = functional(net).params
    turned = {
        name.replace("kernel", "weight"): leaf.transpose(-1, -2, *range(leaf.ndim - 2)) if leaf.ndim > 1 else leaf
        for name, leaf in params.items()
    }
    with pytest.warns(UserWarning, match="channels first"):
        assert_same(load_params(net, turned), params)


def test_one_report_of_all_that_is_amiss():
    params = values()
    wrong = {
        "hidden.0.kernel": params["hidden.0.kernel"],
        "head.kernel": np.ones((3, 1), np.float32),
        "head.biass": params["head.bias"],
        "extra": np.ones(2),
    }
    with pytest.raises(ValueError, match="do not fit the network") as caught:
        load_params(NET, wrong)
    message = str(caught.value)
    assert "2 missing: head.bias, hidden.0.bias" in message
    assert "2 left over: extra, head.biass" in message
    assert "1 of the wrong shape: head.kernel: (3, 1) for (4, 1)" in message


def test_a_long_report_is_cut():
    expected = {f"layer.{index}": np.ones(2) for index in range(20)}
    with pytest.raises(ValueError, match=r"19 missing: .* and 13 more"):
        matched(expected, {"layer.0": np.ones(2)})


@pytest.mark.parametrize("source", [{}, {"a": 1}, {"a": "text"}, None, 3])
def test_sources_without_arrays(source):
    with pytest.raises(ValueError, match="no arrays of a floating type"):
        load_params(NET, source)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_params(NET, tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("not tensors")
    with pytest.raises(ValueError, match="not a safetensors file"):
        load_params(NET, tmp_path / "text.safetensors")
