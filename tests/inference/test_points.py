"""Point layers: learned along with q, or found first; saved, loaded, and refused where there is nothing to infer."""

import json
import warnings

import numpy as np
import numpyro.distributions as dist
import pytest

import credo
from credo.models import priors

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(40, 1)).astype(np.float32)
Y = (np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=40)).astype(np.float32)
PARTLY = {"hidden.*": "point", "head.*": priors.normal(1.0)}
NET = credo.networks.MLP([10], 1, activation="tanh")


def model(prior=PARTLY, noise=0.1):
    return credo.models.regression(NET, prior=prior, noise=noise)


def test_points_are_xi_and_start_from_the_networks_own_values():
    bound = model().bind((X, Y))
    assert set(bound.template) == {"head.kernel", "head.bias"}
    assert bound.points == {"hidden.0.kernel", "hidden.0.bias"}
    own = credo.networks.functional(NET, X).params
    for name, value in bound.initial_xi().items():
        np.testing.assert_allclose(value, own[name], rtol=1e-6)
    assert model({"*": priors.learned()}).bind((X, Y)).points == frozenset()


METHODS = [
    credo.BayesByBackprop(num_steps=3000),
    credo.NUTS(num_samples=50, num_warmup=100, num_chains=1),
    credo.Laplace(training=credo.MAP(num_steps=500)),
    credo.MCDropout(num_steps=3000, rate=0.001),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_partly_stochastic_network_trains_with_every_method(method, tmp_path):
    learns = isinstance(method, credo.BayesByBackprop | credo.MCDropout)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = credo.fit(model(), (X, Y), method)
    said = [str(warning.message) for warning in caught if "point layers" in str(warning.message)]
    assert len(said) == (0 if learns else 1)
    for message in said:
        assert (
            f"{type(method).__name__} does not learn the model's point layers hidden.0.bias, hidden.0.kernel" in message
        )
        assert "has found them first, and they are kept fixed" in message
    # The untrained features give no sine; those that were learned do, to about the noise of 0.1.
    mean = np.asarray(posterior.predict(X).mean).ravel()
    assert np.sqrt(np.mean((mean - np.sin(2 * X[:, 0])) ** 2)) < 0.1
    own = credo.networks.functional(NET, X).params
    assert np.abs(posterior.model.frozen_xi["hidden.0.kernel"] - own["hidden.0.kernel"]).max() > 0.1
    posterior.save(tmp_path / "run")
    np.testing.assert_array_equal(np.asarray(credo.load(tmp_path / "run").predict(X).mean).ravel(), mean)


def test_laplace_still_tunes_scales_by_the_evidence():
    prior = {"hidden.*": "point", "head.*": priors.learned(per="network")}
    with pytest.warns(UserWarning, match=r"point layers hidden.0.bias, hidden.0.kernel: ") as caught:
        posterior = credo.fit(model(prior), (X, Y), credo.Laplace(training=credo.MAP(num_steps=200)))
    assert not any("parameters prior.scale" in str(warning.message) for warning in caught)
    assert "prior.scale" in posterior.model.frozen_xi
    with pytest.warns(UserWarning, match=r"parameters prior.scale or point layers hidden.0.bias, hidden.0.kernel: "):
        credo.fit(model(prior), (X, Y), credo.MAP(num_steps=10))


def test_a_regularised_point_is_the_optimum_of_the_penalised_loss():
    """Linear features and a head whose weights are all but fixed at one: ridge regression."""
    net = (lambda params, x: x @ params["w"] * params["head"], {"w": np.zeros((2, 1)), "head": np.ones(1)})
    x = RNG.normal(size=(30, 2)).astype(np.float32)
    y = (x @ [1.0, -2.0] + RNG.normal(size=30)).astype(np.float32)
    prior = {"w": priors.point(priors.normal(0.2)), "head": dist.Normal(1.0, 1e-3)}
    posterior = credo.fit(
        credo.models.regression(net, prior=prior, noise=1.0), (x, y), credo.BayesByBackprop(num_steps=3000)
    )
    expected = np.linalg.solve(x.T @ x + np.eye(2) / 0.2**2, x.T @ y)
    np.testing.assert_allclose(posterior.model.frozen_xi["w"][:, 0], expected, atol=0.01)


@pytest.mark.parametrize("density", [None, priors.normal(2.0), dist.StudentT(3.0, 0.0, 1.0)])
def test_points_survive_json(density):
    config = json.loads(json.dumps(priors.point(density).to_config()))
    assert priors.from_config(config).to_config() == config
    assert priors.as_prior("point") == priors.point()


def test_a_network_of_points_has_nothing_to_infer():
    with pytest.raises(ValueError, match="the program draws no latent variable: there is nothing to infer"):
        model("point").bind((X, Y))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: priors.as_prior("points"), "prior: 'points' is not a prior; .* 'point'"),
        (lambda: priors.point("l2"), "regularised_by must be a prior with one known density, .* got 'l2'"),
        (lambda: priors.point(priors.horseshoe()), "regularised_by must be a prior with one known density"),
        (lambda: priors.point(priors.learned()), "would shrink around a point without end"),
        (lambda: model({"hidden.*": priors.point(dist.HalfNormal(1.0))}).bind((X, Y)), "moves over all real numbers"),
        (lambda: model({"hidden.0.bias": priors.point(priors.ordered())}).bind((X, Y)), "moves over all real numbers"),
        (lambda: credo.Laplace().from_trained(model(), (X, Y)), "'hidden.0.bias' is no latent of the model"),
        (lambda: model({"hiden.*": "point"}).bind((X, Y)), "'hiden.*' matches no parameter"),
        (
            lambda: credo.models.paperfold(prior={"gamma": "point"}).bind((np.zeros((4, 2)), np.zeros(4))),
            "'gamma' cannot be a point, since it has no value from which learning could start",
        ),
    ],
)
def test_what_cannot_be_a_point_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
