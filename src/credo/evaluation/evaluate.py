"""`credo.evaluate`: every score and curve that suits the task, in one call."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas

from credo import _html
from credo._text import nearest
from credo.data import Data, FileData
from credo.evaluation import calibration_error as errors
from credo.evaluation.by_part import ROWS_PER_PART, by_part
from credo.evaluation.calibration import CalibrationCurve, calibration_curve, calibration_curves
from credo.evaluation.checks import as_often, checked, judged, predicted, rows_for, uncensored
from credo.evaluation.class_scores import f1, f1_macro, roc_auc
from credo.evaluation.coverage import in_words, levels_of
from credo.evaluation.detection import Detection, detections
from credo.evaluation.metric import Metric, Score, resample
from credo.evaluation.recalibration import Recalibrated
from credo.evaluation.scores import accuracy, brier, confusion_matrix, crps, lpd, mae, nll, r2, rmse, top_k
from credo.evaluation.selective import RiskCoverage, risk_coverage, risk_coverage_area, uncertainty_error_correlation
from credo.posterior import Posterior
from credo.predictive import ClassPredictive, Predictive

NUM_RESAMPLES = 100  # gives standard errors to within 7%
TOP_K = 5

SHARED_METRICS: dict[str, Metric] = {
    "lpd": lpd,
    "nll": nll,
    "calibration_auc": errors.calibration_auc,
    "calibration_distance": errors.calibration_distance,
    "risk_coverage_area": risk_coverage_area,
    "uncertainty_error_correlation": uncertainty_error_correlation,
}
REGRESSION_METRICS: dict[str, Metric] = {
    "rmse": rmse,
    "mae": mae,
    "r2": r2,
    "crps": crps,
    **SHARED_METRICS,
    "quantile_error": errors.quantile_error,
    "coverage_50": errors.coverage_of(0.5),
    "coverage_95": errors.coverage_of(0.95),
    "sharpness": errors.sharpness,
}
CLASS_METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "f1_macro": f1_macro,
    "roc_auc": roc_auc,
    "brier": brier,
    **SHARED_METRICS,
    "ece": errors.ece,
    "mce": errors.mce,
    "static_error": errors.static_error,
    "adaptive_error": errors.adaptive_error,
    "thresholded_error": errors.thresholded_error,
}


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of a posterior on a test set. Print it for a table; `scores["rmse"]` is one value with its error.

    Arguments:
        num_rows: rows that were judged.
        values: each metric's value and bootstrap standard error.
        metrics: labels, units, and whether higher or lower is better.
        calibration: the main curve: χ² for regression, class 1 of two, the confidence of many classes.
        curves: every calibration curve that suits the task, by name.
        risk_coverage: risk of the answered rows at every coverage.
        confusion: counts of rows by true class and predicted label; None for regression.
        detection: how well each uncertainty detects foreign inputs, if there were any.
        unit: of y.
        num_skipped: rows that were not judged, because they have no target.
        num_censored: rows of which only a lower bound is known: what compares a target with its mean leaves them out.
        of: the site that was judged; "y" is what the model observes.
        baselines: the scores of simpler predictions on the same rows, by name: see `beside`.
        verdict: whether it is calibrated, in words; of a regression, the 95% interval first.

    >>> import credo
    >>> scores = credo.evaluate(credo.from_normal([0.0, 1.0, 2.0], 1.0), [0.0, 1.0, 3.0], num_resamples=0)
    >>> scores.task, scores.num_rows, round(scores["mae"].value, 3)
    ('regression', 3, 0.333)
    """

    task: Literal["regression", "classification"]
    num_rows: int
    values: dict[str, Score]
    metrics: dict[str, Metric] = field(repr=False)
    calibration: CalibrationCurve = field(repr=False)
    curves: dict[str, CalibrationCurve] = field(repr=False)
    risk_coverage: RiskCoverage = field(repr=False)
    confusion: np.ndarray | None = field(repr=False)
    detection: dict[str, Detection] = field(repr=False)
    unit: str = ""
    num_skipped: int = 0
    num_censored: int = 0
    of: str = "y"
    verdict: str = ""
    baselines: Mapping[str, "Scores"] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Score:
        if name not in self.values:
            raise KeyError(f"no score {name!r}; there are {', '.join(self.values)}{nearest(name, self.values)}")
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def label(self, name: str) -> str:
        """The metric's name for a table, with its unit."""
        found = self.metrics[name]
        return f"{found.label} ({self.unit})" if found.unit and self.unit else found.label

    def best(self, name: str) -> str:
        """What a good model shows: "higher", "lower", or a number."""
        better = self.metrics[name].better
        return better if isinstance(better, str) else f"{better:g}"

    def beside(self, baselines: Mapping[str, "Scores"]) -> "Scores":
        """These scores with those of simpler predictions on the same rows: see `credo.evaluation.baselines`."""
        return replace(self, baselines=baselines)

    def in_words(self, name: str) -> str:
        """What the value of a score means."""
        return self.metrics[name].in_words(self.values[name].value, self.unit)

    @property
    def rows_judged(self) -> str:
        """How many rows were judged, and how many were not, in words."""
        skipped = f" ({self.num_skipped:,} more have no target)" if self.num_skipped else ""
        censored = f", {self.num_censored:,} of them censored: errors leave these out" if self.num_censored else ""
        return f"{self.num_rows:,} test rows{skipped}{censored}"

    @property
    def site_judged(self) -> str:
        """What was judged, in words, where it is not what the model observes; else nothing."""
        return "" if self.of == "y" else f"judged: {self.of} (y was observed)"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "task": self.task,
            "num_rows": self.num_rows,
            "num_skipped": self.num_skipped,
            "num_censored": self.num_censored,
            "of": self.of,
            "unit": self.unit,
            "scores": {
                name: {key: None if np.isnan(value) else value for key, value in score._asdict().items()}
                for name, score in self.values.items()
            },
            "baselines": {
                baseline: {name: None if np.isnan(score.value) else score.value for name, score in found.values.items()}
                for baseline, found in self.baselines.items()
            },
            "verdict": self.verdict,
            "calibration": {
                name: {"auc": curve.auc, "distance": curve.distance, "direction": curve.direction}
                for name, curve in self.curves.items()
            },
            "confusion": None if self.confusion is None else self.confusion.tolist(),
            "detection": {
                by: {"auroc": found.auroc, "aupr": found.aupr, "fpr95": found.fpr95}
                for by, found in self.detection.items()
            },
        }

    def to_frame(self) -> pandas.DataFrame:
        """One row per score: value, standard error, the values of the baselines, which end is good."""
        rows = [
            {
                "score": name,
                "label": self.label(name),
                **score._asdict(),
                **{baseline: found[name].value for baseline, found in self.baselines.items()},
                "better": self.best(name),
            }
            for name, score in self.values.items()
        ]
        return pandas.DataFrame(rows).set_index("score")

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings, and the text of the cells of each score: beside it those of the baselines, and what it means."""
        rows = []
        for name, score in self.values.items():
            others = (f"{other[name].value:.4g}" for other in self.baselines.values())
            value, error = f"{score.value:.4g}", f"{score.standard_error:.2g}"
            rows.append([self.label(name), value, error, *others, self.best(name), self.in_words(name)])
        return ["score", "value", "standard error", *self.baselines, "good is", "in plain words"], rows

    @property
    def numbers(self) -> range:
        """Which columns of the cells hold numbers."""
        return range(1, 3 + len(self.baselines))

    def _repr_html_(self) -> str:
        lead, foreign = map(_html.paragraph, self._lead), map(_html.paragraph, self._foreign)
        return _html.notebook(
            *lead, _html.table(*self.cells(), numbers=self.numbers), *foreign, _html.verdict(self.verdict)
        )

    @property
    def _lead(self) -> list[str]:
        return [f"{self.task} on {self.rows_judged}", *filter(None, [self.site_judged])]

    @property
    def _foreign(self) -> list[str]:
        return [f"foreign inputs by {found}" for found in self.detection.values()]

    def __str__(self) -> str:
        names = [self.label(name) for name in self.values]
        width = max(map(len, names))
        above = [" " * (width + 22) + "".join(f"{name:>11}" for name in self.baselines)] if self.baselines else []
        lines = [
            f"{name:<{width}}  {score.value:>9.4g} ± {score.standard_error:<8.2g} "
            + "".join(f"{found[key].value:>10.4g} " for found in self.baselines.values())
            + self._hint(key)
            for name, (key, score) in zip(names, self.values.items(), strict=True)
        ]
        return "\n".join([*self._lead, *above, *lines, *self._foreign, self.verdict])

    def _hint(self, name: str) -> str:
        best = self.best(name)
        return best if best in ("higher", "lower") else f"best at {best}"


def evaluate(
    posterior: Posterior | Recalibrated | Predictive,
    data: Data | FileData | tuple[Any, Any] | Any,
    *,
    outside: Any = None,
    num_draws: int | None = None,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
    of: str | None = None,
) -> Scores:
    """Is the network right, and does it know when it is not? Every score that suits the task.

    Arguments:
        posterior: anything with `predict`, or a prediction.
        data: the test set, credo.Data or (x, y); for a prediction, the targets y. Rows without a target are left out.
            Rows in files (`credo.Data.open`) are judged part by part: see `credo.evaluation.by_part`.
        outside: inputs from elsewhere, (rows, …) like x (for a prediction, the one on them): adds their detection.
        num_draws: draws to average per prediction; all by default.
        num_resamples: bootstrap resamples of the test rows behind each standard error; 0 for none.
        seed: of the resamples and of the samples for the CRPS.
        of: the site to judge, where the model predicts another than it observes: "y" is what was observed.

    >>> from credo import from_normal
    >>> scores = evaluate(from_normal([0.0, 1.0, 2.0], 1.0), [0.0, 1.0, 3.0], num_resamples=0)
    >>> round(scores["rmse"].value, 3)
    0.577
    """
    if num_resamples < 0:
        raise ValueError(f"num_resamples must be 0 or more, got {num_resamples}")
    if isinstance(data, FileData):
        return by_part(
            lambda part: evaluate(
                posterior,
                part,
                outside=outside,
                num_draws=num_draws,
                num_resamples=num_resamples if part.size == data.size else 0,
                seed=seed,
                of=of,
            ),
            data.shuffled(ROWS_PER_PART, seed),
        )
    if isinstance(posterior, Predictive):
        if of is not None:
            raise ValueError(f"of is {of!r}, and a prediction is of one site already; pass the posterior")
        everywhere, y, unit, foreign = posterior, data, "", outside
    else:
        posterior = posterior if of is None else posterior.about(of)
        test = rows_for(posterior, data)
        everywhere, y = as_often(predicted(posterior, test, num_draws), test)
        unit = test.unit or ""
        foreign = None if outside is None else posterior.predict(outside, num_draws=num_draws)
    predictive, y = judged(everywhere, y)
    classes = isinstance(predictive, ClassPredictive)
    metrics = _metrics(predictive)
    resamples = resample(len(predictive), num_resamples, seed)
    settings = {"crps": {"seed": seed}, "top_k": {"k": TOP_K}}
    values = {
        name: metric.score(predictive, y, resamples, **settings.get(name, {})) for name, metric in metrics.items()
    }
    seen = uncensored(predictive, y)[:2]
    curves, main = calibration_curves(predictive, y), calibration_curve(predictive, y)
    return Scores(
        task="classification" if classes else "regression",
        num_rows=len(predictive),
        values=values,
        metrics=metrics,
        calibration=main,
        curves=curves,
        risk_coverage=risk_coverage(*seen),
        confusion=confusion_matrix(predictive, y) if classes else None,
        detection={} if foreign is None else detections(predictive, foreign),
        unit=unit,
        num_skipped=len(everywhere) - len(predictive),
        num_censored=len(predictive) - len(seen[0]),
        of=site_of(posterior),
        verdict=main.verdict if classes else in_words(levels_of(predictive, checked(predictive, y))),
    )


def site_of(posterior: Any) -> str:
    """The site that a posterior predicts: "y", if it has no model that says another."""
    return str(getattr(getattr(posterior, "model", None), "predicts", "y"))


def _metrics(predictive: Predictive) -> dict[str, Metric]:
    if not isinstance(predictive, ClassPredictive):
        return REGRESSION_METRICS
    # With hardly more classes than k the k most probable ones say nothing.
    num_classes = predictive.probs.shape[1]
    return CLASS_METRICS | ({"f1": f1} if num_classes == 2 else {}) | ({"top_k": top_k} if num_classes > TOP_K else {})
