"""Calibration curves: observed against predicted probability, with the band of a calibrated model."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from credo.evaluation.calibration import CalibrationCurve
from credo.plot import style

# Up to this many events get a marker each; more become a line of at most so many points.
MAX_MARKERS, MAX_POINTS = 40, 500
# The histogram of p̂ lies below the curve, from y = −STRIP to just under 0, where it hides nothing.
STRIP = 0.18


def calibration(
    curve: CalibrationCurve | Mapping[str, CalibrationCurve], *, ax: Axes | None = None, label: str | None = None
) -> Axes:
    """Observed against predicted probability; on the diagonal a model is calibrated.

    A single curve gets the band of a calibrated model and a strip with the histogram of p̂; several share the axes
    without them.

    Arguments:
        curve: from credo.evaluation.calibration_curve, or several by name.
        label: of a single curve, in the legend.

    >>> import credo
    >>> curve = credo.evaluation.calibration_curve(credo.from_normal([0.0] * 4, 1.0), [-1.0, -0.2, 0.4, 1.1])
    >>> credo.plot.calibration(curve).get_xlabel()
    'predicted probability p̂'
    """
    curves = style.named(curve, label or "this model")
    for one in curves.values():
        _check(one)
    ax = style.axes(ax)
    ax.plot([0, 1], [0, 1], color=style.FAINT, lw=1, label="ideal")
    first = next(iter(curves.values()))
    if len(curves) == 1:
        band = f"{first.level:.0%} band of a calibrated model"
        ax.fill_between(first.predicted, first.lower, first.upper, color=style.ALEATORIC, alpha=0.5, lw=0, label=band)
        _strip(ax, first.histogram)
        _name_sides(ax, first)
    for number, (name, one) in enumerate(curves.items()):
        summary = f" (AUC {one.auc:.2f}, distance {one.distance:.3f})" if len(curves) > 1 else ""
        _draw(ax, one, number, name + summary, sized=len(curves) == 1)
    # A curve leaves one corner free, above or below the diagonal; several may leave none.
    corner = "best" if len(curves) > 1 else "lower right" if first.auc > 0.5 else "upper left"
    said = f"AUC {first.auc:.3f} ± {first.auc_error:.3f}\ndistance {first.distance:.3f}\n{first.direction}"
    room = STRIP if len(curves) == 1 else 0.0
    look: dict[str, Any] = {"loc": corner, "alignment": "left", "frameon": False, "fontsize": 7, "title_fontsize": 7}
    area = (0, room / (1 + room), 1, 1 / (1 + room))
    ax.legend(title=said if room else None, bbox_to_anchor=area, **look)
    ax.set(xlim=(0, 1), ylim=(-room, 1), yticks=np.linspace(0, 1, 6))
    ax.set(xlabel="predicted probability p̂", ylabel="observed probability p̌")
    return ax


def _check(curve: CalibrationCurve) -> None:
    if not isinstance(curve, CalibrationCurve):
        raise ValueError(f"calibration draws a CalibrationCurve, or several by name, got {type(curve).__name__}")
    if curve.predicted.shape != curve.observed.shape or curve.predicted.ndim != 1 or curve.predicted.size == 0:
        raise ValueError(
            f"a curve needs one predicted and one observed probability for each event, got shapes "
            f"{curve.predicted.shape} and {curve.observed.shape}"
        )


def _draw(ax: Axes, curve: CalibrationCurve, number: int, label: str, *, sized: bool) -> None:
    look = style.line(number)
    if len(curve.predicted) > MAX_MARKERS:
        rows = style.thinned(len(curve.predicted), MAX_POINTS)
        ax.plot(curve.predicted[rows], curve.observed[rows], lw=1.5, label=label, **look)
        return
    marker = style.MARKERS[number % len(style.MARKERS)]
    (path,) = ax.plot(curve.predicted, curve.observed, lw=1.3, label=label, clip_on=False, **look)
    if sized:
        area = 10 + 70 * curve.counts / curve.counts.max()
        ax.scatter(curve.predicted, curve.observed, area, color=look["color"], marker=marker, zorder=3, clip_on=False)
    path.set(marker=marker, ms=3 if sized else 4.5)


def _strip(ax: Axes, histogram: np.ndarray) -> None:
    edges = np.linspace(0, 1, len(histogram) + 1)
    height = (STRIP - 0.07) * histogram / max(histogram.max(), 1)
    ax.bar(edges[:-1], height, np.diff(edges), -STRIP, align="edge", color=style.FAINT, alpha=0.45, ec="white", lw=0.5)
    ax.axhline(0, color=style.INK, lw=0.6)
    said = f"{histogram.sum():,} predictions p̂"
    ax.text(0.01, -0.012, said, fontsize=7, color=style.INK, alpha=0.8, va="top")


def _name_sides(ax: Axes, curve: CalibrationCurve) -> None:
    """Write over- and underconfident along the diagonal; below the pivot they change sides."""
    parts = [((1 + curve.pivot) / 2, "underconfident", "overconfident")]
    if curve.pivot > 0:
        parts.append((curve.pivot / 2, "overconfident", "underconfident"))

    def clearance(middle: float, offset: float) -> float:
        """How far a word would be from the curve, up to a distance that suffices."""
        curve_there = np.interp(middle - offset, curve.predicted, curve.observed)
        return min(abs(float(curve_there) - middle - offset), 0.12)

    for middle, above, below in parts:
        for side, word in ((1, above), (-1, below)):
            offset = max((side * size for size in (0.1, 0.06, 0.15, 0.2)), key=partial(clearance, middle))
            # Turned with the axes, so that it stays parallel to the diagonal in any figure.
            turned: dict[str, Any] = {"rotation": 45, "transform_rotates_text": True, "rotation_mode": "anchor"}
            look: dict[str, Any] = {"fontsize": 8, "fontstyle": "italic", "color": style.FAINT}
            ax.text(middle - offset, middle + offset, word, ha="center", va="center", zorder=1, **turned, **look)
