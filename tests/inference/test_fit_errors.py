"""What `credo.fit` refuses, and how it says so: before anything is compiled."""

import numpy as np
import pytest

import credo
from credo.inference.engine import driver as engine

X = np.linspace(-1, 1, 10)


@pytest.fixture(autouse=True)
def _no_run(monkeypatch):
    """An error that comes after the start of a run comes too late."""
    monkeypatch.setattr(engine, "run", lambda *args, **kwargs: pytest.fail("the run was started"))


@pytest.fixture(scope="module")
def model() -> credo.Model:
    return credo.models.regression(credo.networks.MLP([4], out=1))


@pytest.mark.parametrize(("name", "meant"), [("nutz", "nuts"), ("metropolitan", "metropolis"), ("Map2", "map")])
def test_unknown_method_suggests_the_nearest(model, name, meant):
    with pytest.raises(ValueError, match=f"unknown method '{name}'; did you mean '{meant}'.*known are auto, mle, map"):
        credo.fit(model, (X, X), name)


def test_class_in_place_of_an_instance(model):
    with pytest.raises(ValueError, match=r"method is the class NUTS; make an instance of it: credo.NUTS\(\)"):
        credo.fit(model, (X, X), credo.NUTS)


@pytest.mark.parametrize("method", [credo.NUTS, credo.HMC, credo.Metropolis])
@pytest.mark.parametrize("num", [0, -3, 1.5, True])
def test_counts_of_draws(method, num):
    with pytest.raises(ValueError, match="num_samples must be a whole number of at least 1"):
        method(num_samples=num)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_acceptance": 1.0}, "target_acceptance must lie between 0 and 1"),
        ({"mass": "dense"}, "mass='dense' is called mass='full' now"),
        ({"num_warmup": -1}, "num_warmup must be a whole number of at least 0"),
        ({"max_depth": 0}, "max_depth must be a whole number of at least 1"),
    ],
)
def test_settings_of_nuts(settings, message):
    with pytest.raises(ValueError, match=message):
        credo.NUTS(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"proposal": "norml"}, "did you mean 'normal'"),
        ({"scale": 0.0}, "scale must be positive"),
        ({"target_acceptance": 0.0}, "target_acceptance must lie between 0 and 1"),
    ],
)
def test_settings_of_metropolis(settings, message):
    with pytest.raises(ValueError, match=message):
        credo.Metropolis(**settings)


def test_path_length_of_hmc():
    with pytest.raises(ValueError, match="path_length must be positive"):
        credo.HMC(path_length=0)


def test_unknown_start(model):
    with pytest.raises(ValueError, match=r"start must be 'prior', 'network' or a method.*got 'piror'"):
        credo.fit(model, (X, X), credo.NUTS(start="piror"))


@pytest.mark.parametrize(("name", "bad"), [("x", np.nan), ("x", np.inf), ("y", np.inf)])
def test_data_that_are_not_finite(model, name, bad):
    arrays = {"x": X.copy(), "y": X.copy()}
    arrays[name][3] = bad
    with pytest.raises(ValueError, match=rf"\b{name}\b.*3"):
        credo.fit(model, (arrays["x"], arrays["y"]))


def test_y_of_another_length(model):
    with pytest.raises(ValueError, match="x has 10 rows and y has 9"):
        credo.fit(model, (X, X[:-1]))


def test_network_in_place_of_a_model():
    with pytest.raises(
        ValueError, match=r"model must be a credo.Model, got MLP; wrap .*credo.models.regression\(net\)"
    ):
        credo.fit(credo.networks.MLP([4], out=1), (X, X))


def test_seed_must_be_whole(model):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        credo.fit(model, (X, X), credo.NUTS(start=credo.MAP()), seed="lucky")


def test_validation_without_a_use(model):
    with pytest.raises(ValueError, match="validation: NUTS does not stop early"):
        credo.fit(model, (X, X), credo.NUTS(), validation=0.2)


def test_validation_of_another_shape(model):
    with pytest.raises(ValueError, match=r"validation: rows of x \(2,\) and y \(\) do not fit .* \(1,\) and \(\)"):
        credo.fit(model, (X, X), credo.MAP(), validation=(np.zeros((4, 2)), np.zeros(4)))


def test_run_that_does_not_fit_into_memory(model, monkeypatch):
    monkeypatch.setattr("credo.inference.needs.MEMORY_SHARE", 1e-9)
    with pytest.raises(ValueError, match=r"NUTS would need 224 kB of memory \(14 parameters; .*keep fewer draws"):
        credo.fit(model, (X, X), credo.NUTS())
