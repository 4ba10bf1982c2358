"""Laplace: exact where it must be, curvature against brute force, evidence against closed forms and differences."""

from dataclasses import asdict, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.stats import multivariate_normal

import credo
from credo import random
from credo.covariance.layers import jacobians, layers_of, row_jacobian
from credo.inference.laplace import evidence
from credo.inference.laplace.curvature import curvature_of
from credo.inference.laplace.evidence import _half_log_det, log_evidence, prior_precision, tuned_xi
from credo.inference.laplace.row_sums import Problem
from credo.models.outputs import outputs_of
from credo.posterior.linearised import Linearisation, moments_by_block
from tests.covariance.dense import dense
from tests.statistical.moments import assert_covariance, assert_mean

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype(np.float32)
Y = (X @ [1.0, 2.0, -1.0] + 0.5 + 0.3 * RNG.normal(size=40)).astype(np.float32)
LABELS = RNG.integers(0, 3, 40)
IMAGES = RNG.normal(size=(40, 8, 8)).astype(np.float32)
NOISE = 0.3
LINEAR = credo.MAP(num_steps=100, optimizer="lbfgs")
SHORT = credo.MAP(num_steps=200)


def small_cnn() -> credo.networks.CNN:
    return credo.networks.CNN(3, channels=(2,), kernel_size=3, features=(4,))


class Normalised(nnx.Module):
    """A dense layer, normalisation, another dense layer."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first, self.norm, self.last = (
            nnx.Linear(3, 4, rngs=rngs),
            nnx.LayerNorm(4, rngs=rngs),
            nnx.Linear(4, 1, rngs=rngs),
        )

    def __call__(self, x):
        return self.last(nnx.tanh(self.norm(self.first(x))))


MODELS = {
    "linear": (credo.models.regression(credo.networks.MLP([], 1), noise=NOISE), X, Y),
    "learned noise": (credo.models.regression(credo.networks.MLP([4], 1)), X, Y),
    "heteroscedastic": (credo.models.regression(credo.networks.MLP([4], 2), noise="heteroscedastic"), X, Y),
    "correlated": (credo.models.regression(credo.networks.MLP([4], 2), noise="full"), X, np.stack([Y, X[:, 0]], 1)),
    "two targets": (credo.models.regression(credo.networks.MLP([4], 2)), X, np.stack([Y, X[:, 0]], 1)),
    "classes": (credo.models.classification(credo.networks.MLP([4], 3)), X, LABELS),
    "binary": (credo.models.classification(credo.networks.MLP([4], 1)), X, LABELS % 2),
    "convolution": (credo.models.classification(small_cnn()), IMAGES, LABELS),
    "normalised": (credo.models.regression(Normalised(), noise=NOISE), X, Y),
}


STRUCTURES = ["full", "block", "kronecker", "diagonal", "low_rank"]


def quick(cases, *chosen):
    """All cases, those that are not chosen only in the long run."""
    marks = {case: () if case in chosen else pytest.mark.full for case in cases}
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark) for case, mark in marks.items()]


def setting(name: str, kind: str = "ggn"):
    model, x, y = MODELS[name]
    bound = model.bind((x, y))
    rng = np.random.default_rng(1)
    theta = {name: jnp.asarray(rng.normal(0, 0.5, leaf.shape), jnp.float32) for name, leaf in bound.template.items()}
    return Problem.of(bound, theta, tuple(theta), kind), theta, credo.Data(x, y).batch()


def closed_form() -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and covariance of the weights of the linear model, and its log evidence."""
    design = np.c_[X, np.ones(len(X))].astype(np.float64)
    covariance = np.linalg.inv(design.T @ design / NOISE**2 + np.eye(4))
    evidence = multivariate_normal(np.zeros(len(X)), NOISE**2 * np.eye(len(X)) + design @ design.T).logpdf(Y)
    return covariance @ design.T @ Y / NOISE**2, covariance, float(evidence)


