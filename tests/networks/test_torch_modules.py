"""What modules may be like: any mode, precision and sharing; and what is refused, in one sentence."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

import credo
from credo.networks import from_torch, functional, torch_op
from credo.networks.masks import Masks
from tests.networks.torch_zoo import simple, text

X = torch.linspace(-1, 1, 6).reshape(2, 3)


class Around(nn.Module):
    """A linear layer, and something around it."""

    def __init__(self, forward, num_out=4):
        super().__init__()
        self.layer = nn.Linear(3, num_out)
        self.around = forward

    def forward(self, x):
        return self.around(self.layer, x)


def by_values(layer, x):
    y = layer(x)
    if y.sum() > 0:
        return y
    return -y


REFUSED = {
    "data-dependent control flow": (lambda: Around(by_values), X, r"in by_values at test_torch_modules.py:\d+: its .*"),
    "a fixed number of rows": (lambda: Around(lambda layer, x: layer(x).view(2, 4)), X, "one number of rows only"),
    "a forward that fails": (lambda: Around(lambda layer, x: layer(x[:, :2])), X, "its forward fails .*reduction dim"),
    "several outputs": (lambda: Around(lambda layer, x: {"a": layer(x), "b": x}), X, "output= 'a', 'b'"),
    "an unknown operation": (
        lambda: Around(lambda layer, x: torch.special.bessel_j0(layer(x))),
        X,
        r"aten.special_bessel_j0.default in its forward.*torch_op\('aten.special_bessel_j0.default'\)",
    ),
    "an unknown operation in a part": (
        lambda: nn.Sequential(nn.Linear(3, 4), Around(lambda _, x: torch.special.bessel_j0(x))),
        X,
        "aten.special_bessel_j0.default in '1'",
    ),
    "no values": (lambda: nn.Linear(3, 1, device="meta"), X, "on the device 'meta'"),
    "no statistics": (lambda: nn.BatchNorm1d(3, track_running_stats=False), X, "keeps no statistics"),
    "no parameters": (nn.Tanh, X, "no trainable parameters"),
    "a class": (lambda: nn.Linear, X, "pass a torch.nn.Module"),
    "one row": (lambda: nn.Linear(3, 1), X[0], "pass a batch of rows"),
    "two inputs": (lambda: nn.Linear(3, 1), (X, X), "a network has one input x"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_in_one_sentence(what, capfd):
    make, x, words = REFUSED[what]
    with pytest.raises(ValueError, match=words):
        from_torch(make(), x)
    assert capfd.readouterr() == ("", "")


def test_an_unknown_output_is_refused():
    with pytest.raises(ValueError, match="output is 'c'"):
        from_torch(Around(lambda layer, x: {"a": layer(x), "b": x}), X, output="c")


def test_an_operation_can_be_registered():
    torch_op("aten.special_i1e.default")(jax.scipy.special.i1e)
    module = nn.Sequential(nn.Linear(3, 4), Around(lambda layer, x: torch.special.i1e(x) + 0 * layer.bias[0]))
    network = from_torch(module, X)
    np.testing.assert_allclose(network.apply(network.params, X.numpy()), module(X).detach().numpy(), atol=1e-5)


def test_the_module_stays_as_it_is():
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    module[2].running_mean.add_(0.5)
    module[1].eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    from_torch(module, X)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert [layer.training for layer in (module, *module)] == [True, True, False, True]


def test_training_mode_is_read_as_evaluation():
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    module[2].running_mean.add_(0.5)
    network = from_torch(module.train(), X)
    outputs = network.apply(network.params, X.numpy())
    np.testing.assert_allclose(outputs, module.eval()(X).detach().numpy(), atol=1e-6)


def test_initial_batch_statistics_are_told():
    with pytest.warns(UserWarning, match="still have their initial values"):
        from_torch(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), X)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_precision_becomes_the_working_one(dtype):
    module = nn.Linear(3, 2).to(dtype)
    network = from_torch(module, X.to(dtype))
    assert {array.dtype for array in network.params.values()} == {np.dtype("float32")}
    np.testing.assert_array_equal(network.params["weight"], module.weight.detach().float().numpy())


def test_double_precision_agrees_to_its_digits():
    module = simple.mlp().double().eval()
    x = torch.randn(3, 5, dtype=torch.float64)
    with jax.enable_x64(True):
        network = from_torch(module, x)
        outputs = np.asarray(network.apply(network.params, jnp.asarray(x.numpy())))
    # Sums of 16 numbers: a few roundings of 2⁻⁵³ each.
    np.testing.assert_allclose(outputs, module(x).detach().numpy(), rtol=1e-12)


def test_shared_parameters_appear_once_under_their_first_name():
    shared = nn.Linear(3, 3)
    module = nn.Sequential(shared, nn.Tanh(), shared)
    network = from_torch(module, X)
    assert network.params.keys() == {"0.weight", "0.bias"}
    np.testing.assert_allclose(network.apply(network.params, X.numpy()), module(X).detach().numpy(), atol=1e-6)
    tied = from_torch(text.GPT(), torch.randint(1, 40, (2, 9)))
    assert "lm_head.weight" not in tied.params
    # Used as a layer too, so its fan-in is that of the layer.
    assert tied.fan_in["wte.weight"] == 16
    assert tied.fan_in["wpe.weight"] == 1


def test_frozen_parameters_are_constants():
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    module[0].requires_grad_(False)
    network = from_torch(module, X)
    assert network.params.keys() == {"1.weight", "1.bias"}
    np.testing.assert_allclose(network.apply(network.params, X.numpy()), module(X).detach().numpy(), atol=1e-6)


def test_any_number_of_rows_and_only_rows_like_the_example():
    network = from_torch(nn.Linear(3, 2), X[:1])
    assert network.apply(network.params, np.zeros((7, 3), np.float32)).shape == (7, 2)
    with pytest.raises(ValueError, match=r"rows of shape \(4,\), but the network was imported with rows of \(3,\)"):
        network.apply(network.params, np.zeros((7, 4), np.float32))


def test_images_may_come_with_their_channels_last():
    module = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten())
    x = torch.randn(2, 3, 5, 6)
    network = from_torch(module, x, channels_last=True)
    turned = x.permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(network.apply(network.params, turned), module(x).detach().numpy(), atol=1e-5)


def test_dropout_layers_and_functions_are_places_of_masks():
    def twice(layer, x):
        return nn.functional.dropout2d(nn.functional.dropout(layer(x), 0.2)[:, :, None, None].repeat(1, 1, 2, 2), 0.3)

    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1), Around(twice))
    network = from_torch(module, X)
    with Masks({}, look=True) as masks:
        plain = network.apply(network.params, X.numpy())
    assert [(layer.num_units, layer.rate) for layer in masks.layers] == [(3, 0.1), (4, 0.2), (4, 0.3)]
    with Masks({"dropout_mask.2": jnp.array([0.0, 1.0, 2.0, 3.0])}):
        masked = network.apply(network.params, X.numpy())
    np.testing.assert_allclose(masked, plain * np.arange(4.0)[:, None, None], rtol=1e-6)


def test_layers_of_an_lstm_drop_between_them():
    network = from_torch(text.TextClassifier(), torch.randint(1, 40, (2, 5)))
    with Masks({}, look=True) as masks:
        network.apply(network.params, np.ones((2, 5), np.float32))
    assert [(layer.num_units, layer.rate) for layer in masks.layers] == [(12, 0.2), (6, 0.5)]


def test_transformations_of_jax():
    network = from_torch(simple.mlp(), torch.zeros(2, 5))
    x = np.ones((4, 5), np.float32)
    stacked = {path: jnp.stack([array, 2 * array]) for path, array in network.params.items()}
    both = jax.vmap(network.apply, (0, None))(stacked, x)
    np.testing.assert_allclose(both[0], network.apply(network.params, x), rtol=1e-5)
    _, forward = jax.jvp(lambda theta: network.apply(theta, x), (network.params,), (network.params,))
    _, pull = jax.vjp(lambda theta: network.apply(theta, x), network.params)
    (backward,) = pull(jnp.ones((4, 2)))
    total = sum(float(jnp.vdot(backward[path], array)) for path, array in network.params.items())
    # 8 outputs of size one, each to some 10⁻⁶.
    assert abs(float(forward.sum()) - total) < 1e-4


def test_a_model_takes_a_module_as_it_is_and_sees_that_it_was_trained_on():
    module = nn.Linear(3, 1)
    model = credo.models.regression(module, noise=0.1)
    x, y = np.ones((5, 3)), np.zeros(5)
    first = model.bind((x, y)).initial(jnp.ones((5, 3)))
    np.testing.assert_array_equal(first["weight"], module.weight.detach().numpy())
    with torch.no_grad():
        module.weight.add_(1.0)
    np.testing.assert_array_equal(functional(module, x).params["weight"], module.weight.detach().numpy())


def test_a_module_of_tokens_asks_for_examples():
    model = credo.models.classification(nn.Sequential(nn.Embedding(4, 3), nn.Flatten()))
    with pytest.raises(ValueError, match=r"for tokens.* pass credo.networks.from_torch\(module, example_inputs\)"):
        model.bind((np.zeros((4, 2)), np.zeros(4, int)))


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "credo.networks.torch.export", None)
    monkeypatch.delattr("credo.networks.torch.export", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'credo\[torch\]'"):
        from_torch(nn.Linear(3, 1), X)


def test_torch_is_imported_only_when_it_is_needed():
    code = "import sys, credo; credo.networks.from_torch, credo.models.regression; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
