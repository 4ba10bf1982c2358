"""Runs: the fit of a table in a folder, what it learns later on, and methods side by side on one table."""

from credo.runs.config import Config
from credo.runs.folder import is_run, require_free
from credo.runs.judging import Judged, judged_on, save_calibrated
from credo.runs.likelihood import likelihood_in_words
from credo.runs.prior import directions, prior_in_words, unlabelled_in_words
from credo.runs.run import Prepared, Run, describe, prepare
from credo.runs.simplified import compressed, distilled, trade_off_of
from credo.runs.updating import updated

__all__ = [
    "Config",
    "Judged",
    "Prepared",
    "Run",
    "compressed",
    "describe",
    "directions",
    "distilled",
    "is_run",
    "judged_on",
    "likelihood_in_words",
    "prepare",
    "prior_in_words",
    "require_free",
    "save_calibrated",
    "trade_off_of",
    "unlabelled_in_words",
    "updated",
]