@pytest.mark.quick
@pytest.mark.parametrize("structure", quick(["full", "block", "kronecker", "low_rank"], "full", "kronecker"))
def test_linear_regression_is_exact(structure):
    """One dense layer with one output and constant noise: there Kronecker factors are no approximation either."""
    model, x, y = MODELS["linear"]
    posterior = credo.fit(model, (x, y), credo.Laplace(structure=structure, training=LINEAR))
    mean, covariance, evidence = closed_form()
    found = np.append(posterior.mean["head.kernel"][:, 0], posterior.mean["head.bias"])
    np.testing.assert_allclose(found, mean, atol=1e-3)
    order = {"head.kernel": None, "head.bias": None}
    np.testing.assert_allclose(dense(posterior.root, order), covariance, atol=1e-5 * np.abs(covariance).max())
    assert posterior.evidence.log_evidence == pytest.approx(evidence, rel=1e-5)
    new = np.c_[X[:5], np.ones(5)]
    prediction = posterior.predict(X[:5])
    np.testing.assert_allclose(prediction.epistemic, np.einsum("ni,ij,nj->n", new, covariance, new), rtol=1e-4)
    np.testing.assert_allclose(prediction.aleatoric, NOISE**2, rtol=1e-5)
    np.testing.assert_allclose(prediction.input_covariance, new @ covariance @ new.T, atol=1e-6)
    sd = np.sqrt(prediction.variance)
    np.testing.assert_allclose(prediction.interval(0.95)[1] - prediction.mean, 1.96 * sd, rtol=1e-3)


@pytest.mark.parametrize("name", quick(MODELS, "heteroscedastic", "classes"))
def test_full_curvature_is_the_fisher_information(name, seed):
    """E[g gᵀ] under the model itself, from gradients at targets drawn from it."""
    problem, theta, data = setting(name)
    full = np.asarray(curvature_of(problem, theta, data, "full").matrices["all"])
    distribution = problem.model.predictive(theta, data.x)
    keys = jax.random.split(jax.random.key(seed), 400)

    def score(key):
        y = distribution.sample(key)
        function = lambda some, x, y: problem.model.predictive({**theta, **some}, x).log_prob(y)[:, None]  # noqa: E731
        rows = row_jacobian(function, theta, data.x, y)
        flat = jnp.concatenate([rows[name].reshape(len(data.x), -1) for name in problem.names], axis=1)
        return flat.T @ flat

    draws = np.asarray(jax.lax.map(score, keys))
    assert_mean(draws, full, slack=1e-3 * np.abs(full).max())


@pytest.mark.parametrize("kind", quick(["ggn", "fisher"], "ggn"))
@pytest.mark.parametrize("name", quick(MODELS, "learned noise", "classes", "convolution", "normalised"))
def test_diagonal_is_the_diagonal_of_the_full_one(name, kind):
    problem, theta, data = setting(name, kind)
    full = curvature_of(problem, theta, data, "full").matrices["all"]
    diagonal = curvature_of(problem, theta, data, "diagonal").values
    found = np.concatenate([np.ravel(diagonal[name]) for name in problem.names])
    np.testing.assert_allclose(found, np.diagonal(full), rtol=1e-3, atol=1e-5 * np.max(full))


def test_hessian_of_a_linear_model_is_its_ggn():
    problem, theta, data = setting("linear")
    hessian = curvature_of(replace(problem, kind="hessian", outputs=None), theta, data, "full").matrices["all"]
    ggn = curvature_of(problem, theta, data, "full").matrices["all"]
    np.testing.assert_allclose(hessian, ggn, rtol=1e-3, atol=1e-2)


def test_negative_curvature_counts_as_nothing():
    """Away from a mode the Hessian of a network is not positive; its root must be there all the same."""
    problem, theta, data = setting("learned noise", "hessian")
    matrix = curvature_of(problem, theta, data, "full").matrices["all"]
    assert np.linalg.eigvalsh(np.asarray(matrix, np.float64)).min() > -1e-3 * np.abs(matrix).max()


