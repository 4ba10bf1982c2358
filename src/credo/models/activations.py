"""Stochastic activations: the layers are drawn, the weights are learned. Paper, figure "BBNs", (b)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist

from credo._checks import require_one_of
from credo._precision import working_precision
from credo.models import likelihoods
from credo.models.classification import check_labels, class_distribution
from credo.models.likelihoods import Fixed, FixedCovariance, Noise, Tuned
from credo.models.program import Model
from credo.models.regression import check_outputs
from credo.models.rows import ModelConfig
from credo.networks import MLP, functional
from credo.networks.zoo import ACTIVATIONS
from credo.typing import Array, Batch, Theta

# Where learned scales start: layers that are nearly certain, so that the weights' gradients are not all noise at first.
INITIAL_SCALE = 0.1
LIKELIHOODS = ("regression", "classification")


def activations(
    features: Sequence[int],
    out: int,
    *,
    activation: str = "tanh",
    scale: float | str = INITIAL_SCALE,
    noise: Any = None,
    likelihood: str = "regression",
) -> Model:
    """A network whose hidden layers are random variables and whose weights are xi, learned without a prior.

        a₀ = x,    aᵢ = s(lᵢ) with lᵢ ~ N(Wᵢ aᵢ₋₁ + bᵢ, scaleᵢ² I),    y ~ N(Wₙ aₙ₋₁ + bₙ, noise²) or Cat(softmax(·))

    The local latents are the sites `l1`, `l2`, …, one value per row, before the activation; theta is empty. They are
    the hypothesis, as in the paper: a draw of them is a function, and their spread is epistemic. The weights are the
    params `hidden.0.kernel`, …, `head.bias`: they start from LeCun's normal distribution of variance
    1/fan-in with a fixed seed, the biases from zero.

    Arguments:
        features: units of each hidden layer, at least one layer.
        out: number of outputs: one per target, or one per class (one for two classes).
        activation: the name of s, one of `credo.networks.zoo.ACTIVATIONS`.
        scale: standard deviation of the hidden layers: a number, or "learned" (one of xi for each layer, from 0.1;
            if noise in a layer explains nothing, learning drives it to zero).
        noise: of y in a regression: a number, one per target, a covariance matrix, or "learned" (the default).
        likelihood: "regression" or "classification".

    >>> activations([20], out=1, scale=0.2, noise=0.1).bind(([[0.0], [1.0]], [0.0, 1.0])).has_local_latents
    True
    """
    net = MLP(features, out, activation=activation)
    if not net.features:
        raise ValueError("features is empty: without a hidden layer there are no activations to draw")
    require_one_of(LIKELIHOODS, likelihood=likelihood)
    chosen_scale = _as_scale(scale)
    chosen_noise = _as_noise(noise, likelihood)

    def program(x: Array, y: Array | None = None) -> None:
        xi = {path: numpyro.param(path, value) for path, value in functional(net, x).params.items()}
        drawn = None if chosen_noise is None else chosen_noise.draw(net.out)
        scales = [_scale_of(chosen_scale, layer) for layer in range(len(net.features))]
        with numpyro.plate("data", x.shape[0]):
            inputs = x.reshape(x.shape[0], -1)
            for layer, layer_scale in enumerate(scales):
                mean = _affine(xi, f"hidden.{layer}", inputs)
                before = numpyro.sample(f"l{layer + 1}", dist.Normal(mean, layer_scale).to_event(1))
                inputs = ACTIVATIONS[activation](before)
            outputs = _affine(xi, "head", inputs)
            if chosen_noise is None:
                numpyro.sample("y", class_distribution(outputs), obs=y)
            else:
                observed = None if y is None else y.astype(working_precision())
                numpyro.sample("y", chosen_noise.around(outputs, drawn), obs=observed)

    def check(batch: Batch) -> None:
        if chosen_noise is None:
            check_labels(batch, net.out)
        else:
            check_outputs(batch, net.out, chosen_noise)

    config = ModelConfig(
        model="activations",
        # The layers without their noise: from it `credo.load` has features, out and activation.
        network=net.config,
        scale=chosen_scale,
        noise=_noise_config(chosen_noise),
        likelihood=likelihood,
    )
    return Model(program, config=config, check=check, local="epistemic")


def activations_from_config(config: Mapping[str, Any]) -> Model:
    """The model that its `config` describes."""
    network, noise = config["network"], config["noise"]
    return activations(
        network["features"],
        network["out"],
        activation=network["activation"],
        scale=config["scale"],
        noise=likelihoods.from_config(noise) if isinstance(noise, Mapping) else noise,
        likelihood=config["likelihood"],
    )


def _affine(xi: Theta, path: str, inputs: Array) -> Array:
    return inputs @ xi[f"{path}.kernel"] + xi[f"{path}.bias"]


def _scale_of(scale: float | str, layer: int) -> Any:
    if scale != "learned":
        return scale
    return numpyro.param(f"hidden.{layer}.scale", INITIAL_SCALE, constraint=dist.constraints.positive)


def _as_scale(scale: Any) -> float | str:
    if isinstance(scale, str) and scale == "learned":
        return scale
    if not isinstance(scale, int | float | np.number) or not 0 < scale < np.inf:
        raise ValueError(f"scale must be a positive number or 'learned', got {scale!r}")
    return float(scale)


def _as_noise(noise: Any, likelihood: str) -> Noise | None:
    if likelihood == "classification":
        if noise is not None:
            raise ValueError(f"noise is for a regression; classes have none, got noise={noise!r}")
        return None
    if noise is None or (isinstance(noise, str) and noise == "learned"):
        return Tuned()
    chosen = likelihoods.as_noise(noise)
    if not isinstance(chosen, Fixed | FixedCovariance):
        raise ValueError(f"noise: pass a number, one per target, a covariance matrix, or 'learned', got {noise!r}")
    return chosen


def _noise_config(noise: Noise | None) -> Any:
    if noise is None or isinstance(noise, Tuned):
        return None if noise is None else "learned"
    return noise.to_config()
