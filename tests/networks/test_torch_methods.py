"""Methods on a PyTorch network: what a module brings along, and what goes back into it."""

import copy
import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest
import torch

import credo
from credo._schema import BROKEN
from credo.covariance.layers import layers_of
from credo.networks import from_torch, to_torch
from tests.networks.torch_zoo import frn, resnet, simple, text

ROWS = 24


def trained_resnet(**settings):
    """A network of the kind of resnet18, whose batch statistics are those of some images."""
    torch.manual_seed(0)
    module = resnet.resnet18(3, 4, **settings)
    with torch.no_grad():
        for _ in range(3):
            module(torch.randn(16, 3, 32, 32))
    return module


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, 3, 32, 32)).astype(np.float32), np.arange(ROWS) % 3


STEPS = {"num_steps": 10, "batch_size": 8}
METHODS = {
    "last-layer Laplace": credo.Laplace(subset="last_layer", training=credo.MAP(**STEPS)),
    "MC dropout": credo.MCDropout(**STEPS),
    "SWAG": credo.SWAG(num_steps=10, num_warmup=5, rank=3, collect_every=1, batch_size=8, start="network"),
    "SGLD": credo.SGLD(num_samples=5, num_warmup=5, num_chains=1, thin=1, batch_size=8, start="network"),
    "an ensemble of two": credo.DeepEnsemble(credo.MAP(**STEPS), members=2),
}


def check_method(name, images, module):
    network = from_torch(module, torch.zeros(2, *images[0].shape[1:]))
    posterior = credo.fit(credo.models.classification(network), images, METHODS[name], progress=False)
    probs = posterior.predict(images[0][:4], num_draws=3).probs
    assert probs.shape == (4, 3)
    assert np.all(np.isfinite(probs))
    # The weights come back under PyTorch's names, and the module takes them.
    member = posterior.members[0] if hasattr(posterior, "members") else posterior
    module.load_state_dict(to_torch(member, module))


@pytest.mark.parametrize("name", METHODS)
def test_a_block_of_resnet18_runs_with(name, images):
    x, y = images
    check_method(name, (x[..., ::4, ::4], y), trained_resnet(depths=(1,)))


@pytest.mark.full
@pytest.mark.parametrize("name", METHODS)
def test_resnet18_runs_with(name, images):
    check_method(name, images, trained_resnet())


@pytest.fixture
def module():
    torch.manual_seed(0)
    return simple.mlp()


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 5)), rng.normal(size=(30, 2))


def test_trained_weights_come_along_and_go_back(module, data):
    model = credo.models.regression(from_torch(module, torch.zeros(2, 5)), noise=0.1)
    laplace = credo.Laplace().from_trained(model, data)
    dropout = credo.MCDropout.from_trained(model, data)
    before = module.state_dict()
    for posterior in (laplace, dropout):
        after = to_torch(posterior, module)
        assert after.keys() == before.keys()
        assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    # The layer normalisations, too, are uncertain: a draw differs in every array.
    drawn = to_torch(laplace, module, seed=1)
    assert not any(torch.equal(drawn[name], tensor) for name, tensor in before.items())