def test_convolution_factors_against_brute_force():
    """A = Σ a aᵀ/(N · places) of the patches, G = Σ g gᵀ of the gradients at each place."""
    problem, theta, data = setting("convolution")
    found = curvature_of(problem, theta, data, "kronecker")
    function = problem.function(theta, data.x, data.y)
    some = {name: theta[name] for name in problem.names}
    layers = layers_of(function, some)
    jacobian = jacobians(function, some, layers)[1]["conv.0.kernel"]
    windows = np.lib.stride_tricks.sliding_window_view(IMAGES, (3, 3), axis=(1, 2)).reshape(40, 36, 9)
    np.testing.assert_allclose(jacobian.inputs[..., :9], windows, atol=1e-6)
    np.testing.assert_array_equal(jacobian.inputs[..., 9], 1.0)
    patches = np.concatenate([windows, np.ones((40, 36, 1))], axis=2).reshape(-1, 10)
    np.testing.assert_allclose(found.inputs["conv.0.kernel"], patches.T @ patches / len(patches), atol=1e-5)
    gradients = np.asarray(jacobian.gradients).reshape(-1, 2)
    np.testing.assert_allclose(found.gradients["conv.0.kernel"], gradients.T @ gradients, rtol=1e-4)
    # The factors hold the gradient of each weight: summed over places, it is what differentiation says.
    rows = row_jacobian(lambda some, x, y: problem.informed(theta, some, x, y), some, data.x, data.y)
    expected = np.moveaxis(np.asarray(rows["conv.0.kernel"]), 1, 0).reshape(3, 40, 9, 2)
    np.testing.assert_allclose(jacobian.whole()[:, :, :9], expected, atol=1e-5)


