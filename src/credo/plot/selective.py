"""Knowing when not to answer: risk against coverage, and telling known inputs from unknown ones."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from credo.evaluation.detection import Detection
from credo.evaluation.selective import RiskCoverage
from credo.plot import style


def risk_coverage(curve: RiskCoverage | Mapping[str, RiskCoverage], *, ax: Axes | None = None) -> Axes:
    """Risk of the answers kept, the most certain first; dotted, with a perfect ordering.

    Arguments:
        curve: from credo.evaluation, or several by name.

    >>> import credo
    >>> curve = credo.evaluation.risk_coverage(credo.from_probs([[0.9, 0.1], [0.6, 0.4]]), [0, 1])
    >>> credo.plot.risk_coverage(curve).get_ylabel()
    'error rate'
    """
    curves = style.named(curve, "least uncertain first")
    risks = {one.risk_name for one in curves.values()}
    if len(risks) > 1:
        raise ValueError(f"curves of one plot need one kind of risk, got {', '.join(sorted(risks))}")
    columns = [_columns(one, "coverage", "risk", "oracle") for one in curves.values()]
    ax = style.axes(ax)
    oracles: list[np.ndarray] = []
    for number, (name, one) in enumerate(curves.items()):
        coverage, risk, oracle = columns[number]
        look = style.line(number)
        ax.plot(coverage, risk, lw=1.5, label=f"{name.replace('_', ' ')}, area {one.area:#.3g}", **look)
        # Orderings of the same answers share one oracle, drawn once.
        if not any(np.array_equal(oracle, seen) for seen in oracles):
            said = None if oracles else "perfect ordering"
            ax.plot(coverage, oracle, lw=1, ls=(0, (1, 2)), color=look["color"], label=said)
            oracles.append(oracle)
        if len(curves) == 1:
            ax.fill_between(coverage, oracle, risk, color=style.ALEATORIC, alpha=0.35, lw=0)
            ax.axhline(risk[-1], color=style.FAINT, lw=0.8, ls="--", label="all answered")
    ax.set(xlim=(0, 1), xlabel="coverage: share of inputs answered", ylabel=risks.pop())
    ax.set_ylim(bottom=0)
    ax.legend(edgecolor="none", fontsize=8)
    return ax


def roc(detection: Detection | Mapping[str, Detection], *, ax: Axes | None = None) -> Axes:
    """True against false positive rate; a mark shows the false positives when 95% of the positives are found.

    Arguments:
        detection: from credo.evaluation, or several by name.

    >>> import credo
    >>> sure, torn = credo.from_probs([[0.9, 0.1], [0.8, 0.2]]), credo.from_probs([[0.5, 0.5], [0.85, 0.15]])
    >>> credo.plot.roc(credo.evaluation.detect(sure, torn)).get_xlabel()
    'false positive rate'
    """
    curves = style.named(detection, getattr(detection, "by", ""))
    columns = [_columns(one, "false_positive_rate", "true_positive_rate") for one in curves.values()]
    ax = style.axes(ax)
    ax.plot([0, 1], [0, 1], color=style.FAINT, lw=1, label="chance")
    ax.axhline(0.95, color=style.FAINT, lw=0.7, ls=":")
    for number, (name, one) in enumerate(curves.items()):
        look = style.line(number)
        said = f"{name.replace('_', ' ')}: AUROC {one.auroc:.3f}, FPR95 {one.fpr95:.3f}"
        ax.plot(*columns[number], lw=1.5, label=said, clip_on=False, **look)
        marker = style.MARKERS[number % len(style.MARKERS)]
        ax.plot([one.fpr95], [0.95], marker, ms=6, mec="white", mew=0.6, color=look["color"])
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="true positive rate")
    ax.legend(edgecolor="none", fontsize=8)
    return ax


def _columns(curve: Any, *names: str) -> list[np.ndarray]:
    columns = [np.asarray(getattr(curve, name)) for name in names]
    shapes = {column.shape for column in columns}
    if len(shapes) > 1 or columns[0].ndim != 1 or columns[0].size == 0:
        raise ValueError(f"{', '.join(names)} must be columns of one length, got shapes {sorted(shapes)}")
    return columns