def test_a_drawn_module_answers_as_the_draw_does(module, data):
    model = credo.models.regression(module, noise=0.1)
    posterior = credo.fit(model, data, credo.SWAG(num_steps=20, num_warmup=10, collect_every=1, rank=3), progress=False)
    module.load_state_dict(to_torch(posterior, module, seed=3))
    theta = {name: leaf[0] for name, leaf in posterior.sample(credo.random.key(3), 1).items()}
    expected = posterior.model.predictive(theta, data[0].astype(np.float32)).mean
    answers = module.eval()(torch.as_tensor(data[0], dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(answers, expected, atol=1e-4)


def test_tied_weights_go_back_tied():
    module = text.GPT()
    x = np.ones((4, 9))
    model = credo.models.classification(from_torch(module, torch.ones(2, 9, dtype=torch.int64)))
    posterior = credo.fit(model, (x, np.arange(4)), credo.MAP(num_steps=2), progress=False)
    state = to_torch(posterior, module)
    assert torch.equal(state["wte.weight"], state["lm_head.weight"])
    assert not torch.equal(state["wte.weight"], module.wte.weight)
    assert torch.equal(state["attn.bias"], module.attn.bias)


def test_a_posterior_is_loaded_without_the_module(module, data, tmp_path):
    module[1].requires_grad_(False)
    model = credo.models.regression(from_torch(module, torch.zeros(2, 5)), noise=0.1)
    posterior = credo.fit(model, data, credo.MAP(num_steps=5), progress=False)
    posterior.save(tmp_path / "run")
    code = (
        "import sys, credo, numpy as np; posterior = credo.load(sys.argv[1]); "
        "np.save(sys.argv[2], posterior.predict(np.load(sys.argv[3])).mean); print('torch' in sys.modules)"
    )
    np.save(tmp_path / "x.npy", data[0])
    places = [str(tmp_path / name) for name in ("run", "mean.npy", "x.npy")]
    done = subprocess.run([sys.executable, "-c", code, *places], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    np.testing.assert_array_equal(np.load(tmp_path / "mean.npy"), posterior.predict(data[0]).mean)


@pytest.mark.parametrize(
    "change",
    [
        lambda network: network["nodes"][0].update(op="os.system"),
        lambda network: network["nodes"][0].update(args=[{"ref": "nothing"}]),
        lambda network: network["nodes"][0].update(args=[{"code": "1"}]),
        lambda network: network["shapes"].update({"0.weight": [16, -5]}),
        lambda network: network.update(row=[7]),
        lambda network: next(iter(network["constants"].values())).update(packed="abc"),
    ],
)
def test_a_damaged_graph_is_refused(module, change):
    module[1].requires_grad_(False)
    config = copy.deepcopy(from_torch(module, torch.zeros(2, 5)).config)
    change(config)

    def used():
        network = credo.networks.from_config(config)
        network.apply(network.params, np.zeros((2, 5), np.float32))

    with pytest.raises(BROKEN):
        used()


def test_ensembles_travel_to_other_processes(module, data):
    model = credo.models.regression(from_torch(module, torch.zeros(2, 5)), noise=0.1)
    bound = model.bind(data)
    again = pickle.loads(pickle.dumps(bound))
    theta = bound.initial_theta(credo.random.key(0))
    batch = credo.Data(*data).batch()
    assert float(again.log_joint(theta, batch)) == float(bound.log_joint(theta, batch))


def test_curvature_sees_layers_of_convolutions(images):
    module = trained_resnet(depths=(1,))
    network = from_torch(module, torch.zeros(2, 3, 8, 8))
    x = images[0][..., ::4, ::4]
    seen = {name for layer in layers_of(lambda theta: network.apply(theta, x), network.params) for name in layer.names}
    kernels = {name for name, array in network.params.items() if array.ndim > 1}
    assert kernels | {"fc.bias"} == seen
    posterior = credo.Laplace().from_trained(credo.models.classification(network), (x, images[1]))
    assert np.all(np.isfinite(posterior.predict(x[:2]).probs))


def resnet_frn(depth, width, images):
    """The same network twice: credo's own, and its definition in PyTorch, with the weights of the second."""
    module = frn.ResNet(3, depth, width, images.shape[-1])
    own = credo.networks.ResNet(3, depth=depth, width=width, inputs=images.shape[1:])
    params = credo.networks.load_params(
        own, {name: tensor.detach().numpy() for name, tensor in module.named_parameters()}
    )
    example = torch.as_tensor(images[:2]).permute(0, 3, 1, 2)
    return own, params, from_torch(module, example, channels_last=True)


def check_log_joint(depth, width, x, y):
    torch.manual_seed(0)
    own, params, imported = resnet_frn(depth, width, x)
    values = []
    for net, weights in ((own, params), (imported, imported.params)):
        model = credo.models.classification(net).bind((x, y))
        values.append(float(jax.jit(model.log_joint)(weights, credo.Data(x, y).batch())))
    assert abs(values[0] - values[1]) < 1e-4 * abs(values[0])


def test_log_joint_of_a_residual_network_is_that_of_the_zoo():
    rng = np.random.default_rng(0)
    check_log_joint(8, 4, rng.normal(size=(6, 8, 8, 3)).astype(np.float32), np.arange(6) % 3)


@pytest.mark.full
def test_log_joint_on_cifar():
    try:
        train, _ = credo.datasets.cifar()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    check_log_joint(20, 16, train.x[:64].astype(np.float32), train.y[:64] % 3)