def test_kronecker_has_exact_blocks_for_normalisation():
    problem, theta, data = setting("normalised")
    assert set(problem.rest) == {"norm.scale", "norm.bias"}
    found, full = (curvature_of(problem, theta, data, kind) for kind in ("kronecker", "full"))
    order = np.concatenate([[name] * theta[name].size for name in problem.names])
    for name in problem.rest:
        block = np.asarray(full.matrices["all"])[np.ix_(order == name, order == name)]
        np.testing.assert_allclose(found.rest.matrices[name], block, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("structure", quick(STRUCTURES, "kronecker", "low_rank"))
@pytest.mark.full
def test_roots_are_consistent(structure):
    """√Σ √Σᵀ = (H + P)⁻¹, and variance, log det and squared length are those of this matrix."""
    problem, theta, data = setting("classes")
    precision = {name: jnp.full(leaf.shape, 2.0 if "kernel" in name else 0.5) for name, leaf in theta.items()}
    curvature = curvature_of(problem, theta, data, structure, rank=100)
    root = curvature.root(precision)
    matrix = dense(root, problem.model.template).astype(np.float64)
    flat = np.concatenate([np.ravel(root.variance()[name]) for name in problem.names])
    np.testing.assert_allclose(flat, np.diag(matrix), rtol=1e-3)
    assert float(root.half_log_det()) == pytest.approx(0.5 * np.linalg.slogdet(matrix)[1], abs=1e-2)
    offset = {name: random.normal(random.key(3), leaf.shape) for name, leaf in theta.items()}
    vector = np.concatenate([np.ravel(offset[name]) for name in problem.names])
    assert float(root.squared_length(offset)) == pytest.approx(vector @ np.linalg.solve(matrix, vector), rel=1e-2)
    if structure in ("full", "low_rank"):
        full = np.asarray(curvature_of(problem, theta, data, "full").matrices["all"], np.float64)
        diagonal = np.concatenate([np.ravel(precision[name]) for name in problem.names])
        np.testing.assert_allclose(matrix, np.linalg.inv(full + np.diag(diagonal)), atol=1e-3)


@pytest.mark.parametrize(
    ("name", "structure"),
    quick(
        [(name, kind) for name in ("heteroscedastic", "classes", "convolution") for kind in STRUCTURES],
        ("classes", "block"),
    ),
)
def test_linear_prediction_has_two_routes_and_one_answer(name, structure):
    """J Σ Jᵀ in factors against the Gaussian process with the kernel J(x) Σ J(x′)ᵀ, written out."""
    model, x, y = MODELS[name]
    posterior = credo.Laplace(structure=structure).from_trained(model, (x, y))
    linear = Linearisation.of(posterior.model, posterior.mean, posterior.root)
    _, covariance = moments_by_block(linear, posterior.mean, posterior.root, x[:7])
    order = dict.fromkeys(posterior.model.template)
    sigma = dense(posterior.root, order)
    rows = row_jacobian(linear.function(posterior.mean), posterior.mean, x[:7])
    jacobian = np.concatenate([np.asarray(rows[name]).reshape(7, linear.num_outputs, -1) for name in order], axis=2)
    np.testing.assert_allclose(covariance, jacobian @ sigma @ np.swapaxes(jacobian, 1, 2), rtol=2e-3, atol=1e-5)


@pytest.mark.full
def test_functions_are_jointly_drawn(seed):
    """Draws of functions of a linearised network have the covariance between inputs that is in closed form."""
    model, x, y = MODELS["learned noise"]
    posterior = credo.fit(model, (x, y), credo.Laplace(structure="full", training=SHORT), seed=seed)
    prediction = posterior.predict(x[:6])
    expected = prediction.input_covariance
    assert_covariance(prediction.functions, expected)
    np.testing.assert_allclose(np.diag(expected), prediction.epistemic, rtol=1e-3)


@pytest.mark.full
def test_probabilities_by_probit_are_close_to_those_by_draws():
    model, x, y = MODELS["binary"]
    by_draws, by_probit = (
        credo.fit(model, (x, y), credo.Laplace(training=SHORT, prediction=how)).predict(x).probs
        for how in ("linear", "probit")
    )
    np.testing.assert_allclose(by_draws, by_probit, atol=0.03)


@pytest.mark.parametrize("structure", quick(["full", "kronecker", "diagonal"], "kronecker"))
def test_evidence_has_the_gradient_of_finite_differences(structure):
    model = credo.models.regression(credo.networks.MLP([4], 1), prior=credo.priors.learned(), noise="tuned")
    bound = model.bind((X, Y))
    theta, xi, data = bound.initial_theta(random.key(0)), bound.initial_xi(), credo.Data(X, Y).batch()
    problem = Problem.of(bound, {**theta, **xi}, tuple(theta), "ggn")

    def evidence(xi):
        both = {**theta, **xi}
        return log_evidence(problem, both, data, curvature_of(problem, both, data, structure))

    gradient = jax.grad(evidence)(xi)
    for name in xi:
        step = 0.02
        up, down = ({**xi, name: xi[name] + sign * step} for sign in (1, -1))
        difference = (evidence(up) - evidence(down)) / (2 * step)
        assert float(gradient[name]) == pytest.approx(float(difference), rel=1e-2, abs=0.05), name


@pytest.mark.parametrize("structure", quick(["full", "kronecker"], "full"))
@pytest.mark.full
def test_the_short_cut_to_the_gradient_of_a_log_determinant(structure):
    problem, theta, data = setting("classes")
    curvature = curvature_of(problem, theta, data, structure)
    precision = {name: jnp.full(leaf.shape, 0.7) for name, leaf in theta.items()}

    def plain(factor, precision):
        return curvature.times(factor).root(precision).half_log_det()

    expected = jax.grad(plain, (0, 1))(jnp.array(1.3), precision)
    found = jax.grad(_half_log_det, (1, 2))(curvature, jnp.array(1.3), precision)
    assert float(found[0]) == pytest.approx(float(expected[0]), rel=1e-3)
    for name in precision:
        # A Kronecker root reads the precision of an input from one of its weights; the sum over them is the same.
        sums = (np.sum(part[1][name], axis=-1) for part in (found, expected))
        np.testing.assert_allclose(*sums, rtol=1e-2, atol=1e-4)


def test_a_noise_that_all_rows_share_rescales_the_curvature(monkeypatch):
    """Two routes, one answer: H ∝ 1/noise², or H computed again at each noise."""
    model = credo.models.regression(credo.networks.MLP([4], 1), prior=credo.priors.learned(), noise="tuned")
    found = []
    for is_known in (True, False):
        bound = model.bind((X, Y))
        theta, xi, data = bound.initial_theta(random.key(0)), bound.initial_xi(), credo.Data(X, Y).batch()
        problem = Problem.of(bound, {**theta, **xi}, tuple(theta), "ggn")
        assert evidence._common_noise(problem, theta, xi) is not None
        if not is_known:
            monkeypatch.setattr(evidence, "_common_noise", lambda *_: None)
            evidence._climb.__wrapped__.clear_cache()
        found.append(tuned_xi(problem, theta, xi, data, "full"))
    assert any(abs(found[0][name] - xi[name]) > 0.1 for name in xi)
    for name in xi:
        assert float(found[0][name]) == pytest.approx(float(found[1][name]), abs=0.02), name


def test_a_precision_that_rounding_leaves_without_a_root_is_damped_and_reported():
    """Two inputs that hardly differ, and next to no noise: H + P has a condition number beyond single precision."""
    twins = np.c_[X[:, 0], X[:, 0] + 1e-4 * X[:, 1]]
    model = credo.models.regression(credo.networks.MLP([], 1), prior=credo.priors.learned(), noise=1e-4)
    data = (twins, X[:, 0])
    posterior = credo.Laplace("full").from_trained(model, data, {"head.kernel": [[0.5], [0.5]], "head.bias": [0.0]})
    assert posterior.evidence.damping > 0
    assert np.isfinite([*asdict(posterior.evidence).values(), *posterior.model.frozen_xi.values()]).all()
    assert "rounding" in posterior.diagnostics.verdict
    assert np.isfinite(posterior.predict(twins).std).all()


def test_evidence_tunes_prior_and_noise_of_a_linear_model():
    """The evidence of a linear model in closed form, maximised over both scales by brute force."""
    model = credo.models.regression(credo.networks.MLP([], 1), prior=credo.priors.learned(per="network"), noise="tuned")
    posterior = credo.fit(model, (X, Y), credo.Laplace("full", training=LINEAR, tuning_rounds=4))
    found = {name: float(np.exp(value)) for name, value in posterior.model.frozen_xi.items()}
    design = np.c_[X, np.ones(len(X))].astype(np.float64)

    def evidence(prior, noise):
        covariance = noise**2 * np.eye(len(X)) + prior**2 * design @ design.T
        return multivariate_normal(np.zeros(len(X)), covariance).logpdf(Y)

    best = evidence(found["prior.scale"], found["noise"])
    for factor in (0.9, 1.1):
        assert best > evidence(factor * found["prior.scale"], found["noise"])
        assert best > evidence(found["prior.scale"], factor * found["noise"])
    assert posterior.evidence.log_evidence == pytest.approx(best, abs=1e-2)


@pytest.mark.full
def test_evidence_switches_off_inputs_that_do_not_help():
    x = np.c_[X, RNG.normal(size=(40, 3))].astype(np.float32)
    prior = {"head.kernel": credo.priors.learned(per="input"), "head.bias": credo.priors.normal(1.0)}
    model = credo.models.regression(credo.networks.MLP([], 1), prior=prior, noise=NOISE)
    posterior = credo.fit(model, (x, Y), credo.Laplace("full", training=LINEAR, tuning_rounds=4))
    scales = np.exp(posterior.model.frozen_xi["head.kernel.scale"][:, 0])
    assert scales[3:].max() < 0.3 * scales[:3].min()


def test_only_the_last_layer_is_uncertain():
    model, x, y = MODELS["learned noise"]
    posterior = credo.fit(model, (x, y), credo.Laplace("full", "last_layer", training=SHORT))
    assert set(posterior.root.names) == {"head.kernel", "head.bias", "noise"}
    draws = posterior.sample(random.key(0), 3)
    np.testing.assert_array_equal(draws["hidden.0.kernel"][0], draws["hidden.0.kernel"][1])
    assert not np.array_equal(draws["head.kernel"][0], draws["head.kernel"][1])
    assert posterior.predict(x).epistemic.min() > 0
    chosen = credo.Laplace("diagonal", subset=("hidden.*",)).from_trained(model, (x, y))
    assert set(chosen.root.names) == {"hidden.0.kernel", "hidden.0.bias"}


def test_a_trained_network_needs_no_training():
    net = credo.networks.MLP([4], 1, inputs=3)
    before = [np.array(leaf) for leaf in jax.tree.leaves(nnx.state(net))]
    model = credo.models.regression(net)
    posterior = credo.Laplace().from_trained(model, (X, Y))
    for one, other in zip(before, jax.tree.leaves(nnx.state(net)), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(posterior.mean["head.kernel"], net.head.kernel[...])
    # The noise that does not come with it is that of the residuals, up to its prior.
    residuals = Y - np.asarray(net(jnp.asarray(X)))[:, 0]
    assert np.exp(posterior.mean["noise"]) == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=0.1)


@pytest.mark.full
def test_an_ensemble_of_laplace_is_a_mixture(tmp_path):
    model, x, y = MODELS["learned noise"]
    method = credo.DeepEnsemble(credo.Laplace("diagonal", training=SHORT), members=2)
    posterior = credo.fit(model, (x, y), method)
    assert isinstance(posterior, credo.Mixture)
    # Its prediction is linear as theirs, and has the moments of the mixture.
    parts, whole = [member.predict(x) for member in posterior.members], posterior.predict(x)
    mean = np.mean([part.mean for part in parts], axis=0)
    np.testing.assert_allclose(whole.mean, mean, rtol=1e-5)
    spread = np.mean([part.epistemic + (part.mean - mean) ** 2 for part in parts], axis=0)
    np.testing.assert_allclose(whole.epistemic, spread, rtol=1e-4)
    expected = np.log(np.mean([np.exp(part.log_prob(y)) for part in parts], axis=0))
    np.testing.assert_allclose(whole.log_prob(y), expected, atol=5e-3)
    np.testing.assert_allclose(np.einsum("iij->i", whole.input_covariance[..., None]), whole.epistemic, rtol=1e-3)
    assert posterior.diagnostics.num_members == 2
    assert np.isfinite(posterior.predict(x).log_prob(y)).all()
    posterior.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(x).mean, posterior.predict(x).mean)


