"""A run whose posterior cannot go on by itself: fitted again, to all tables that it has learned and the new one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from credo.data import Data
from credo.inference.fit import fit
from credo.inference.method import Method
from credo.learning.going_on import NothingToGoOnFrom
from credo.learning.judgement import judged_before
from credo.learning.learned import Learned, Settings, log_evidence_of
from credo.runs.run import Run
from credo.runs.settled import chosen, model_of
from credo.tables.encoding import Encoding
from credo.tables.files import open_table
from credo.tables.source import Source


def refitted(
    run: Run,
    new: Data,
    encoding: Encoding,
    before: Learned,
    settings: Settings,
    reason: NothingToGoOnFrom,
    *,
    progress: bool | None = None,
) -> tuple[Learned, Method]:
    """Where a run stands after a fit to all that it has learned and the new rows, and the method of that fit.

    The columns stay what the first table made of them; they are scaled by all rows.

    Arguments:
        new: the rows of the new table.
        encoding: of the run, with the classes that are new.
        before: where the run stands.
        reason: why the posterior cannot go on by itself.
    """
    refuse = _refusal(run, settings)
    if refuse:
        raise ValueError(f"{reason}. Nor can it be fitted again: {refuse}") from reason
    # What was unknown in a table, and allowed when it was learned, is missing in it again.
    (first, _), *later = _tables(run)
    old = [encoding.data(source, unknown="missing") for source, _ in later]
    data = _together([encoding.training_data(first), *old, new])
    model = model_of(run.config, encoding, data)
    choice = chosen(run.config, model, data)
    posterior = fit(model, data, choice, seed=run.config.seed, progress=progress)
    judgement, drift = judged_before(before.posterior, new, before.drift)
    counts = before.num_updates + 1, posterior.provenance.num_data, log_evidence_of(posterior)
    return Learned(posterior, posterior, *counts, drift=drift, judgement=judgement), choice.method


def _refusal(run: Run, settings: Settings) -> str:
    """Why a run cannot be fitted again; nothing if it can."""
    if run.config.made_from:
        return f"it is a simpler form of the run in {run.config.made_from}; update that one, and make it simpler again"
    if settings.forgetting < 1:
        return (
            f"a fit to all its tables forgets nothing, and forgetting is {settings.forgetting:g}; pass forgetting=1, "
            "or fit a new run to recent rows"
        )
    for source, expected in _tables(run):
        path = Path(source.path)
        if not path.exists():
            return f"{path}, which it has learned, is not there any more; put it back"
        if open_table(source).checksum != expected:
            return f"{path}, which it has learned, has changed since; put the former one back"
    return ""


def _tables(run: Run) -> list[tuple[Source, str]]:
    """The tables that a run has learned, each with its checksum."""
    learned = ((Source(one.file, **one.written), one.sha256) for one in run.updates)
    return [(run.config.source, run.config.data_sha256), *learned]


def _together(tables: Sequence[Data]) -> Data:
    """The rows of all tables, standardised by all of them."""
    return replace(tables[0].followed_by(*tables[1:]))
