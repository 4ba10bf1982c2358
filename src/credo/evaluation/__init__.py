"""Evaluation: is the network right, and does it know when it is not? Metrics take a prediction and its targets."""

from credo.diagnostics import ChainDiagnostics, Diagnostics
from credo.diagnostics import diagnose_chains as diagnose
from credo.evaluation.baselines import baselines
from credo.evaluation.calibrated import Calibration
from credo.evaluation.calibration import CalibrationCurve, calibration_curve, calibration_curves, nssr_curve
from credo.evaluation.calibration_error import (
    adaptive_error,
    calibration_auc,
    calibration_distance,
    coverage,
    ece,
    mce,
    quantile_error,
    sharpness,
    static_error,
    thresholded_error,
)
from credo.evaluation.check import Check, check
from credo.evaluation.class_maps import IsotonicClasses, Temperature, VectorScaling
from credo.evaluation.class_scores import f1, f1_macro, roc_auc
from credo.evaluation.classes import ClassSummary, class_summary
from credo.evaluation.compare import Comparison, compare
from credo.evaluation.conformal import Conformal, conformal
from credo.evaluation.detection import Detection, detect, detections
from credo.evaluation.discretisation import DiscretisationBias, discretisation_bias
from credo.evaluation.evaluate import Scores, evaluate
from credo.evaluation.loo import LeaveOneOut, loo, waic
from credo.evaluation.quantile_map import IsotonicQuantiles
from credo.evaluation.recalibration import Recalibrated, recalibrate
from credo.evaluation.residuals import nssr
from credo.evaluation.scores import (
    accuracy,
    brier,
    confusion_matrix,
    crps,
    lpd,
    mae,
    nll,
    r2,
    rmse,
    top_k,
)
from credo.evaluation.selective import (
    RiskCoverage,
    risk_coverage,
    risk_coverage_area,
    uncertainty,
    uncertainty_error_correlation,
)

__all__ = [
    "Calibration",
    "CalibrationCurve",
    "ChainDiagnostics",
    "Check",
    "ClassSummary",
    "Comparison",
    "Conformal",
    "Detection",
    "Diagnostics",
    "DiscretisationBias",
    "IsotonicClasses",
    "IsotonicQuantiles",
    "LeaveOneOut",
    "Recalibrated",
    "RiskCoverage",
    "Scores",
    "Temperature",
    "VectorScaling",
    "accuracy",
    "adaptive_error",
    "baselines",
    "brier",
    "calibration_auc",
    "calibration_curve",
    "calibration_curves",
    "calibration_distance",
    "check",
    "class_summary",
    "compare",
    "conformal",
    "confusion_matrix",
    "coverage",
    "crps",
    "detect",
    "detections",
    "diagnose",
    "discretisation_bias",
    "ece",
    "evaluate",
    "f1",
    "f1_macro",
    "loo",
    "lpd",
    "mae",
    "mce",
    "nll",
    "nssr",
    "nssr_curve",
    "quantile_error",
    "r2",
    "recalibrate",
    "risk_coverage",
    "risk_coverage_area",
    "rmse",
    "roc_auc",
    "sharpness",
    "static_error",
    "thresholded_error",
    "top_k",
    "uncertainty",
    "uncertainty_error_correlation",
    "waic",
]