@pytest.mark.parametrize("structure", quick(["kronecker", "low_rank"], "kronecker"))
def test_save_and_load(tmp_path, structure):
    model, x, y = MODELS["learned noise"]
    posterior = credo.fit(model, (x, y), credo.Laplace(structure, training=SHORT))
    posterior.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    assert type(again.root) is type(posterior.root)
    np.testing.assert_array_equal(again.predict(x).std, posterior.predict(x).std)
    assert again.diagnostics.log_evidence == posterior.diagnostics.log_evidence


def test_diagnostics_tell_a_centre_that_is_no_mode():
    model, x, y = MODELS["linear"]
    assert "sits at a mode" in credo.fit(model, (x, y), credo.Laplace(training=LINEAR)).diagnostics.verdict
    far = credo.Laplace().from_trained(model, (x, y), {"head.kernel": np.ones((3, 1)), "head.bias": np.zeros(1)})
    assert "the centre is no mode" in far.diagnostics.verdict


@pytest.mark.full
def test_xi_are_kept_where_they_start_on_request():
    model = credo.models.regression(credo.networks.MLP([], 1), prior=credo.priors.learned(0.7), noise=NOISE)
    posterior = credo.fit(model, (X, Y), credo.Laplace("full", training=LINEAR, tuning_rounds=0))
    assert np.exp(posterior.model.frozen_xi["head.kernel.scale"]) == pytest.approx(0.7)


