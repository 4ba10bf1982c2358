"""Closed forms: posterior and evidence against formulas in double precision, and what has none is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import halfnorm

import credo
from credo.inference.closed_form import evidence as climbed
from credo.inference.closed_form import spectrum
from credo.inference.closed_form.affine import affine
from credo.networks import MLP

LAST_LAYER = {"hidden.*": "point", "head.*": credo.priors.normal(0.8)}
HELD, FREE = credo.ClosedForm(num_steps=500), credo.ClosedForm(num_steps=500, regularised_by=None)


class Known:
    """Linear regression in double precision: y = Φ w + ε, w ~ N(mean, prior), ε ~ N(0, noise)."""

    def __init__(self, design, y, prior, noise):
        covariance = design @ prior @ design.T + noise
        self.gain = prior @ design.T @ np.linalg.inv(covariance)
        self.mean = self.gain @ y
        self.covariance = prior - self.gain @ design @ prior
        square, (_, log_det) = y @ np.linalg.solve(covariance, y), np.linalg.slogdet(covariance)
        self.log_evidence = -0.5 * (square + log_det + len(y) * np.log(2 * np.pi))


def with_ones(x):
    return np.column_stack([np.ones(len(x)), x])


def flat(posterior):
    """Mean and covariance in the order bias, kernel (sorted names, entries in order)."""
    mean = np.concatenate([np.ravel(posterior.mean[name]) for name in sorted(posterior.mean)])
    root = np.asarray(posterior.root.roots["all"][0], np.float64)
    return mean, root @ root.T


def some_data(num, num_inputs, num_outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    # Numbers that single precision has, so that both sides see the same.
    x = rng.normal(size=(num, num_inputs)).astype(np.float32).astype(np.float64)
    y = x @ rng.normal(size=(num_inputs, num_outputs)) + 0.3 * rng.normal(size=(num, num_outputs))
    return x, np.squeeze(y.astype(np.float32).astype(np.float64))


@pytest.mark.quick
@pytest.mark.parametrize(("num", "num_inputs"), [(40, 3), (6, 20)], ids=["more rows", "more weights"])
def test_posterior_evidence_and_prediction_are_exact(num, num_inputs, monkeypatch):
    x, y = some_data(num, num_inputs)
    model = credo.models.regression(MLP([], out=1), prior=credo.priors.normal(0.8), noise=0.3)
    monkeypatch.setattr(spectrum, "NUMBERS_PER_BLOCK", 4 * (num_inputs + 1))  # blocks of four rows
    posterior = credo.fit(model, (x, y), credo.ClosedForm())
    known = Known(with_ones(x), y, 0.64 * np.eye(num_inputs + 1), 0.09 * np.eye(num))
    mean, covariance = flat(posterior)
    np.testing.assert_allclose(mean, known.mean, atol=1e-5)
    np.testing.assert_allclose(covariance, known.covariance, atol=1e-5)
    assert posterior.diagnostics.log_evidence == pytest.approx(known.log_evidence, abs=1e-3)
    assert posterior.diagnostics.num_steps == 0
    new = with_ones(x[:3] + 1)
    prediction = posterior.predict(x[:3] + 1)
    np.testing.assert_allclose(prediction.mean, new @ known.mean, atol=1e-4)
    np.testing.assert_allclose(
        prediction.variance, 0.09 + np.einsum("ni,ij,nj->n", new, known.covariance, new), rtol=1e-3
    )


NOISES = {
    "one for all": 0.3,
    "one each": (0.3, 0.6),
    "correlated": ((0.09, 0.05), (0.05, 0.16)),
}


@pytest.mark.parametrize("kind", NOISES)
def test_several_outputs(kind):
    x, y = some_data(12, 3, 2)
    model = credo.models.regression(MLP([], out=2), prior=credo.priors.normal(0.8), noise=NOISES[kind])
    posterior = credo.fit(model, (x, y), credo.ClosedForm())
    noise = np.asarray(NOISES[kind])
    covariance = noise if noise.ndim == 2 else np.diag(np.broadcast_to(noise, 2) ** 2)
    # Targets row by row; weights input by input, as a kernel has them.
    known = Known(np.kron(with_ones(x), np.eye(2)), y.ravel(), 0.64 * np.eye(8), np.kron(np.eye(12), covariance))
    mean, found = flat(posterior)
    np.testing.assert_allclose(mean, known.mean, atol=1e-5)
    np.testing.assert_allclose(found, known.covariance, atol=1e-5)
    assert posterior.evidence.log_evidence == pytest.approx(known.log_evidence, abs=1e-3)
    # Outputs that share nothing are regressions of their own.
    assert len(affine(posterior.model).blocks) == (1 if kind == "correlated" else 2)


def test_missing_targets_are_left_out():
    x, y = some_data(14, 3, 2)
    gaps = y.copy()
    gaps[:5, 0] = np.nan
    model = credo.models.regression(MLP([], out=2), noise=0.3)
    posterior = credo.fit(model, (x, gaps), credo.ClosedForm())
    design = with_ones(x)
    parts = [
        Known(design[seen], y[seen, one], np.eye(4), 0.09 * np.eye(seen.sum()))
        for one, seen in enumerate(~np.isnan(gaps).T)
    ]
    found = np.concatenate([posterior.mean["head.bias"][None], posterior.mean["head.kernel"]])
    np.testing.assert_allclose(found, np.column_stack([part.mean for part in parts]), atol=1e-5)
    total = sum(part.log_evidence for part in parts)
    assert posterior.evidence.log_evidence == pytest.approx(total, abs=1e-3)


def test_a_noise_with_a_prior_is_integrated_out(seed):
    x, y = some_data(15, 2, 2)
    posterior = credo.fit(
        credo.models.regression(MLP([], out=2)), (x, y), credo.ClosedForm(num_samples=4000), seed=seed
    )
    total = 0.0
    for one in range(2):
        sigmas = np.geomspace(0.05, 8, 4001)
        known = [Known(with_ones(x), y[:, one], np.eye(3), s**2 * np.eye(15)) for s in sigmas]
        log_joint = np.array([part.log_evidence for part in known]) + halfnorm.logpdf(sigmas)
        density = np.exp(log_joint - log_joint.max())
        integral = np.trapezoid(density, sigmas)
        total += np.log(integral) + log_joint.max()
        share = density / integral
        truths = {
            "noise": np.stack([sigmas, sigmas**2]),
            "weight": np.stack([[part.mean[1], part.covariance[1, 1] + part.mean[1] ** 2] for part in known]).T,
        }
        draws = {
            "noise": np.exp(posterior.theta["noise"][0, :, one].astype(np.float64)),
            "weight": posterior.theta["head.kernel"][0, :, 0, one].astype(np.float64),
        }
        for name, values in draws.items():
            for power, truth in enumerate(truths[name], start=1):
                drawn = values**power
                # Independent draws: six standard errors, for eight comparisons.
                assert abs(drawn.mean() - np.trapezoid(share * truth, sigmas)) < 6 * drawn.std() / np.sqrt(len(drawn))
    assert posterior.evidence.log_evidence == pytest.approx(total, abs=2e-3)


def test_it_is_where_laplace_is_exact():
    """At the exact mean a full Laplace approximation of a linear model has the same covariance and evidence."""
    data = some_data(25, 3)
    model = credo.models.regression(MLP([], out=1), noise=0.3)
    ours = credo.fit(model, data, credo.ClosedForm())
    laplace = credo.Laplace(structure="full").from_trained(model, data, ours.mean)
    assert laplace.evidence.log_evidence == pytest.approx(ours.evidence.log_evidence, abs=5e-3)
    np.testing.assert_allclose(laplace.root.variance()["head.kernel"], ours.root.variance()["head.kernel"], rtol=1e-3)


def test_updating_by_halves_is_fitting_the_whole():
    """p(D₁) p(D₂ | D₁) = p(D), with the posterior of the one half as the prior, correlated, of the other."""
    x, y = some_data(30, 3)
    method = credo.ClosedForm()

    def model(prior):
        return credo.models.regression(MLP([], out=1), prior=prior, noise=0.3)

    whole, first = (credo.fit(model(None), data, method) for data in ((x, y), (x[:12], y[:12])))
    second = credo.fit(model(credo.priors.from_posterior(first)), (x[12:], y[12:]), method)
    for ours, theirs in zip(flat(second), flat(whole), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    both = first.evidence.log_evidence + second.evidence.log_evidence
    assert both == pytest.approx(whole.evidence.log_evidence, abs=5e-3)


@pytest.mark.full
def test_nuts_draws_from_the_same_posterior(seed):
    """With the default prior of the noise, which both integrate out."""
    data, model = some_data(25, 2), credo.models.regression(MLP([], out=1))
    ours = credo.fit(model, data, credo.ClosedForm(num_samples=4000), seed=seed)
    theirs = credo.fit(model, data, credo.NUTS(num_samples=1000, num_chains=4), seed=seed)
    for name, leaf in ours.theta.items():
        one, other = (np.asarray(part, np.float64).reshape(4000, -1) for part in (leaf, theirs.theta[name]))
        for power in (1, 2):
            a, b = (np.abs(part - one.mean(0)) ** power if power > 1 else part for part in (one, other))
            # Six standard errors, where a draw of the chains counts for at least a quarter.
            assert np.all(np.abs(a.mean(0) - b.mean(0)) < 6 * np.hypot(a.std(0) / 4000**0.5, b.std(0) / 1000**0.5))


# -- the climb ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def open_model():
    """A last layer with everything left open: features, prior scales, noise."""
    x, y = some_data(30, 2)
    prior = {"hidden.*": credo.priors.point(credo.priors.normal(1.0)), "head.*": credo.priors.learned()}
    data = credo.Data(x, y)
    return credo.models.regression(MLP([5], out=1), prior=prior, noise="tuned").bind(data), data


def test_gradient_is_that_of_the_formula(open_model):
    model, data = open_model
    xi, batch = model.initial_xi(), data.batch()
    objective = jax.jit(jax.value_and_grad(lambda xi: credo.ClosedForm().objective(model, xi, batch)[0]))
    gradient = objective(xi)[1]
    for name, slope in gradient.items():
        direction = jnp.sign(slope)
        ahead, behind = (objective({**xi, name: xi[name] + step * direction})[0] for step in (1e-2, -1e-2))
        # Central differences: single precision leaves 1e-5 of a step of 1e-2, and the third derivative 1e-4.
        assert float(jnp.sum(jnp.abs(slope))) == pytest.approx(float(ahead - behind) / 2e-2, rel=2e-2, abs=2e-3)


def test_no_other_normal_has_a_higher_bound():
    """The ELBO of any q but the posterior is below the evidence: the climb is one of the evidence at this q alone."""
    design, targets = (jnp.asarray(part, jnp.float32) for part in some_data(20, 3))
    q = climbed.normal_of(design, targets)

    def bound(q):
        fit = jnp.sum((targets - design @ q.mean) ** 2) + jnp.sum(q.spread(design) ** 2)
        return float(-0.5 * fit - q.kl())

    known = Known(np.asarray(design, np.float64), np.asarray(targets, np.float64), np.eye(3), np.eye(20))
    assert bound(q) - 10 * np.log(2 * np.pi) == pytest.approx(known.log_evidence, abs=1e-3)
    assert bound(q._replace(mean=q.mean + 0.2)) < bound(q) - 0.1
    assert bound(q._replace(root=1.3 * q.root)) < bound(q) - 0.1


def test_what_the_model_leaves_open_is_found_by_the_evidence(open_model):
    model, data = open_model
    method = credo.ClosedForm(num_steps=300)
    start, end = (credo.fit(model, data, one) for one in (credo.ClosedForm(num_steps=0), method))
    assert end.evidence.log_evidence > start.evidence.log_evidence + 5
    assert end.trace["log_joint"].shape == (1, 300)
    # The climb in single precision, and the exact pass in double, agree about where it ended.
    assert end.trace["log_likelihood"][0, -1] == pytest.approx(end.evidence.log_evidence, abs=0.1)
    assert not end.model.xi_template
    kernels = [one.model.frozen_xi["hidden.0.kernel"] for one in (start, end)]
    assert np.abs(kernels[1] - kernels[0]).max() > 0.01


def test_points_are_held_whatever_the_scale_of_the_last_layer():
    """Divided by c, before a layer c times as large, they are the same functions under the same pull."""
    data, pulls = some_data(10, 2), []
    for scale in (1.0, 3.0):
        prior = {"hidden.*": "point", "head.*": credo.priors.normal(scale)}
        model = credo.models.regression(MLP([4], out=1), prior=prior, noise=0.3).bind(data)
        theta = {name: np.full(leaf.shape, 0.5 / scale) for name, leaf in (model.xi_template | model.template).items()}
        problem = affine(model)
        pull = jax.jit(lambda theta: [one._log_prior_of_points(problem, theta) for one in (HELD, FREE)])  # noqa: B023
        pulls.append([float(one) for one in pull(theta)])
    assert pulls[0] == pytest.approx(pulls[1], rel=1e-5)
    assert pulls[0][0] < 0 == pulls[0][1]


def test_nothing_but_the_regulariser_keeps_points_from_learning_noise(seed):
    """Targets that are noise: a last layer on features that nothing holds is sure of what it has learned by heart."""
    model = credo.models.regression(MLP([60], out=1, activation="relu"), prior=LAST_LAYER)
    held, lost = [], []
    for number in range(3):
        rng = np.random.default_rng((seed, number))
        x, y = rng.normal(size=(240, 4)), rng.normal(size=240)
        fits = (credo.fit(model, (x[:40], y[:40]), method, seed=seed) for method in (HELD, FREE))
        scores = [float(credo.evaluation.lpd(posterior.predict(x[40:]), y[40:])) for posterior in fits]
        held.append(scores[0])
        lost.append(scores[0] - scores[1])
    # Noise is predicted by −½ log 2πe = −1.42. Of eight sets one lost less than a nat without the regulariser (0.6),
    # and the others hundreds: three that lose less are one in five hundred.
    assert min(held) > -1.9
    assert max(lost) > 1


def test_held_out_data_end_the_climb(open_model):
    model, data = open_model
    rng = np.random.default_rng(0)
    noise = credo.Data(data.x, rng.normal(size=30))
    method = credo.ClosedForm(num_steps=2000, patience=2, check_every=5)
    posterior = credo.fit(model, noise, method, validation=0.3)
    assert posterior.diagnostics.num_steps < 2000
    assert posterior.trace["held_out"][0, -1] >= np.nanmax(posterior.trace["held_out"])


def test_saved_and_loaded(open_model, tmp_path):
    model, data = open_model
    posterior = credo.fit(model, data, credo.ClosedForm(num_steps=3))
    posterior.save(tmp_path / "run")
    assert credo.load(tmp_path / "run").diagnostics == posterior.diagnostics


def test_features_that_no_row_switches_on_stay_with_their_prior():
    """What a weight can change is a matter of the program, not of the features that happen to be zero."""
    x, y = some_data(20, 2, 2)
    net = MLP([3], out=2, activation="relu", inputs=2)
    net.hidden[0].bias[...] = jnp.array([0.0, -100.0, 0.0])
    model = credo.models.regression(net, prior=LAST_LAYER, noise=0.3)
    posterior = credo.fit(model, (x, y), credo.ClosedForm(num_steps=0))
    np.testing.assert_allclose(posterior.root.variance()["head.kernel"][1], 0.64, rtol=1e-4)
    assert [len(block.entries) for block in affine(posterior.model).blocks] == [4, 4]


# -- what has no closed form ----------------------------------------------------------------------------------------


def test_any_program_that_is_linear_will_do():
    def program(x, y=None):
        w = numpyro.sample("w", dist.MultivariateNormal(jnp.ones(3), jnp.eye(3) + 0.5))
        with numpyro.plate("data", x.shape[0]):
            powers = jnp.stack([x[:, 0] ** power for power in range(3)], axis=1)
            numpyro.sample("y", dist.Normal(powers @ w, 0.1 + 0.1 * x[:, 0] ** 2), obs=y)

    x = np.linspace(-1, 1, 9, dtype=np.float32).astype(np.float64)
    y = np.sin(x).astype(np.float32).astype(np.float64)
    posterior = credo.fit(credo.Model(program), (x, y), credo.ClosedForm())
    design = np.stack([x**power for power in range(3)], axis=1)
    known = Known(design, y - design @ np.ones(3), np.eye(3) + 0.5, np.diag((0.1 + 0.1 * x**2) ** 2))
    np.testing.assert_allclose(posterior.mean["w"], 1 + known.mean, atol=1e-3)
    assert posterior.evidence.log_evidence == pytest.approx(known.log_evidence, abs=5e-3)


def regression(prior=LAST_LAYER, out=1, **options):
    return credo.models.regression(MLP([3], out=out), prior=prior, **options)


REFUSED = {
    "not linear": (lambda: regression(None), r"not linear in the weights \(.*points for all layers but the last"),
    "classes": (lambda: credo.models.classification(MLP([3], out=2), prior=LAST_LAYER), r"class label.*Laplace"),
    "heteroscedastic": (lambda: regression(out=2, noise="heteroscedastic"), r"enters the noise as well as the mean"),
    "no weights": (lambda: regression("point"), r"no latent.*credo.priors.normal"),
    "not normal": (
        lambda: regression({"hidden.*": "point", "head.*": credo.priors.laplace(1.0)}),
        r"prior of 'head.*' is not normal",
    ),
    "hierarchical": (
        lambda: regression({"hidden.*": "point", "head.*": credo.priors.half_cauchy(centred=True)}),
        r"depends on the latent.*priors.learned",
    ),
    "outliers": (lambda: credo.models.outliers(MLP([], out=1)), r"mixture|not from a normal"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_what_to_use_instead(case):
    make, message = REFUSED[case]
    x, y = some_data(10, 2)
    targets = (y > 0).astype(int) if case == "classes" else y
    with pytest.raises(ValueError, match=message):
        credo.fit(make(), (x, targets), credo.ClosedForm())


def test_noises_that_do_not_come_apart_are_refused():
    with pytest.raises(ValueError, match=r"share weights or are correlated.*noise='tuned'"):
        credo.fit(credo.models.regression(MLP([], out=2), noise="full"), some_data(10, 2, 2), credo.ClosedForm())


@pytest.mark.parametrize(
    "settings", [{"num_steps": -1}, {"num_samples": 0}, {"optimizer": "adamm"}, {"regularised_by": 1.0}]
)
def test_settings_are_checked(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        credo.ClosedForm(**settings)


def test_few_rows_are_decomposed_as_they_are(monkeypatch):
    """Fewer rows than weights in one block, against the same in blocks of four: posterior, draws' spread, evidence."""
    x, y = some_data(6, 20)
    model = credo.models.regression(MLP([], out=1), prior=credo.priors.normal(0.8), noise=0.3)
    whole = credo.fit(model, (x, y), credo.ClosedForm())
    monkeypatch.setattr(spectrum, "NUMBERS_PER_BLOCK", 4 * 21)
    by_block = credo.fit(model, (x, y), credo.ClosedForm())
    for one, other in zip(flat(whole), flat(by_block), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert whole.diagnostics.log_evidence == pytest.approx(by_block.diagnostics.log_evidence, abs=1e-6)


def test_the_evidence_of_few_rows_and_its_slope_are_those_of_the_weights():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        arrays = jnp.asarray(30 * rng.normal(size=(5, 9))), jnp.asarray(rng.normal(size=5))
        by_rows, by_weights = (
            jax.value_and_grad(function, argnums=(0, 1))(*arrays) for function in (climbed.by_rows, climbed.by_weights)
        )
        jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-8), by_rows, by_weights)