class TestBadInput:
    def test_names(self):
        for wrong in ({"structure": "kron"}, {"curvature": "newton"}, {"prediction": "mean"}):
            with pytest.raises(ValueError, match=next(iter(wrong)) + " must be one of"):
                credo.Laplace(**wrong)
        with pytest.raises(ValueError, match="takes structure='full' or 'low_rank'"):
            credo.Laplace("diagonal", curvature="hessian")
        with pytest.raises(ValueError, match="training must find the mode"):
            credo.Laplace(training=credo.MLE())

    def test_full_of_a_large_network_is_refused_with_its_bytes(self):
        model = credo.models.classification(credo.networks.MLP([400, 400], 10))
        x, y = np.zeros((20, 784), np.float32), np.arange(20) % 10
        with pytest.raises(ValueError, match=r"would need 2.75 TB.*structure='kronecker'"):
            credo.fit(model, (x, y), credo.Laplace("full"))

    def test_subset_that_matches_nothing(self):
        model, x, y = MODELS["linear"]
        with pytest.raises(ValueError, match=r"'hed.\*' matches no parameter"):
            credo.Laplace(subset=("hed.*",)).from_trained(model, (x, y))

    def test_kronecker_names_what_it_cannot_hold(self):
        def apply(params, x):
            return (x @ params["w"].reshape(3, 3000)).sum(1, keepdims=True) + params["w"].sum()

        model = credo.models.regression((apply, {"w": np.ones(9000, np.float32)}), noise=1.0)
        with pytest.raises(ValueError, match=r"'w' of shape.*take structure='diagonal' or 'low_rank'"):
            credo.Laplace("kronecker").from_trained(model, (X, Y))

    @pytest.mark.full
    def test_kronecker_with_a_prior_scale_for_each_weight(self):
        model = credo.models.regression(credo.networks.MLP([4], 1), prior=credo.priors.learned(per="weight"))
        found = model.bind((X, Y))
        xi = {name: value + RNG.normal(size=value.shape) for name, value in found.initial_xi().items()}
        with pytest.raises(ValueError, match="differ from weight to weight; take structure='diagonal'"):
            credo.Laplace("kronecker").from_trained(model.freeze(xi), (X, Y))

    def test_params_that_do_not_fit(self):
        model, x, y = MODELS["linear"]
        with pytest.raises(ValueError, match=r"missing: head\.bias"):
            credo.Laplace().from_trained(model, (x, y), {"head.kernel": np.ones((3, 1))})

    def test_distributions_without_known_information_offer_the_empirical_fisher(self):
        import numpyro
        import numpyro.distributions as dist

        def program(x, y=None):
            w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
            with numpyro.plate("data", x.shape[0]):
                numpyro.sample("y", dist.Logistic(x @ w, 0.3), obs=y)

        with pytest.raises(ValueError, match=r"Logistic.*curvature='fisher'"):
            credo.fit(credo.Model(program), (X, Y), credo.Laplace(training=SHORT))
        method = credo.Laplace("full", curvature="fisher", prediction="draws", training=SHORT)
        assert np.isfinite(credo.fit(credo.Model(program), (X, Y), method).predict(X).mean).all()


def test_prior_precision_of_a_normal_prior():
    model = credo.models.regression(credo.networks.MLP([4], 1), prior=credo.priors.normal(0.5), noise=1.0)
    bound = model.bind((X, Y))
    theta = bound.initial_theta(random.key(0))
    for leaf in prior_precision(bound, theta, tuple(theta)).values():
        np.testing.assert_allclose(leaf, 4.0, rtol=1e-5)


def test_outputs_are_found():
    kinds = {"linear": "NormalOutputs", "correlated": "CorrelatedOutputs", "classes": "ClassOutputs"}
    for name, kind in kinds.items():
        problem, theta, _ = setting(name)
        assert type(outputs_of(problem.model, theta)).__name__ == kind


def test_tuning_climbs_the_evidence():
    problem, theta, data = setting("learned noise")
    model = credo.models.regression(credo.networks.MLP([4], 1), prior=credo.priors.learned(5.0)).bind((X, Y))
    xi = model.initial_xi()
    problem = Problem.of(model, {**theta, **xi}, problem.names, "ggn")
    tuned = tuned_xi(problem, theta, xi, data, "kronecker")
    before, after = (
        float(log_evidence(problem, {**theta, **one}, data, curvature_of(problem, {**theta, **one}, data, "kronecker")))
        for one in (xi, tuned)
    )
    assert after > before + 1


@pytest.mark.full
def test_compare_shows_the_evidence_which_prefers_the_simpler_network_for_linear_data():
    nets = {"linear": credo.networks.MLP([], 1), "wide": credo.networks.MLP([20], 1)}
    posteriors = {
        name: credo.fit(credo.models.regression(net, noise=NOISE), (X, Y), credo.Laplace("full", training=LINEAR))
        for name, net in nets.items()
    }
    found = credo.compare(posteriors | {"mode": credo.fit(MODELS["linear"][0], (X, Y), SHORT)}, (X, Y), num_resamples=0)
    assert found.evidences["linear"] > found.evidences["wide"] + 5
    assert set(found.evidences) == {"linear", "wide"}
    assert "log evidence" in str(found)
    assert f"**{found.evidences['linear']:,.1f}**" in str(found)
    assert found.to_frame().loc["wide", "log_evidence"] == found.evidences["wide"]


def test_directions_that_the_data_determine_are_those_of_a_hat_matrix():
    """γ = tr (H + P)⁻¹ H, with the noise held where it is."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    data = credo.Data(x, x.sum(axis=1) + 0.5 * rng.normal(size=30))
    model = credo.models.regression(credo.networks.MLP([], out=1), noise=0.5)
    found = credo.Laplace(structure="full", training=credo.MAP(num_steps=20)).from_trained(model, data)
    design = np.column_stack([x, np.ones(30)])
    curvature = design.T @ design / 0.25
    expected = np.trace(np.linalg.solve(curvature + np.eye(4), curvature))
    assert found.evidence.num_effective == pytest.approx(expected, rel=1e-4)
    assert found.diagnostics.determined == pytest.approx(expected / 30, rel=1e-4)


def test_a_mode_that_has_learned_its_rows_by_heart_is_not_trusted():
    data = credo.datasets.gap(num=12)
    model = credo.models.regression(credo.networks.MLP([50], out=1))
    found = credo.fit(model, data, credo.Laplace(training=credo.MAP(num_steps=300)), progress=False).diagnostics
    assert found.status == "red"
    assert "directions with 12 rows" in found.verdict
